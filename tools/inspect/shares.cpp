// Finds out which accelerator computes which piece, by a product whose results nobody keeps.
#include "inspect/plan_picture.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <glgemm/accelerators.hpp>
#include <glgemm/headless.hpp>

namespace glgemm::tools {

std::vector<Share> shares_of(const Problem& problem, const std::string& list, const StreamOptions& options) {
  if (problem.batch > 1) throw std::invalid_argument("--accelerators: a batch of products is not shared out");
  std::mutex mutex;
  std::map<std::thread::id, std::size_t> threads;  // each accelerator has its own
  std::vector<AcceleratorSource> sources = headless_accelerators(list);
  std::vector<Share> shares;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    shares.push_back({sources[i].name});
    sources[i].make_current = [&mutex, &threads, i, make = std::move(sources[i].make_current)] {
      const std::lock_guard lock(mutex);
      threads[std::this_thread::get_id()] = i;
      return make();
    };
  }
  const auto zeros = [](std::int64_t rows, std::int64_t columns, const ElementFormat& format) {
    const auto [type, quantization] = format;
    HostMatrix matrix{.rows = rows, .columns = columns, .type = type, .quantization = quantization};
    matrix.read = [type](const Section& section, void* to) {
      std::memset(to, 0, static_cast<std::size_t>(section.rows * section.columns * element_bytes(type)));
    };
    matrix.write = [](const Section&, const void*) {};
    matrix.read_codes = [quantization](const Section& section, const QuantizedTarget& to) {
      const QuantizedBytes bytes = quantized_bytes(quantization, section.rows, section.columns);
      for (const auto& [array, size] :
           {std::pair(to.codes, bytes.codes), std::pair(to.scales, bytes.scales), std::pair(to.zeros, bytes.zeros)})
        std::fill_n(array, size, std::byte{0});
    };
    return matrix;
  };
  HostGemm product;
  product.op_a = problem.a.op;
  product.op_b = problem.b.op;
  const bool turn_a = problem.a.op != Op::none, turn_b = problem.b.op != Op::none;
  product.a = zeros(turn_a ? problem.k : problem.m, turn_a ? problem.m : problem.k, problem.a.format);
  product.b = zeros(turn_b ? problem.n : problem.k, turn_b ? problem.k : problem.n, problem.b.format);
  product.c = zeros(problem.m, problem.n, problem.c.format);
  StreamOptions recorded = options;
  recorded.piece_done = [&](const Section& piece) {
    const std::lock_guard lock(mutex);
    shares.at(threads.at(std::this_thread::get_id())).pieces.push_back(piece);
  };
  Accelerators accelerators(std::move(sources));
  AcceleratorsReport report;
  for (int run = 0; run < 2; ++run) {
    for (Share& share : shares) share.pieces.clear();
    accelerators.multiply(product, recorded, &report);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const StreamReport& stream = report.accelerators[i].stream;
    shares[i].moved_bytes = stream.bytes_to_device + stream.bytes_from_device;
  }
  return shares;
}

}  // namespace glgemm::tools
