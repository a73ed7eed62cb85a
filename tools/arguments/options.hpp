// Options that several verbs have: one spelling, one metavariable and one sentence for each.
//
// A metavariable says what a value may be, to people and to the completion of the shell. Words in lower case are meant literally;
// FILE and FOLDER stand for names of files, TYPE, FORMAT and KERNEL for names that the library knows; "|" separates alternatives.
// "[,...]" at the end makes the value a list, and "[/FORMAT]" lets it have a second one behind a slash.
#pragma once

#include <functional>
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
}  // namespace CLI

namespace glgemm::tools {

// CLI11 takes seconds in each file that includes it: the verbs know it by these two classes.

/// What is wrong with a value, in a sentence; empty if nothing is.
using ValueCheck = std::function<std::string(const std::string& value)>;

/// An option of a verb, to be described further.
class Option {
 public:
  Option() = default;
  explicit Option(CLI::Option* option) : option_(option) {}

  bool is_given() const;
  std::string name() const;
  Option required() const;
  Option hidden() const;
  Option check(const ValueCheck& check) const;
  Option needs(Option other) const;
  Option excludes(std::initializer_list<Option> others) const;
  /// Given again, it has one more value: a value is one word.
  Option one_word_each() const;
  Option metavariable(const char* text) const;
  Option describe_further(const std::string& text) const;

 private:
  CLI::Option* option_ = nullptr;
};

/// A verb of the tool, or a program that has none.
class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(&app) {}
  /// A new one of the program's verbs.
  Verb(CLI::App& app, const char* name, const char* description);

  CLI::App& app() const { return *app_; }
  Option flag(const char* name, bool& value, const char* description);
  /// The option that has this name.
  Option option(const std::string& name) const;
  /// The heading in the help of the options that are added from now on.
  void begin_group(const char* heading);
  /// Behind the options in the help.
  void footer(const std::string& text);
  /// What it does. An exception of that ends the program with its message.
  void on_run(const std::function<void()>& run);
  void hide();

 private:
  CLI::App* app_;
};

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
  Option shape, size, shapes;
};
/// --shape, --size and --shapes, one of which may be given, and --op-a and --op-b.
ShapeOptions add_shapes(Verb& verb, ShapeArguments& arguments);

/// Every pair of an op of A and one of B.  @throws std::invalid_argument  as parse_op
std::vector<std::pair<Op, Op>> ops_of(const ShapeArguments& arguments);

/// The products of the file; else each of `shapes`, else each of `sizes`, with every pair of ops. None if none is named.
/// @throws std::invalid_argument, FileError  as read_shapes() and parse_shape(), or the file has no shapes
std::vector<Shape> shapes_of(const ShapeArguments& arguments);

/// An option with a value. T is a text, a list of texts, a number, or one of these that may be missing.
template <class T>
Option add_option(Verb& verb, const char* names, T& value, const char* metavariable, const std::string& description);
/// The same, and its help shows the value that stands there now.
template <class T>
Option add_option_with_default(Verb& verb, const char* names, T& value, const char* metavariable, const std::string& description);

/// Refuses what is not a number (of an integer type: a whole one) from `least` to `most`. T is int, std::int64_t or double.
template <class T>
ValueCheck in_range(T least, T most);

/// Refuses what is not the name of a file that exists.
ValueCheck existing_file();

/// Refuses a value that is not one of these words.
ValueCheck one_of(const std::vector<std::string>& words);

/// The option goes with none of the others that the verb has by now, but for these.
void exclude_all_but(Verb& verb, Option option, std::initializer_list<std::string_view> others);

/// A number as `parse`, which is parse_size or parse_bytes, reads it.
Option add_number(Verb& verb, const std::string& name, std::optional<std::int64_t>& number,
                  std::int64_t (*parse)(std::string_view text, std::string_view what), const char* metavariable,
                  const std::string& description);

Option add_op_a(Verb& verb, std::string& op);
Option add_op_b(Verb& verb, std::string& op);
/// --type of what parse_formats() reads.
Option add_types(Verb& verb, std::string& types);
Option add_batch(Verb& verb, std::string& batch);
Option add_kernel(Verb& verb, std::string& kernel);
Option add_precision(Verb& verb, std::string& precision);
Option add_vendor(Verb& verb, std::string& vendor);
/// The options of an engine with what add_vendor() has read. What it says of that library goes to the standard error.
EngineOptions with_vendor(EngineOptions options, const std::string& vendor);
/// --digits; by default it is about an output.
Option add_digits(Verb& verb, int& digits,
                  const std::string& description =
                      "How many significant digits the floats of a .csv or .mtx output have (default: as few as give "
                      "each number again when they are read)");
Option add_device(Verb& verb, std::string& device);
/// Sets the variable GLGEMM_API, for the contexts of this process and of those that it starts.
Option add_api(Verb& verb);

/// --json [FILE]: where a verb writes JSON. It goes to the standard output where FILE is missing or "-".
class JsonOutput {
 public:
  /// `what`: "results and ratios". Another format has an option of its own.
  Option add_option(Verb& verb, const std::string& what, const char* name = "--json", const char* format = "JSON");
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
