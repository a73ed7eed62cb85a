// Options that several verbs have: one spelling, one metavariable and one sentence for each.
//
// A metavariable says what a value may be, to people and to the completion of the shell. Words in lower case are meant literally;
// FILE and FOLDER stand for names of files, TYPE, FORMAT and KERNEL for names that the library knows; "|" separates alternatives.
// "[,...]" at the end makes the value a list, and "[/FORMAT]" lets it have a second one behind a slash.
#pragma once

#include <initializer_list>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glgemm/engine.hpp>

#include "files/files.hpp"
#include "product/shapes.hpp"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace glgemm::tools {

/// A verb of the tool. (Each file that makes an App itself has all of CLI11 compiled into it.)
CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& description);

/// The parts of "a,b,c"; one empty part for an empty text.
std::vector<std::string> split_list(std::string_view text);

/// The kernels, or formats, of a list, in which a comma separates kernels, and parameters of one kernel: what has a value but no
/// name belongs to the kernel before, as in "naive,tiled:tile=8,register:tile_m=4,tile_n=8" or "f32,nbits:bits=4,group=32/f32".
std::vector<std::string> split_kernels(std::string_view text);

/// The products that a command line names.
struct ShapeArguments {
  std::vector<std::string> shapes;  ///< each "m,n,k"
  std::string sizes;                ///< "n,n,...": squares
  std::string file;                 ///< as for read_shapes()
  std::string op_a = "n";
  std::string op_b = "n";
};

struct ShapeOptions {
  CLI::Option* shape;
  CLI::Option* size;
  CLI::Option* shapes;
};
/// --shape, --size and --shapes, one of which may be given, and --op-a and --op-b.
ShapeOptions add_shapes(CLI::App& verb, ShapeArguments& arguments);

/// Every pair of an op of A and one of B.  @throws std::invalid_argument  as parse_op
std::vector<std::pair<Op, Op>> ops_of(const ShapeArguments& arguments);

/// The products of the file; else each of `shapes`, else each of `sizes`, with every pair of ops. None if none is named.
/// @throws std::invalid_argument, FileError  as read_shapes() and parse_shape(), or the file has no shapes
std::vector<Shape> shapes_of(const ShapeArguments& arguments);

/// An option with a value. T is a text, a list of texts, a number, or one of these that may be missing.
template <class T>
CLI::Option* add_option(CLI::App& verb, const char* names, T& value, const char* metavariable, const std::string& description);
/// The same, and its help shows the value that stands there now.
template <class T>
CLI::Option* add_option_with_default(CLI::App& verb, const char* names, T& value, const char* metavariable,
                                     const std::string& description);

/// Refuses what is not a number (of an integer type: a whole one) from `least` to `most`. T is int, std::int64_t or double.
template <class T>
CLI::Validator in_range(T least, T most);

/// Refuses a value that is not one of these words.
CLI::Validator one_of(const std::vector<std::string>& words);

/// The option goes with none of the others that the verb has by now, but for these.
void exclude_all_but(CLI::App& verb, CLI::Option* option, std::initializer_list<std::string_view> others);

/// A number as `parse`, which is parse_size or parse_bytes, reads it.
CLI::Option* add_number(CLI::App& verb, const std::string& name, std::optional<std::int64_t>& number,
                        std::int64_t (*parse)(std::string_view text, std::string_view what), const char* metavariable,
                        const std::string& description);

CLI::Option* add_op_a(CLI::App& verb, std::string& op);
CLI::Option* add_op_b(CLI::App& verb, std::string& op);
/// --type of what parse_formats() reads.
CLI::Option* add_types(CLI::App& verb, std::string& types);
CLI::Option* add_batch(CLI::App& verb, std::string& batch);
CLI::Option* add_kernel(CLI::App& verb, std::string& kernel);
CLI::Option* add_precision(CLI::App& verb, std::string& precision);
CLI::Option* add_vendor(CLI::App& verb, std::string& vendor);
/// The options of an engine with what add_vendor() has read. What it says of that library goes to the standard error.
EngineOptions with_vendor(EngineOptions options, const std::string& vendor);
/// --digits; by default it is about an output.
CLI::Option* add_digits(CLI::App& verb, int& digits,
                        const std::string& description =
                            "How many significant digits the floats of a .csv or .mtx output have (default: as few as give "
                            "each number again when they are read)");
CLI::Option* add_device(CLI::App& verb, std::string& device);
/// Sets the variable GLGEMM_API, for the contexts of this process and of those that it starts.
CLI::Option* add_api(CLI::App& verb);

/// --json [FILE]: where a verb writes JSON. It goes to the standard output where FILE is missing or "-".
class JsonOutput {
 public:
  /// `what`: "results and ratios". Another format has an option of its own.
  CLI::Option* add_option(CLI::App& verb, const std::string& what, const char* name = "--json", const char* format = "JSON");
  const std::string& path() const { return path_; }
  bool to_standard_output() const { return path_ == "-"; }
  /// OutputFile::target() of the file, after open(); empty if there is no file.
  std::string target() const { return file_ ? file_->target() : ""; }
  /// Where the text for people goes: the standard output, unless the JSON has that.
  std::ostream& text() const;
  /// Before long work.  @throws FileError  the file cannot be written
  void open();
  bool is_asked_for() const { return !path_.empty(); }
  /// Writes the JSON, a whole text, if it was asked for; that a file is written is said.  @throws FileError
  void write(const std::string& json, std::ostream& said = std::cout);

 private:
  std::string path_;
  std::optional<OutputFile> file_;
};

}  // namespace glgemm::tools
