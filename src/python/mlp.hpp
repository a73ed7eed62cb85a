// Networks of fully connected layers on arrays on the device.
#pragma once

#include <optional>
#include <vector>

#include <glgemm/mlp.hpp>

#include "python/array.hpp"
#include "python/placed.hpp"
#include "python/product.hpp"
#include "python/work.hpp"

namespace glgemm::python {

/// Each row of x, and of the result, is a sample. Shapes and types go together, as _mlp.py has seen.
struct DeviceMlp {
  struct Layer {
    Array weights;  ///< (outputs, inputs)
    std::optional<Array> bias{};
    Activation activation{};
  };

  Array x;
  std::vector<Layer> layers;
  std::optional<Array> out{};
};

class PlacedMlp final : public WorkOn<Mlp> {
 public:
  /// The result goes into `out` if there is one, else into a new array of `type`.
  /// @throws std::invalid_argument, py::type_error  the arrays belong to different engines, or cannot be used where they lie
  PlacedMlp(DeviceMlp arrays, const Terms& terms, Type type);

 private:
  const Mlp& build(const Placed& result) override;
  ExplainedArrays explained() const override;

  DeviceMlp given_;
  Mlp mlp_{};
  KeptElements kept_{};  ///< of the weights and biases of each layer, then of x
};

void define_mlp(py::module_& module);

}  // namespace glgemm::python
