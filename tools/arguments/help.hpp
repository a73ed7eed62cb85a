// What a command line's description says: the text of --help, what a misspelt word may have meant, and what the shell's
// completion (glgemm.bash) may offer.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace glgemm::tools {

/// The text of --help, in lines of at most 80 columns. `name`: of the program and the verb, as in "glgemm bench".
std::string help_text(const CLI::App& app, const std::string& name);

/// The value of an option for people, such as "M,N,K"; empty for a flag.
std::string metavariable(const CLI::Option& option);

/// The verbs that are not hidden.
std::vector<std::string> verb_names(const CLI::App& app);
/// The options that are not hidden, with their dashes.
std::vector<std::string> option_names(const CLI::App& verb);

/// The name that is spelt most like the word: at most a third of its letters differ. Two letters that changed places count as
/// one. Empty if there is none.
std::string closest(const std::string& word, const std::vector<std::string>& names);

/// What is wrong with a word where a verb is meant.
std::string no_verb(const CLI::App& app, const std::string& word);

/// What is wrong with a command line that could not be parsed: one sentence.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

struct Completion {
  std::vector<std::string> words;  ///< what the last word can become
  bool files = false;              ///< it can be the name of a file
};

/// `words`: those behind the program's name, as bash splits them ("--type=f32" is three); the last one is being typed and may be
/// empty.
Completion complete(const CLI::App& app, std::vector<std::string> words);

}  // namespace glgemm::tools
