// GLGEMM_EXPORT marks what a shared build of glgemm makes visible; everything else is hidden. The libraries over it have marks of
// their own, since Windows wants to know whether a name is of the library that is being built.
#pragma once

#if defined(GLGEMM_STATIC)
#define GLGEMM_EXPORTED
#define GLGEMM_IMPORTED
#elif defined(_WIN32)
#define GLGEMM_EXPORTED __declspec(dllexport)
#define GLGEMM_IMPORTED __declspec(dllimport)
#else
#define GLGEMM_EXPORTED __attribute__((visibility("default")))
#define GLGEMM_IMPORTED GLGEMM_EXPORTED
#endif

#if defined(GLGEMM_BUILDING)
#define GLGEMM_EXPORT GLGEMM_EXPORTED
#else
#define GLGEMM_EXPORT GLGEMM_IMPORTED
#endif
#if defined(GLGEMM_BUILDING_HEADLESS)
#define GLGEMM_HEADLESS_EXPORT GLGEMM_EXPORTED
#else
#define GLGEMM_HEADLESS_EXPORT GLGEMM_IMPORTED
#endif
#if defined(GLGEMM_BUILDING_VERIFY)
#define GLGEMM_VERIFY_EXPORT GLGEMM_EXPORTED
#else
#define GLGEMM_VERIFY_EXPORT GLGEMM_IMPORTED
#endif
#if defined(GLGEMM_BUILDING_WEIGHTS)
#define GLGEMM_WEIGHTS_EXPORT GLGEMM_EXPORTED
#else
#define GLGEMM_WEIGHTS_EXPORT GLGEMM_IMPORTED
#endif
