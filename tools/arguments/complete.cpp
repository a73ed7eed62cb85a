// What a command line can go on with.
#include "arguments/help.hpp"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <glgemm/inspect.hpp>

#include "arguments/options.hpp"

namespace glgemm::tools {
namespace {

/// What a metavariable allows: see options.hpp. Adds to `completion` what begins with `prefix`.
void add_values(Completion& completion, const std::string& values, const std::string& prefix, const std::string& before) {
  const auto add = [&](const std::string& word) {
    if (word.starts_with(prefix)) completion.words.push_back(before + word);
  };
  for (std::size_t begin = 0; begin <= values.size();) {
    const std::size_t end = std::min(values.find('|', begin), values.size());
    const std::string value = values.substr(begin, end - begin);
    begin = end + 1;
    if (value == "FILE" || value == "FOLDER")
      completion.files = true;
    else if (value == "TYPE" || value == "FORMAT") {
      for (const Type type : all_types) add(std::string(to_string(type)));
      for (const QuantizedFormatInfo& format : quantized_format_table)
        if (value == "FORMAT" && format.bytes > 0) add(std::string(format.name));
    } else if (value == "KERNEL") {
      for (const auto* const kernels : {&kernel_table(), &library_kernels()})
        for (const Kernel& kernel : *kernels) add(std::string(name(kernel)));
    } else if (value == "CLASS")
      for (const DeviceClassInfo& info : device_classes()) add(std::string(info.name));
    else if (std::none_of(value.begin(), value.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
      add(value);
  }
}

Completion values_of(const CLI::Option& option, const std::string& word) {
  Completion completion;
  std::string values = metavariable(option);
  if (values.starts_with('[') && values.ends_with(']')) values = values.substr(1, values.size() - 2);
  std::string before;
  for (const auto& [more, separator] : {std::pair("[,...]", ','), std::pair("[/FORMAT]", '/')})
    if (const std::size_t list = values.find(more); list != std::string::npos) {
      values.resize(list);
      before = word.substr(0, std::max(before.size(), word.rfind(separator) + 1));  // npos + 1 is 0
    }
  add_values(completion, values, word.substr(before.size()), before);
  return completion;
}

Completion names_that_begin(const std::string& word, std::vector<std::string> names) {
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(word); });
  return {std::move(names), false};
}

const CLI::Option* find_option(const CLI::App& verb, const std::string& name) {
  if (!name.starts_with('-')) return nullptr;
  for (const CLI::Option* option : verb.get_options())
    if (option->check_name(name)) return option;
  return nullptr;
}

}  // namespace

Completion complete(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return {};
  if (words.back() == "=") words.back().clear();
  const std::string word = words.back();
  words.pop_back();
  std::erase(words, "=");

  const std::vector<std::string> verbs = verb_names(app);
  const auto found = std::find_first_of(words.begin(), words.end(), verbs.begin(), verbs.end());
  if (found == words.end()) return names_that_begin(word, word.starts_with('-') ? option_names(app) : verbs);
  const CLI::App& verb = *app.get_subcommand(*found);

  const std::string before = std::next(found) == words.end() ? "" : words.back();
  if (before == ":") return {};  // inside a kernel's parameters
  const CLI::Option* const option = find_option(verb, before);
  const bool takes_value = option && option->get_expected_max() > 0;
  if (takes_value && !(option->get_expected_min() == 0 && word.starts_with('-'))) return values_of(*option, word);
  const bool has_arguments = !verb.get_options([](const CLI::Option* x) { return !x->nonpositional(); }).empty();
  if (!word.starts_with('-') && has_arguments) return {{}, true};
  return names_that_begin(word, option_names(verb));
}

}  // namespace glgemm::tools
