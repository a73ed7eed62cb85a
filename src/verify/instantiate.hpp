// The types for which the templates of verify.hpp are compiled: all types of the table.
//
// Include it behind definitions of
//   GLGEMM_FOR_TYPE(T)      called for each type of the elements of A and B
//   GLGEMM_FOR_TYPES(T, C)  called for each of these and each type that C may have then, also where T is the type of the sums
//   alone
#include <glgemm/types.hpp>

#ifndef GLGEMM_FOR_TYPE
#define GLGEMM_FOR_TYPE(T)
#endif
#ifndef GLGEMM_FOR_TYPES
#define GLGEMM_FOR_TYPES(T, C)
#endif

#define GLGEMM_C_sum(T)
#define GLGEMM_C_either(T) \
  GLGEMM_FOR_TYPES(T, T)   \
  GLGEMM_FOR_TYPES(accumulator_t<T>, T)
#define GLGEMM_INSTANTIATE(name, NAME, number, bytes, kind, sum, c, host, ...) \
  GLGEMM_FOR_TYPE(host)                                                        \
  GLGEMM_FOR_TYPES(host, accumulator_t<host>)                                  \
  GLGEMM_C_##c(host)

namespace glgemm {
GLGEMM_TYPES(GLGEMM_INSTANTIATE)
}  // namespace glgemm

#undef GLGEMM_FOR_TYPE
#undef GLGEMM_FOR_TYPES
#undef GLGEMM_C_sum
#undef GLGEMM_C_either
#undef GLGEMM_INSTANTIATE
