// Convolutions of arrays on the device.
#pragma once

#include <optional>

#include <glgemm/convolution.hpp>

#include "python/array.hpp"
#include "python/placed.hpp"
#include "python/product.hpp"
#include "python/work.hpp"

namespace glgemm::python {

/// What a convolution has beside its arrays and the terms that products have too.
struct ConvolutionTerms {
  Extents stride{}, dilation{};
  Padding padding{};
  std::int64_t groups = 1;
  TensorLayout layout = TensorLayout::nhwc, output_layout = TensorLayout::nhwc;
  FilterLayout filter_layout = FilterLayout::ohwi;
  bool transposed = false;
  Extents output_padding{};  ///< how much larger the output of a transposed one is than the least
  Extents filter_size{};     ///< of quantised filters, which are a matrix with a row for each output channel
};

struct DeviceConvolution {
  Array x, w;
  std::optional<Array> out{};
  std::optional<Array> bias{};  ///< of the shape (output channels,)
  std::optional<Array> residual{};
};

class PlacedConvolution final : public WorkOn<Convolution> {
 public:
  /// The result goes into `out` if there is one, else into a new array of `type`, by default default_type_of_c().
  /// @throws std::invalid_argument, py::type_error  shapes or types do not go together, or the arrays belong to different engines
  PlacedConvolution(DeviceConvolution arrays, const ConvolutionTerms& how, const Terms& terms, std::optional<Type> type);

 private:
  const Convolution& build(const Placed& result) override;
  ExplainedArrays explained() const override;

  DeviceConvolution given_;
  Convolution convolution_{};
  KeptElements kept_{};
};

void define_convolve(py::module_& module);

}  // namespace glgemm::python
