// Products of every kind, made from a seed, run on an engine and compared with a reference. The suite and tests/full are made of
// them.
#pragma once

#include <cstdint>
#include <glgemm/glgemm.hpp>
#include <string>
#include <vector>

namespace glgemm::test {

/// What a case's program is compiled for; cases are grouped by it.
std::vector<ProgramKey> programs(const std::vector<Kernel>& kernels, const Limits& limits);

/// Runs the case that `seed` stands for with the program on the engine: a product, or a batch, of a shape, an op, a layout,
/// offsets, scalars and an epilogue drawn from the seed, on buffers whose every other byte must stay as it is. Half of the cases
/// are of small integers and must match to the bit; the others are random and must keep the error bound.
/// @returns  what is wrong, with what it takes to run the case again; empty if nothing is
std::string run_case(Engine& engine, const ProgramKey& program, std::uint64_t seed);

/// act(x) by its formula; low and high as in Epilogue.
long double activation_value(Activation activation, long double x, long double low, long double high);

}  // namespace glgemm::test
