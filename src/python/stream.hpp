// Products of host matrices that need not fit the device, on one engine or on several accelerators.
#pragma once

#include <memory>

#include <glgemm/accelerators.hpp>
#include <glgemm/streaming.hpp>

#include "python/product.hpp"
#include "python/pybind.hpp"

namespace glgemm::python {

/// What the caller of a streamed product decides beside its terms.
struct StreamTerms {
  std::int64_t device_memory_limit_bytes = 0;
  std::int64_t memory_limit_bytes = 0;
  py::object progress = py::none();  ///< called with the share that is done; may raise, which ends the product
};

/// The product of matrices with two dimensions and any strides. Waits for it.
void stream(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms, const StreamTerms& settings);

void define_stream(py::module_& module);

}  // namespace glgemm::python
