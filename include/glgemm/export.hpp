// GLGEMM_EXPORT marks what a shared build of glgemm makes visible; everything else is hidden.
#pragma once

#if defined(GLGEMM_STATIC)
#define GLGEMM_EXPORT
#elif defined(_WIN32)
#if defined(GLGEMM_BUILDING)
#define GLGEMM_EXPORT __declspec(dllexport)
#else
#define GLGEMM_EXPORT __declspec(dllimport)
#endif
#else
#define GLGEMM_EXPORT __attribute__((visibility("default")))
#endif
