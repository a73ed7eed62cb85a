// Networks of fully connected layers on arrays on the device.
#pragma once

#include <optional>
#include <vector>

#include <glgemm/mlp.hpp>

#include "python/array.hpp"
#include "python/placed.hpp"
#include "python/product.hpp"

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

/// A network of arrays as the library takes it. It keeps the elements that the network needs.
class PlacedMlp {
 public:
  /// The result goes into `out` if there is one, else into a new array of `type`.
  PlacedMlp(const DeviceMlp& arrays, const Terms& terms, Type type);
  PlacedMlp(const PlacedMlp&) = delete;
  PlacedMlp& operator=(const PlacedMlp&) = delete;

  const Array& result() const { return result_; }
  /// Null if the result has no elements.
  const Mlp* build(Engine&) const { return result_.layout.size() == 0 ? nullptr : &mlp_; }

 private:
  std::vector<MlpLayer> layers_{};
  Mlp mlp_{};
  Array result_{};
  KeptElements kept_{};
};

void define_mlp(py::module_& module);

}  // namespace glgemm::python
