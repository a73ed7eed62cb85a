// For headers of which nothing is promised: a program that includes one of them starts with the library of its own version alone.
#pragma once

#include <glgemm/export.hpp>
#include <glgemm/language.hpp>
#include <glgemm/version.hpp>

/// Has the version in its name. Another version lays the structs of these headers out otherwise; it lacks this name, so that the
/// loader refuses it, and no program reads beyond a struct.
extern "C" GLGEMM_EXPORT const char GLGEMM_UNPROMISED;

// Visual Studio has no attribute that keeps an unused pointer: there nothing is refused.
#ifdef __GNUC__
namespace glgemm {
#if __has_cpp_attribute(gnu::retain)
[[gnu::used, gnu::retain]]
#else
[[gnu::used]]
#endif
static const char* const needs_this_version = &GLGEMM_UNPROMISED;
}  // namespace glgemm
#endif
