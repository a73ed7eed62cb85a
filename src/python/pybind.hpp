// pybind11 with its casters. A file that lacks one converts the same type another way, which the one-definition rule forbids: so all
// files of this folder include pybind11 by this header alone, which a test checks.
#pragma once

#include <pybind11/complex.h>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace glgemm::python {
namespace py = pybind11;
}
