// What a command line's description says to people.
#include "arguments/help.hpp"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>

#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// The paragraphs of a text. Lines that begin with a space stay as they are.
std::string paragraphs(const std::string& text) {
  std::string result, paragraph;
  const auto end = [&] {
    if (!paragraph.empty()) result += wrapped(paragraph) + '\n';
    paragraph.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ') {
      paragraph += line + ' ';
      continue;
    }
    end();
    result += line + '\n';
  }
  end();
  return result;
}

/// "  NAMES   description", the description from column `indent` on.
std::string entry(const std::string& names, const std::string& description, std::size_t indent) {
  std::string line = "  " + names;
  if (line.size() + 2 <= indent)
    line.resize(indent, ' ');
  else
    line += '\n' + std::string(indent, ' ');
  return line + wrapped(description, indent) + '\n';
}

std::string names_of(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  return names;
}

bool is_positional(const CLI::Option& option) {
  return option.get_lnames().empty() && option.get_snames().empty();
}

std::string description_of(const CLI::Option& option) {
  const std::string value = option.get_expected_min() == 0 ? "" : option.get_default_str();
  return option.get_description() + (value.empty() ? "" : " (default: " + value + ")");
}

std::string options_text(const CLI::App& app, const std::string& group) {
  constexpr std::size_t indent = 26;
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() != group || is_positional(*option)) continue;
    const std::string value = metavariable(*option);
    text += entry(names_of(*option) + (value.empty() ? "" : " " + value), description_of(*option), indent);
  }
  return text;
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string text = "Usage: " + name;
  if (app.get_require_subcommand_min() > 0) return text + " VERB [OPTION...]";
  for (const CLI::Option* option : app.get_options())
    if (is_positional(*option))
      text += (option->get_required() ? " " : " [") + option->get_name() + (option->get_required() ? "" : "]");
  for (const CLI::Option* option : app.get_options())
    if (option->get_required() && !is_positional(*option))
      text += " " + names_of(*option).substr(0, names_of(*option).find(',')) + " " + metavariable(*option);
  return text + " [OPTION...]";
}

/// How many letters must be added, removed, replaced, or exchanged with the next one.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const std::string name = closest(word, names);
  return name.empty() ? "" : ": did you mean '" + name + "'?";
}

}  // namespace

std::string metavariable(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return {};
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));  // behind it stands what a check allows
}

std::string help_text(const CLI::App& app, const std::string& name) {
  std::string text = usage(app, name) + "\n\n" + wrapped(app.get_description()) + "\n";
  if (app.get_require_subcommand_min() > 0) {
    text += "\nVerbs:\n";
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
      if (!verb->get_group().empty()) text += entry(verb->get_name(), verb->get_description(), 14);
  }
  std::string arguments;
  for (const CLI::Option* option : app.get_options())
    if (is_positional(*option)) arguments += entry(option->get_name(), description_of(*option), 26);
  if (!arguments.empty()) text += "\nArguments:\n" + arguments;
  std::vector<std::string> groups = app.get_groups();
  std::rotate(groups.begin(), groups.begin() + 1, groups.end());  // the first one has --help
  for (const std::string& group : groups)
    if (const std::string options = group.empty() ? "" : options_text(app, group); !options.empty())
      text += '\n' + group + ":\n" + options;
  if (!app.get_footer().empty()) text += '\n' + paragraphs(app.get_footer());
  return text;
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string closest(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names)
    if (const std::size_t letters = distance(word, name); letters < least) {
      least = letters;
      best = name;
    }
  return best;
}

std::string no_verb(const CLI::App& app, const std::string& word) {
  return "'" + word + "' is not a verb" + did_you_mean(word, verb_names(app)) + " (--help lists them)";
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto verbs = app.get_subcommands();
  const CLI::App& verb = verbs.empty() ? app : *verbs.front();
  // What is not known goes first: it may be the reason why something else is missing.
  const std::vector<std::string> extras = verb.remaining();
  if (app.get_require_subcommand_min() > 0 && verbs.empty())
    return extras.empty() ? "a verb is missing" : no_verb(app, extras.front());
  for (const std::string& extra : extras)
    if (extra.starts_with('-')) {
      const std::string option = extra.substr(0, extra.find('='));
      return "'" + option + "' is not an option" + did_you_mean(option, option_names(verb)) + " (--help lists them)";
    }
  if (!extras.empty()) return "'" + extras.front() + "' is one argument too many (--help explains)";
  const std::string message = error.what();
  const CLI::Option* const option = verb.get_option_no_throw(message.substr(0, message.find(':')));
  if (option && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch))
    return option->get_name() + " needs a value: " + metavariable(*option) + " (--help explains)";
  return message + " (--help explains)";
}

}  // namespace glgemm::tools
