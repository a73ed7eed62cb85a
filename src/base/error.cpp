// The destructors of the error types live here so that one copy of their type information serves every shared object.
#include <glgemm/error.hpp>

namespace glgemm {

GlError::~GlError() = default;
Unsupported::~Unsupported() = default;
OutOfMemory::~OutOfMemory() = default;
DeviceLost::~DeviceLost() = default;

}  // namespace glgemm
