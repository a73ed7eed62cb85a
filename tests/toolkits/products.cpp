#include "toolkits/products.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "support/application.hpp"

namespace toolkits {
namespace {

constexpr int m = 96, k = 70, n = 50;
const bool with_products = std::getenv("GLGEMM_PRODUCTS") != nullptr;
int products = 0, contexts = 0;
std::string faults;

}  // namespace

Products::Products(glgemm::GetProcAddress get_proc_address) : right_(m, n) {
  if (!with_products) return;
  glgemm::EngineOptions options;
  options.log = [](std::string_view line) {
    if (line.find("destroyed") != line.npos) faults += fmt::format("{}\n", line);
  };
  engine_.emplace(get_proc_address, options);
  fmt::print("  context {}: {}, {}\n", ++contexts, engine_->device().version, engine_->device().renderer);
  glgemm::Matrix<float> weights(m, k), inputs(k, n), biases(m, 1);
  for (int i = 0; i < m; ++i)
    for (int p = 0; p < k; ++p) weights(i, p) = static_cast<float>((i * 7 + p * 3) % 11 - 5);
  for (int p = 0; p < k; ++p)
    for (int j = 0; j < n; ++j) inputs(p, j) = static_cast<float>((p * 5 + j) % 7 - 3);
  for (int i = 0; i < m; ++i) biases(i, 0) = static_cast<float>(i - 48);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = biases(i, 0);
      for (int p = 0; p < k; ++p) sum += weights(i, p) * inputs(p, j);
      right_(i, j) = sum > 0 ? sum : 0;
    }
  weights_.emplace(*engine_, weights);
  inputs_.emplace(*engine_, inputs);
  biases_.emplace(*engine_, biases);
  outputs_.emplace(*engine_, m, n);
}

void Products::multiply() {
  if (!with_products) return;
  const glgemm::test::Snapshot before = glgemm::test::take_snapshot();
  check();
  engine_->gemm(
      {.a = weights_->view(),
       .b = inputs_->view(),
       .c = outputs_->view(),
       .epilogue = {.bias = glgemm::BiasView::for_each_row(biases_->view().buffer), .activation = glgemm::Activation::relu()}});
  enqueued_ = true;
  ++products;
  const glgemm::test::Snapshot after = glgemm::test::take_snapshot();
  if (products == 1) fmt::print("  {} pieces of state compared\n", before.size());
  faults += glgemm::test::difference(before, after);
}

void Products::check() {
  if (!enqueued_) return;
  const glgemm::Matrix<float> outputs = outputs_->download<float>();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      if (outputs(i, j) != right_(i, j))
        faults += fmt::format("C({}, {}) is {}, {} is right\n", i, j, outputs(i, j), right_(i, j));
  enqueued_ = false;
}

void take_picture() {
  const char* const file = std::getenv("GLGEMM_PICTURE");
  if (file && std::system(fmt::format("xwd -silent -root -out '{}'", file).c_str()) != 0) faults += "xwd takes no picture\n";
}

int end() {
  if (with_products) fmt::print("  {} products, {}\n", products, faults.empty() ? "all right, state as before" : "FAULTS:");
  fmt::print("{}", faults);
  return faults.empty() && (products > 0 || !with_products) ? 0 : 1;
}

}  // namespace toolkits

/// OpenGL's state, a line for each piece of it: for programs in Python.
extern "C" __attribute__((visibility("default"))) const char* glgemm_toolkits_state() {
  static std::string text;
  text.clear();
  for (const auto& [name, values] : glgemm::test::take_snapshot()) text += fmt::format("{}: {}\n", name, fmt::join(values, " "));
  return text.c_str();
}
