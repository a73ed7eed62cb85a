// glgemm's C++ interface is in C++20. glgemm.h is for C, and for any C++.
#pragma once

#if __cplusplus <= 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG <= 201703L)
#error "glgemm needs C++20: -std=c++20, /std:c++20, or in CMake target_compile_features(TARGET PRIVATE cxx_std_20)"
#include <glgemm/needs_C++20>  // There is no such file: compilers that go on after #error end here.
#endif
