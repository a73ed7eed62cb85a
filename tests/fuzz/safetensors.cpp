// .safetensors files: any bytes give tensors that lie in the file and apart, or a message.
#include "fuzz/model.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glgemm::fuzz;
  read_model(std::string(text(data, size)));
  // And with a header of the right length before as many bytes of data as the first byte says: a mutation seldom hits both.
  if (size == 0) return 0;
  const std::size_t header = size - 1 - std::min<std::size_t>(data[0], size - 1);
  std::string whole;
  for (int i = 0; i < 8; ++i) whole += static_cast<char>(header >> (8 * i) & 0xff);
  read_model(whole.append(text(data + 1, size - 1)));
  return 0;
}
