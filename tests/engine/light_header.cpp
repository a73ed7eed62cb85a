// The header of an application that multiplies brings no plans, nor <variant> where <chrono> of C++ does not: GCC 13's does.
#include <chrono>
#ifdef _GLIBCXX_VARIANT
#define CHRONO_HAS_VARIANT
#endif
#include <glgemm/glgemm.hpp>

template <class T>
constexpr bool is_complete = requires {
  sizeof(T);
};

static_assert(is_complete<glgemm::Engine> && is_complete<glgemm::Job> && is_complete<glgemm::Fence> &&
              is_complete<glgemm::DeviceMatrix>);
static_assert(!is_complete<glgemm::Plan>, "glgemm/glgemm.hpp includes glgemm/inspect.hpp");
#if defined(_GLIBCXX_VARIANT) && !defined(CHRONO_HAS_VARIANT)
#error "glgemm/glgemm.hpp includes <variant>"
#endif
