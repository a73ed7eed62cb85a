// What tests ask and tell the stand-ins for CUDA's driver and cuBLAS: libcuda.so.1 and libcublas.so.13 of this folder, which do
// with OpenGL's buffers what those do, on a CPU.
#pragma once

extern "C" {
/// Counts a call, and returns what it is to fail with, or 0.
int stand_in_enter(const char* function);
/// After `skipped` more calls, as many calls of the function fail with the status. "" is any function.
void stand_in_fail(const char* function, int status, int calls, int skipped);
/// Calls of the function since the last reset; "": of all.
long stand_in_calls(const char* function);
/// Forgets calls and failures.
void stand_in_reset();
/// The buffer was deleted, and another one has its name: what is registered of it is neither read nor written any more.
void stand_in_orphan(unsigned buffer);
int stand_in_registered();
int stand_in_mapped();
/// Retained contexts and handles that have not been given back.
int stand_in_held();
void stand_in_hold(int by);
}
