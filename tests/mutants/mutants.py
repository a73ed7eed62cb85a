"""The faults of tests/mutants/run: what is replaced, in which file, and the tests that must see it."""
from dataclasses import dataclass


@dataclass
class Mutant:
    name: str
    file: str
    old: str  # occurs once in the file
    new: str
    tests: tuple  # each as a command below tests/ of the build folder


ACTIVATIONS = "../bin/glgemm_gl_tests -sf=*gl_activations*"
PLANS = "../bin/glgemm_tests -sf=*plan/plan.cpp -aa=1"


CONVOLUTIONS = "../bin/glgemm_gl_tests -sf=*engine/gl_convolution.cpp -aa=1"
CONVOLUTION_PLANS = "../bin/glgemm_tests -sf=*plan/convolution.cpp -aa=1"


BARRIERS = "ctest --test-dir .. -R ^shader.all.barriers$"


QUANTISED = """../bin/glgemm_gl_tests "-tc=quantised operands: blocks stand for*" -aa=1"""
VENDOR = """../bin/glgemm_gl_tests "-tc=vendor*" -aa=1"""
LIFETIMES = "../bin/glgemm_gl_tests -sf=*gl_lifetime* -aa=1"
WEIGHTS = "../bin/glgemm_tests -sf=*weights/*,*base/quantization.cpp -aa=1"


def case(name, program="glgemm_tests"):
    """The cases of a program whose names are like this."""
    return [f"../bin/{program}", f"-tc={name}"]


def gl_case(name):
    return case(name, "glgemm_gl_tests")


def products(kernel, type="f32"):
    """Random products of the suite's kind on one kernel, all of whose parameters are named, with its programs of a type."""
    return ["../bin/glgemm_full", "--kernel", kernel, "--program", f"{kernel} {type}", "--cases", "120"]


TILED = products("tiled:tile=4")
NAIVE = products("naive:workgroup_x=4,workgroup_y=8")
REGISTER = products("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1,workgroup_y=1,broadcast=1")
SMALL = products("small:tile_m=2,tile_n=3,workgroup=32")
GEMV = products("gemv:tile_m=2,tile_n=1,lanes_k=8,workgroup=32,panels=0,broadcast=1,chunks=1,shared_b=0")
OUTER = products("outer:tile_m=2,tile_n=4,max_k=2,workgroup=4")
BLOCKED = products("blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2,pad=1,double_buffer=0,panels=0,images=2,turn=0")

C_FIELDS = "../bin/glgemm_gl_tests -sf=*c/gl_fields.cpp -aa=1"

INDEXED = REGISTER + ["--indexed"]
INDEXED_BLOCKED = BLOCKED + ["--indexed"]

MUTANTS = [
    # Shaders.
    Mutant("silu and gelu of -infinity are NaN", "shaders/activation.glsl", "  x = max(x, ACC(-1000.0));\n", "", (ACTIVATIONS,)),
    Mutant("hard_swish divides by 6", "shaders/activation.glsl", "min(upper, ACC(6.0)) * sixth", "min(upper, ACC(6.0)) / ACC(6.0)",
           (ACTIVATIONS,)),
    Mutant("tiled drops the tail of k", "shaders/tiled.comp", "p0 < size.z;", "p0 + TILE <= size.z;", (TILED,)),
    Mutant("tiled stores one row too many", "shaders/tiled.comp", "if (row < size.x && column < size.y) finish",
           "if (row <= size.x && column < size.y) finish", (TILED,)),
    Mutant("tiled loads before all have stored", "shaders/tiled.comp", "    memoryBarrierShared();\n    barrier();\n", "",
           (BARRIERS,)),
    Mutant("tiled stores before all have loaded", "shaders/tiled.comp", "As[y][p], Bs[p][x]);\n    barrier();", "As[y][p], Bs[p][x]);",
           (BARRIERS,)),
    Mutant("gemv adds up before all have stored", "shaders/gemv.comp",
           "lanes /= 2) {\n    memoryBarrierShared();\n    barrier();", "lanes /= 2) {", (BARRIERS,)),
    Mutant("gemv shares columns before all have brought them", "shaders/shared_columns.glsl", "memoryBarrierShared();", "", (BARRIERS,)),
    Mutant("blocked overwrites what others load", "shaders/blocked.comp", "    barrier();  // all have read\n", "",
           (BARRIERS,)),
    Mutant("blocked stores into the half that others read", "shaders/blocked.comp", "phase = 1 - phase;", "", (BARRIERS,)),
    Mutant("naive reads A with the ld of its rows along k", "shaders/naive.comp", "load_a(a + column_of_a(p))", "load_a(a + p * a_at.y)",
           (NAIVE,)),
    Mutant("gemv loses half of the lanes", "shaders/gemv.comp", "lanes = LANES_K / 2; lanes > 0;", "lanes = LANES_K / 2; lanes > 1;",
           (GEMV,)),
    Mutant("small computes one product too few", "shaders/small.comp", "for (int p = 0; p < size.z; ++p)",
           "for (int p = 0; p < size.z - 1; ++p)", (SMALL,)),
    Mutant("small takes the columns of another block", "shaders/small.comp", "task % blocks_x * TN", "task % blocks_x * TM", (SMALL,)),
    Mutant("pack leaves out the zeros behind k", "shaders/pack.comp", "p < min(first_p + step, size.y)",
           "p < min(first_p + step, size.z)", (REGISTER,)),
    Mutant("pack puts all items in one place", "shaders/pack.comp", "panels_at.x + z * panels_at.z +", "panels_at.x +", (REGISTER,)),
    Mutant("reduce loses the last part", "shaders/reduce.comp", "part < parts.z;", "part < parts.z - 1;", (REGISTER,)),
    Mutant("reduce takes the parts of another item", "shaders/reduce.comp", "(part * parts.x + z)", "(part + z)", (REGISTER,)),
    Mutant("blocked makes the last step whole, not the first", "shaders/blocked.comp", "int first = (end - begin - 1) % BK + 1, phase = 0;",
           "int first = BK, phase = 0;", (BLOCKED,)),
    Mutant("register begins each part of k at the first", "shaders/register.comp",
           "(first_row / (TM * WORKGROUP_Y) * size.z + begin_k(layer)) * pitch_a", "(first_row / (TM * WORKGROUP_Y) * size.z) * pitch_a",
           (REGISTER,)),
    Mutant("outer adds C without beta", "shaders/outer.comp", "value += scale(of_c, VectorsOfC[at + j * WORKGROUP]);",
           "value += VectorsOfC[at + j * WORKGROUP];", (OUTER,)),
    Mutant("beta comes in with each window of k", "shaders/finish.glsl", "bool take_c = has(FIRST_K);", "bool take_c = true;", (NAIVE,)),
    Mutant("the residual is read with rows and columns swapped", "shaders/finish.glsl", "place_in_c(row, column, d_at)",
           "place_in_c(column, row, d_at)", (NAIVE,)),
    Mutant("the bias comes in with each window of k", "shaders/finish.glsl", "  if (has(LAST_K)) {\n#if BIAS", "  if (true) {\n#if BIAS",
           (NAIVE,)),
    # Indexed operands.
    Mutant("the table of A begins at the first k of all windows", "src/engine/execute_product.cpp", "a_columns = begin(1, step_.k0)",
           "a_columns = begin(1, 0)", (INDEXED,)),
    Mutant("pack takes the tables of B for those of A", "src/engine/execute_product.cpp", "(at_offsets, b_columns, b_rows, 0, 0)",
           "(at_offsets, a_rows, b_rows, 0, 0)", (INDEXED,)),
    Mutant("blocked reads all rows of a vector at the first one's place", "shaders/blocked.comp",
           "load_b(source.lines[e] + at)", "load_b(source.lines[0] + at)", (INDEXED_BLOCKED,)),
    # Codes.
    Mutant("the upper nibbles of a block are its lower ones", "shaders/quantization.glsl", "upper ? byte_at(at) >> 4 : byte_at(at) & 15u",
           "byte_at(at) & 15u", (QUANTISED,)),
    Mutant("blocked takes the scale of a block in the middle of a word from its other half", "shaders/quantization.glsl",
           "float scale = from_16_bits(codes.z, half_word, false);", "float scale = from_16_bits(codes.z, 0, false);", (QUANTISED,)),
    Mutant("gemv takes the fifth bits of another quad", "shaders/quantization.glsl", "chunk.high[0].x >> 4 * q & 15u", "chunk.high[0].x >> 2 * q & 15u",
           (QUANTISED,)),
    Mutant("gemv takes the scale of another group of nvfp4", "shaders/quantization.glsl", "bitfieldExtract(first[0], 8 * i, 8)",
           "bitfieldExtract(first[0], 8 * (3 - i), 8)", (QUANTISED,)),
    Mutant("iq4_nl's codes from 12 on are those from 8 on", "shaders/quantization.glsl", "0xf1d9c5b5u", "0xa6998d81u", (QUANTISED,)),
    Mutant("gemv takes the lower nibbles of q6_k for the upper ones", "shaders/quantization.glsl", "nibbles | bits & 0x30303030u",
           "(word & 0x0f0f0f0fu) | bits & 0x30303030u", (QUANTISED,)),
    # The planner.
    Mutant("A's window begins at the first row", "src/plan/slices.cpp", "window(problem, Role::a, cursor.m0, cursor.k0, item, piece)",
           "window(problem, Role::a, 0, cursor.k0, item, piece)", (PLANS,)),
    Mutant("B's window begins at the first k", "src/plan/slices.cpp", "window(problem, Role::b, cursor.k0, cursor.n0, item, piece)",
           "window(problem, Role::b, 0, cursor.n0, item, piece)", (PLANS,)),
    Mutant("C's window begins at the first item", "src/plan/slices.cpp", "step.c = window(problem, Role::c, cursor.m0, cursor.n0, item",
           "step.c = window(problem, Role::c, cursor.m0, cursor.n0, 0", (PLANS,)),
    Mutant("the bias of columns begins at the piece's row", "src/plan/slices.cpp", "step.bias = {cursor.n0 * bias_bytes, columns",
           "step.bias = {cursor.m0 * bias_bytes, columns", (PLANS,)),
    Mutant("no barrier between windows of k", "src/plan/slices.cpp", "return cursor.k0 > 0 || first_piece;", "return first_piece;", (PLANS,)),
    Mutant("no barrier between packing and multiplying", "src/plan/slices.cpp", "return stage != Stage::pack_b ||",
           "return stage == Stage::pack_a || stage == Stage::reduce ||", (PLANS,)),
    Mutant("A is packed for the first piece alone", "src/plan/slices.cpp", "plan.packs(Role::a) && (first_column ||",
           "plan.packs(Role::a) && ((first_column && first_row) ||", (PLANS,)),
    Mutant("a window has no room for its offset's alignment", "src/plan/cut.cpp", "int_max) / 4 * 4 - slack;", "int_max) / 4 * 4 - 0 * slack;",
           (PLANS,)),
    Mutant("pieces may straddle bands", "src/plan/cut.cpp", "if (bands[i] != 0) piece_", "if (false) piece_", (PLANS,)),
    Mutant("a layer too many in a dispatch", "src/plan/slices.cpp",
           "grid.max_layers = std::min(largest.groups[2], largest.groups_product / (grid.x * grid.y));",
           "grid.max_layers = std::min(largest.groups[2], largest.groups_product / (grid.x * grid.y)) + 1;", (PLANS,)),
    Mutant("the last rows of a grid are left out", "src/plan/slices.cpp", "grid.y = ceil_div(piece.m, block.rows);",
           "grid.y = std::max<std::int64_t>(1, piece.m / block.rows);", (PLANS,)),
    Mutant("16 bytes are read wherever A and B begin", "src/kernels/kernels.cpp", "!problem.items && operand.aligned &&",
           "!problem.items && (operand.aligned || true) &&", (PLANS,)),
    Mutant("the bias of rows stays so in the transposed product", "src/plan/problem.cpp",
           "? Bias::for_each_column : Bias::for_each_row;\n  return result;", "? Bias::for_each_row : Bias::for_each_column;\n  return result;",
           (BLOCKED,)),
    # The engine.
    Mutant("an engine's end frees names in whichever context is current", "src/engine/engine.cpp",
           "gl::has_current(state_->api) && state_->is_current()", "gl::has_current(state_->api)", (LIFETIMES,)),
    Mutant("an engine's end calls OpenGL without a context", "src/engine/engine.cpp", "gl::has_current(state_->api) && ", "", (LIFETIMES,)),
    Mutant("the last half-word of a buffer is not bound", "src/engine/dispatch.cpp", "round_up(size_bytes + rest, 4)",
           "(size_bytes + rest) / 4 * 4", (products("tiled:tile=4", "f16"),)),
    Mutant("all items have the panels of the first", "src/engine/execute_product.cpp",
           "return static_cast<int>(round_up(rows, width) * step_.padded_k *", "return 0 * static_cast<int>(round_up(rows, width) * step_.padded_k *",
           (REGISTER,)),
    Mutant("B is not conjugated", "src/engine/execute_product.cpp",
           "(plan_.problem.b.op == Op::conjugate_transpose ? conjugate_b : 0);", "0;",
           (products("tiled:tile=4", "c64"),)),
    Mutant("a column of B that the workgroup shares is not conjugated", "shaders/shared_columns.glsl",
           "conjugate_if(CONJUGATE_B, x[e])", "x[e]", (gl_case("gemv reads A*"),)),
    # Quantised matrices on the host.
    Mutant("q4_0's neighbours share a byte", "src/base/quantization.cpp", "b[k % bytes] >> (k / bytes * 4)", "b[k / 2 % bytes] >> (k % 2 * 4)", (WEIGHTS,)),
    Mutant("q4_k takes the upper bits of another scale", "src/base/quantization.cpp", "packed[group - 4] >> 6", "packed[group + 4] >> 6", (WEIGHTS,)),
    Mutant("rows begin within a block", "src/base/quantization.cpp", "row * arrays.blocks + k / facts.codes",
           "row * columns / facts.codes + k / facts.codes", (WEIGHTS,)),
    Mutant("a row's zeros begin within a byte", "src/base/quantization.cpp", "ceil_div(arrays.blocks * x.bits, 8), group",
           "(arrays.blocks * x.bits / 8), group", (WEIGHTS,)),
    Mutant("codes by a scale that is not rounded", "src/weights/quantize.cpp",
           "const float factor = reciprocal(store_scale(scale_at, quantization.scales, scale));",
           "store_scale(scale_at, quantization.scales, scale); const float factor = reciprocal(scale);", (WEIGHTS,)),
    Mutant("a .gguf tensor may end beyond its file", "src/weights/gguf.cpp", "tensor.bytes > data - tensor.offset",
           "tensor.offset + tensor.bytes < 0", (WEIGHTS,)),
    Mutant("sizes of a model's tensor overflow", "src/weights/model_file.cpp", "if (count > max_count / size)", "if (false)", (WEIGHTS,)),
    Mutant("tensors of a model overlap in a byte", "src/weights/model_file.cpp", "if (second.offset < first.offset + first.bytes)",
           "if (second.offset + 1 < first.offset + first.bytes)", (WEIGHTS,)),
    Mutant("a .safetensors file may end with more", "src/weights/safetensors.cpp", "if (end != present)", "if (end > present)",
           (WEIGHTS,)),
    Mutant("GPTQ's zero of 0 becomes 16", "src/weights/packed_layers.cpp", "+ less) % (1 << bits)", "+ less)", (WEIGHTS,)),
    # Convolutions.
    Mutant("each piece of a convolution copies the rows of the first one", "src/plan/convolution_steps.cpp",
           "  first[plan.axis] += input_row(plan, place.row);\n", "", (CONVOLUTIONS,)),
    Mutant("each group of a convolution has the bias of the first one", "src/engine/execute_convolution.cpp",
           "convolution.bias.offset_bytes() + output_channel * element_bytes(problem.output_type),", "convolution.bias.offset_bytes(),",
           (CONVOLUTIONS,)),
    Mutant("each step of a large copy reads what the first one does", "src/engine/execute_convolution.cpp",
           "begin + volume * work.volume, work.line", "begin, work.line", (CONVOLUTIONS,)),
    Mutant("the copy reads vectors from the middle of a line", "src/plan/convolution.cpp",
           "(cuts_lines ? in.step[2] : first * in.step[2])", "(first * in.step[2])", (CONVOLUTIONS,)),
    Mutant("a convolution's copy lies where its products work", "src/plan/convolution.cpp",
           "copied > 0 ? kernels::workspace_aligned(needed) : 0;", "0;", (CONVOLUTION_PLANS, CONVOLUTIONS)),
    Mutant("each phase of a transposed convolution writes where the first one does", "src/plan/convolution.cpp",
           "(phase[d]->first + q[d] * phase[d]->step) * out.step[d]", "q[d] * phase[d]->step * out.step[d]",
           (CONVOLUTION_PLANS, CONVOLUTIONS)),
    Mutant("the copy reads the plane behind an image", "shaders/border.comp", "plane < size.w;", "plane <= size.w;", (CONVOLUTIONS,)),
    Mutant("a buffer that was deleted and made anew is still mapped as it was", "src/engine/library.cpp",
           "if (!has(use.own, known) && !gl::is_marked(state.api, known)) unregister(state, known);", "if (known == 0) unregister(state, known);", (VENDOR,)),
    Mutant("cuBLAS multiplies by alpha, and the shader that ends C once more", "src/engine/library.cpp", "result.alpha = 1, result.beta = 0;",
           "result.beta = 0;", (VENDOR,)),
    Mutant("a fence in a scope does not have CUDA give the buffers back", "src/engine/state.cpp", "  if (!keeps_mapped) unmap_buffers();", "  if (keeps_mapped) unmap_buffers();", (VENDOR,)),
    Mutant("what is left of a batch begins at its first item", "src/engine/library.cpp", "*offsets = offsets->subspan(static_cast<std::size_t>(items));",
           "*offsets = offsets->first(offsets->size() - static_cast<std::size_t>(items));", (VENDOR,)),
    Mutant("the application's context of CUDA's is not current again", "src/vendor/library.cpp", "    functions_.pop_context.call(&ours);\n", "    (void)ours;\n",
           (VENDOR,)),
    Mutant("failures in a row are no reason to leave cuBLAS alone", "src/engine/library.cpp", "  if (++state.library->failures < most_failures", "  if (most_failures < 0", (VENDOR,)),
    # The C interface.
    Mutant("the residual in C has no tables", "src/c/convert.cpp", "if (gemm.epilogue.residual) gemm.epilogue.residual->indexing = gemm.c.indexing;", "",
           (C_FIELDS,)),
    Mutant("offsets of B in C are those of A", "src/c/convert.cpp", ".offsets_b = offsets(given.offsets_b)", ".offsets_b = offsets(given.offsets_a)",
           (C_FIELDS,)),
    Mutant("codes in C that a function reads have no scales", "src/c/convert.cpp", "read(section, to.codes, to.scales, to.zeros);",
           "read(section, to.codes, to.zeros, to.zeros);", (C_FIELDS,)),
    Mutant("a convolution in C is padded behind as before", "src/c/convolutions.cpp", "result.padding.after = extents(given_.after);",
           "result.padding.after = extents(given_.before);", (C_FIELDS,)),
    Mutant("structs of former programs in C lie as far apart as this library's", "src/c/core.hpp",
           "const std::size_t step = need(given, array).struct_size;", "const std::size_t step = (need(given, array), sizeof(Struct));",
           (gl_case("C: programs of before*"),)),
    Mutant("the options of a group in C are not handed on", "src/c/products.cpp",
           "used.gemm(converted.add_all(in, products, count), to_options(in, options));", "used.gemm(converted.add_all(in, products, count), to_options(in, nullptr));",
           (gl_case("C: options that name nothing*"),)),
    # What random products do not draw.
    Mutant("a small slice lowers a program's rate", "src/engine/pace.cpp",
           "  if (known() && measured < per_second && seconds <= expected) return;\n", "",
           (case("pace*"),)),
    Mutant("tables copied for a job are another product's", "src/engine/offsets.cpp",
           "(!made.is_copied || known.use_count() == 1)", "true",
           (gl_case("indexed operands: a job keeps*"),)),
    Mutant("tables that a job has are deleted", "src/engine/offsets.cpp",
           "return each.use_count() == 1; });", "return each != nullptr; });",
           (gl_case("indexed operands: a job keeps*"),)),
    Mutant("images of operands outlive a product", "src/engine/execute.cpp",
           "for (gl::BufferImage& image : state_.operand_images) gl::release_image(state_.api, image);", "{}",
           (gl_case("buffers come and go*"),)),
    Mutant("a scope remembers the size of a matrix that is gone", "src/engine/device_matrix.cpp",
           "  std::erase_if(state_->sizes, [&](const auto& known) { return is_mine(known.first); });\n", "",
           (gl_case("buffers come and go*"),)),
    Mutant("an image remembers a matrix that is gone", "src/engine/device_matrix.cpp",
           "if (is_mine(image.buffer)) image.begin = -1;", "if (is_mine(image.buffer)) continue;",
           (gl_case("buffers come and go*"),)),
    Mutant("a named kernel that was struck off is Unsupported", "src/engine/prepare.cpp",
           "if (!each.refused || !options.kernel) result", "result",
           (gl_case("refused: a kernel whose*"),)),
    Mutant("sizes of buffers outlive their scope", "src/engine/state.cpp",
           "  engine.sizes.clear();\n", "",
           (gl_case("buffers in every state: each scope*"),)),
    Mutant("a display list that is compiled is not asked for", "src/gl/context.cpp",
           "const GLint list = api.lists ? compiled_list(api) : 0;", "const GLint list = 0;",
           (gl_case("while a display list*"),)),
    Mutant("subroutine uniforms are not put back", "src/gl/state.cpp",
           "if (subroutines_.empty() ||", "if (true ||",
           (gl_case("subroutine uniforms*"),)),
    Mutant("only neighbouring items of C are compared", "src/engine/validate.cpp",
           "i < batch.count && i * step < span; ++i)", "i < 2 && i * step < span; ++i)",
           (gl_case("interleaved blocks*"),)),
    Mutant("NaN is multiplied by an item's alpha of 0", "shaders/finish.glsl",
           "!has(READ_C) && ALPHA(z) != ACC(0)", "!has(READ_C)",
           (gl_case("an item whose alpha*"),)),
    Mutant("words of a tensor are written though it begins in one's middle", "shaders/texture.comp",
           "if ((c_at.x & 1) == 0 && (channels & 1) == 0) {", "if ((channels & 1) == 0) {",
           (gl_case("textures: each format*"),)),
    Mutant("an unknown processor goes before this one", "src/engine/tuning.cpp",
           "(same_processor ? 0U : 2U) + (same_driver ? 0U : 1U)", "(same_processor ? 0U : 1U) + (same_driver ? 0U : 2U)",
           (case("tuning: what one*"),)),
]
