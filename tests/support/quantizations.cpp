#include "support/quantised.hpp"

namespace glgemm::test {

const std::vector<Quantization>& quantizations() {
  static const std::vector<Quantization> list = [] {
    std::vector<Quantization> result{Quantization::nbits(4, 16),
                                     Quantization::nbits(4, 32, true, Type::f16),
                                     Quantization::nbits(8, 16, true, Type::bf16),
                                     Quantization::nbits(8, 64, false, Type::f16),
                                     Quantization::per_row(),
                                     Quantization::per_row(Type::f8e4m3, Type::f16),
                                     Quantization::per_row(Type::u8, Type::bf16),
                                     Quantization::per_tensor(Type::i8, Type::f16),
                                     Quantization::per_tensor(Type::f8e5m2)};
    for (const QuantizedFormatInfo& row : quantized_format_table)
      if (row.codes > 1) result.push_back(parse_quantization(row.name));
    return result;
  }();
  return list;
}

}  // namespace glgemm::test
