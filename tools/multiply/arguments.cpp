// The command line of glgemm multiply, and what verify has of it.
#include <memory>

#include "arguments/options.hpp"
#include "multiply/multiply.hpp"
#include "product/shapes.hpp"
#include "verbs.hpp"

namespace glgemm::tools {

void add_product_options(Verb& verb, ProductArguments& arguments) {
  add_option(verb, "A", arguments.a, "FILE",
             "The left factor, a .npy file of bool, integers, float16, float32, float64, complex64 or complex128, or another "
             "file (see below)")
      .required();
  add_option(verb, "B", arguments.b, "FILE", "The right factor, likewise").required();
  add_option(verb, "--type", arguments.type, "TYPE",
             "Convert the factors to one of " + type_names() +
                 " (default: none where theirs are summed in one type, else to the type that they promote to, as in NumPy)");
  add_option_with_default(verb, "--op-a", arguments.op_a, "n|t|c", "n: A as it is; t: its transpose; c: its conjugate transpose");
  add_op_b(verb, arguments.op_b);
  add_option_with_default(verb, "--alpha", arguments.alpha, "X",
                          "A number that the product is multiplied by; complex as in 1-2i");
  add_option_with_default(verb, "--beta", arguments.beta, "X", "A number that --c is multiplied by before it is added");
  add_option(verb, "--c", arguments.c, "FILE", "The matrix that beta multiplies, of the product's shape");
  verb.flag("--header", arguments.header, "Leave out the first line of each .csv file that is read: titles");
  add_number(
      verb, "--batch", arguments.batch, parse_size, "N",
      "Multiply N matrices by N: arrays of three dimensions, the first of which is N; one of two dimensions is used for all");
}

constexpr const char* multiply_footer =
    "A file's ending is its format: .csv (numbers between commas, a row a line), .mtx (Matrix Market, dense or sparse), .npz (an "
    "archive; A.npz:x is its array x), .gguf and .safetensors (models, which are only read; A.gguf:x is the tensor x), and .npy "
    "for all others. - is the standard input or output, as .npy; messages then go to the standard error. An array of one "
    "dimension is a row as A and a column as B, as in numpy.matmul. int64 and other integers that no device has are multiplied "
    "in a type in which the product of these numbers is exact, or refused.\n"
    "\n"
    "Where A, B, C and --c, with the device's copies of them, need more main memory than is to be had (twice their bytes against "
    "MemAvailable), or where --memory-limit, --device-memory-limit, --accelerators or --resume is given, the product is "
    "streamed: read, computed and written piece by piece. What is done lies in OUTPUT.glgemm-part, and which pieces in "
    "OUTPUT.glgemm-journal, until all is done; they stay when the run is interrupted, however it is, and --resume goes on with "
    "them. Streamed matrices are .npy files and tensors of models.";

void add_multiply(CLI::App& app, int& status) {
  auto arguments = std::make_shared<MultiplyArguments>();
  Verb verb(app, "multiply", "Multiply two matrices from files");
  verb.footer(multiply_footer);
  add_product_options(verb, *arguments);
  add_option(verb, "-o,--output", arguments->output, "FILE",
             "Where to write the product, of the type of its sums: the factors', but float32 for floats of 16 and 8 bits and for "
             "quantised ones, and int32 for small integers; a file "
             "that exists is replaced when the product is right")
      .required();
  verb.flag("--force", arguments->force, "Let an output replace an input");
  add_digits(verb, arguments->digits);
  add_option(verb, "--c-type", arguments->c_type, "TYPE",
             "f16: round the product of float16 factors to float16 (default: float32)");
  add_option(verb, "--image", arguments->image, "FILE", "Draw the product as a heat map, as .png");
  add_option(verb, "--error-image", arguments->error_image, "FILE",
             "Draw the error of each element against its bound, as .png (computes the whole product on the CPU too)");
  add_option_with_default(verb, "--check", arguments->check, "none|probe|full",
                          "Check the product before it is written: none; probe, a sample of it; full, all of it on the CPU too")
      .check(one_of({"none", "probe", "full"}));
  add_kernel(verb, arguments->kernel);
  add_precision(verb, arguments->precision);
  add_vendor(verb, arguments->vendor);
  const Option device = add_device(verb, arguments->device);
  add_api(verb);
  add_number(verb, "--memory-limit", arguments->memory_limit_bytes, parse_bytes, "BYTES",
             "The most that buffers in main memory and on the device may have together, such as 512M or 2GiB; the driver's own "
             "are not counted");
  add_number(verb, "--device-memory-limit", arguments->device_memory_limit_bytes, parse_bytes, "BYTES",
             "The most that buffers on the device may have (default: 7/8 of what is free there, or half of the main memory)");
  add_option_with_default(
      verb, "--max-dispatch", arguments->max_dispatch_ms, "MS",
      "Give a device no work at a time that takes longer than so many milliseconds, as far as is known, so that others "
      "get their turn and no watchdog strikes")
      .check(in_range(0.01, 1e6));
  add_option(verb, "--accelerators", arguments->accelerators, "LIST",
             "Share the product out among devices, by indices or parts of names, separated by commas (see 'glgemm devices'); "
             "all: every one")
      .excludes({device});
  verb.flag("--resume", arguments->resume, "Go on where an interrupted run with the same files and options ended");
  const Option distributed = verb.flag("--distributed", arguments->distributed,
                                       "Compute on all ranks of MPI, as in 'mpirun -n 4 glgemm multiply A.npy B.npy "
                                       "-o C.npy --distributed'; see docs/distributed.md");
  add_number(
      verb, "--tile", arguments->tile, parse_size, "N",
      "With --distributed: the edge of the square tiles in which the matrices are dealt out to the ranks (default: a power "
      "of two from 256 to 4096, by C's size alone)")
      .needs(distributed);
  add_number(verb, "--run", arguments->run_k, parse_size, "K",
             "With --distributed: how much of k is added up at a time while C's tile stays on the device (default: 4 tiles)")
      .needs(distributed);
  verb.on_run([arguments, &status] { status = multiply(*arguments); });
}

}  // namespace glgemm::tools
