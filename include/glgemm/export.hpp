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

/// Before a declaration: a use of the name makes the compiler warn with the text, which says what takes its place. What is
/// deprecated works on and warns in all further versions 1.x, and goes with 2.0. A program that defines
/// GLGEMM_NO_DEPRECATED_WARNINGS before it includes glgemm's headers hears of none.
#if defined(GLGEMM_NO_DEPRECATED_WARNINGS)
#define GLGEMM_DEPRECATED(text)
#elif defined(__cplusplus) && __cplusplus >= 201402L
#define GLGEMM_DEPRECATED(text) [[deprecated(text)]]
#elif defined(__GNUC__)
#define GLGEMM_DEPRECATED(text) __attribute__((deprecated(text)))
#elif defined(_MSC_VER)
#define GLGEMM_DEPRECATED(text) __declspec(deprecated(text))
#else
#define GLGEMM_DEPRECATED(text)
#endif
