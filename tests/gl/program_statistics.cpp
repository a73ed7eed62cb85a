// Drivers' messages about programs become one record. The messages are Mesa 26.2's, unless a test names another driver.
#include <doctest/doctest.h>

#include <vector>

#include "gl/program_statistics.hpp"

using namespace glgemm;

namespace {

/// What the messages tell, as to_string names it: every number that is known, and no other.
std::string parse(const std::vector<std::string>& messages) {
  return to_string(parse_statistics(messages));
}

}  // namespace

TEST_CASE("AMD's driver tells of a program, and of programs of its own") {
  const std::string ours =
      "Shader Stats: SGPRS: 108 VGPRS: 120 Code Size: 19572 LDS: 9216 Scratch: 8192 Max Waves: 6 Spilled SGPRs: 3 Spilled VGPRs: "
      "32 "
      "PrivMem VGPRs: 0 LSOutputs: 0 HSOutputs: 0 HSPatchOuts: 0 ESOutputs: 0 GSOutputs: 0 VSOutputs: 0 PSOutputs: 0 "
      "InlineUniforms: "
      "4 DivergentLoop: 0 (CS, W64)";
  const std::string drivers =
      "Shader Stats: SGPRS: 108 VGPRS: 12 Code Size: 52 LDS: 0 Scratch: 0 Max Waves: 16 Spilled SGPRs: 0 Spilled VGPRs: 0 "
      "PrivMem "
      "VGPRs: 0 LSOutputs: 0 HSOutputs: 0 HSPatchOuts: 0 ESOutputs: 0 GSOutputs: 0 VSOutputs: 0 PSOutputs: 1 InlineUniforms: 0 "
      "DivergentLoop: 0 (PS, W32)";
  const std::string expected = "registers 120, spills 32, local bytes 128, shared bytes 9216, subgroup width 64, occupancy 6";
  CHECK(parse({drivers, ours}) == expected);
  CHECK(parse({ours}) == expected);
  CHECK(parse({drivers}) == "");
  CHECK(parse_statistics(std::vector{drivers}) == ProgramStatistics{});
  // Older drivers do not say which stage it is, nor the width.
  CHECK(parse({ours.substr(0, ours.find(" InlineUniforms"))}) ==
        "registers 120, spills 32, local bytes 128, shared bytes 9216, occupancy 6");
}

TEST_CASE("Intel's driver tells of each width: those of the one that runs count") {
  const std::string warning =
      "compute shader triggered register spilling.  Try reducing the number of live scalar values to improve performance.";
  const std::string simd8 =
      "CS SIMD8 shader: 2623 inst, 2 loops, 138644 cycles, 99:156 spills:fills, 130 sends, scheduled with mode none, Promoted 0 "
      "constants, compacted 52912 to 51200 bytes.";
  const auto with = [&](const std::string& width, const std::string& pair, const std::string& inst) {
    return "CS SIMD" + width + " shader: " + inst + " inst, 2 loops, 1000 cycles, " + pair +
           " spills:fills, 130 sends, scheduled with mode top-down, Promoted 0 constants, compacted 5 to 3 bytes.";
  };
  CHECK(parse({warning, simd8, "SIMD32 shader inefficient"}) ==
        "spills 99, fills 156, instructions 2623, subgroup width 8, cycles 138644");
  CHECK(spills(parse_statistics(std::vector{simd8})) == Spills::some);
  const std::string wide = with("16", "0:0", "77"), wider_spills = with("32", "4:0", "78"), wider = with("32", "0:0", "79");
  const std::string of_wide = "spills 0, fills 0, instructions 77, subgroup width 16, cycles 1000";
  CHECK(parse({simd8, wide}) == of_wide);
  CHECK(spills(parse_statistics(std::vector{wide})) == Spills::none);
  CHECK(parse({wide, simd8}) == of_wide);
  CHECK(parse({simd8, wide, wider_spills}) == of_wide);
  CHECK(parse({simd8, wide, wider}) == "spills 0, fills 0, instructions 79, subgroup width 32, cycles 1000");
  CHECK(parse({simd8, wider_spills}) == "spills 4, fills 0, instructions 78, subgroup width 32, cycles 1000");
}

TEST_CASE("NVIDIA's GPUs by Mesa: NVK behind zink, and nouveau") {
  CHECK(
      parse(
          {"compute shader: 2175 Instruction count, 23804 Static cycle count, 16 Max warps/SM, 5 Spills to memory, 7 Fills from "
           "memory, 9 Spills to reg, 11 Fills from reg, 34800 Code size, 104 Number of GPRs, 256 SLM size"}) ==
      "registers 104, spills 5, fills 7, local bytes 256, instructions 2175, occupancy 16, cycles 23804");
  const std::vector<std::string> nouveau{"type: 4, local: 0, shared: 0, gpr: 4, inst: 5, bytes: 56, cached: 1020",
                                         "type: 5, local: 256, shared: 8448, gpr: 145, inst: 1855, bytes: 19792, cached: 35744"};
  CHECK(parse(nouveau) == "registers 145, local bytes 256, shared bytes 8448, instructions 1855");
  CHECK(spills(parse_statistics(nouveau)) == Spills::untold);
}

TEST_CASE("Apple's GPUs: registers are of 32 bits, occupancy is in subgroups; the first program is ours") {
  CHECK(parse({"CS shader: 1295 instrs, 1109 alu, 1109 fscib, 304 ic, 10296 code size, 215 gprs, 158 uniforms, 64 scratch, 448 "
               "threads, 2 loops, 17:29 spills:fills, 88 preamble inst",
               "CS shader: 19 instrs, 17 alu, 17 fscib, 4 ic, 154 code size, 31 gprs, 68 uniforms, 0 scratch, 1024 threads, 0 "
               "loops, 0:0 spills:fills, 23 preamble inst"}) ==
        "registers 108, spills 17, fills 29, local bytes 64, instructions 1295, occupancy 14");
}

TEST_CASE("Adreno: registers have four components; preamble instructions are no instructions of the program") {
  CHECK(
      parse(
          {"VERT shader: 17 inst, 0 nops, 17 non-nops, 0 mov, 0 cov, 32 dwords, 0 last-baryf, 0 last-helper, 0 half, 3 full, 8 "
           "constlen, 1 cat0, 0 stp, 0 ldp, 16 waves, 0 loops, 6 preamble-inst, 1 early-preamble",
           "CL shader: 1586 inst, 107 nops, 1479 non-nops, 149 mov, 11 cov, 2824 dwords, 0 last-baryf, 0 last-helper, 0 half, 48 "
           "full, 24 constlen, 129 cat0, 160 cat1, 494 cat2, 676 cat3, 2 cat4, 2 cat5, 119 cat6, 4 cat7, 60 stp, 70 ldp, 66 "
           "sstall, 26 (ss), 256 systall, 8 (sy), 4 waves, 2 loops, 130 preamble-inst, 1 early-preamble"}) ==
      "registers 192, spills 60, fills 70, instructions 1586, occupancy 4");
}

TEST_CASE("v3d and panfrost: Midgard's registers have four words, and v3d tells of none") {
  CHECK(parse({"MESA_SHADER_COMPUTE shader: 360 inst, 2 threads, 1 loops, 41 uniforms, 64 max-temps, 14:11 spills:fills, 0 "
               "sfu-stalls, 361 inst-and-stalls, 3 nops"}) == "spills 14, fills 11, instructions 360, occupancy 2");
  CHECK(parse({"MESA_SHADER_COMPUTE shader: 137 inst, 80 bundles, 11 registers, 1 threads, 90 quadwords, 1 loops, 0:0 "
               "spills:fills"}) == "registers 44, spills 0, fills 0, instructions 137, occupancy 1");
  CHECK(parse({"MESA_SHADER_COMPUTE shader: 7 instrs, 7 tuples, 2 clauses, 2.000000 cycles, 0.208333 arith, 0.000000 t, 2.000000 "
               "ldst, 0.000000 v, 0 preloads, 2 threads, 192 code size, 0 loops, 0:0 spills:fills, 0 spill cost, 4 registers "
               "used, 2 uniforms used"}) == "registers 4, spills 0, fills 0, instructions 7, occupancy 2");
}

TEST_CASE("NVIDIA's own binaries hold assembly as text") {
  // Made up, in the form that NV_gpu_program5 and NV_compute_program5 give.
  const std::string text =
      "!!NVcp5.0\n"
      "OPTION NV_shader_storage_buffer;\n"
      "GROUP_SIZE 16 16;\n"
      "SHARED_MEMORY 4096;\n"
      "SHARED shared_mem[] = { program.sharedmem };\n"
      "STORAGE sbo_buf0[] = { program.storage[0] };\n"
      "PARAM c[4] = { program.local[0..3] };\n"
      "TEMP R0, R1, R2;\n"
      "LONG TEMP D0;\n"
      "TEMP lmem[16], other[2];\n"
      "MAD.U R0.x, invocation.groupid.x, {16, 0, 0, 0}, invocation.localid.x;  # a; b\n"
      "REP.S ;\n"
      "  LDS.F32 R1.x, shared_mem[R0.x];\n"
      "  MAD.F R2.x, R1.x, R1.x, R2.x;\n"
      "ENDREP;\n"
      "label0:\n"
      "BAR ;\n"
      "STB.F32 R2.x, sbo_buf0[R0.x];\n"
      "END\n"
      "# 7 instructions, 3 R-regs, 1 D-regs\n";
  CHECK(parse({text}) == "local bytes 288, shared bytes 4096, instructions 7");
  std::vector<std::byte> binary(100, std::byte{0x80});
  CHECK(assembly(binary).empty());
  for (const char c : text) binary.push_back(static_cast<std::byte>(c));
  binary.resize(binary.size() + 40);
  CHECK(assembly(binary) == text);
}

TEST_CASE("What is no driver's report of a program tells nothing") {
  CHECK(parse_statistics({}) == ProgramStatistics{});
  const std::vector<std::string> none{"",         "hello",    "Buffer detailed info: Buffer object 1 will use VIDEO memory",
                                      "CS SIMD",  "type: 5,", "CS shader: ",
                                      "!!NVcp5.0"};
  CHECK(parse_statistics(none).instructions.value_or(0) == 0);
  CHECK(parse({}).empty());
}
