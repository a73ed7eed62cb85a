// The header of an application that multiplies brings no plans.
#include <glgemm/glgemm.hpp>

template <class T>
constexpr bool is_complete = requires {
  sizeof(T);
};

static_assert(is_complete<glgemm::Engine> && is_complete<glgemm::Job> && is_complete<glgemm::Fence> &&
              is_complete<glgemm::DeviceMatrix>);
static_assert(!is_complete<glgemm::Plan>, "glgemm/glgemm.hpp includes glgemm/plan.hpp");
#ifdef _GLIBCXX_VARIANT
#error "glgemm/glgemm.hpp includes <variant>"
#endif
