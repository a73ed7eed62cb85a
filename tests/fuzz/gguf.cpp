// .gguf files: any bytes give tensors that lie in the file and apart, or a message.
#include "fuzz/model.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(glgemm::fuzz::text(data, size));
  glgemm::fuzz::read_model(text.starts_with("GGUF") ? text : "GGUF" + text);
  return 0;
}
