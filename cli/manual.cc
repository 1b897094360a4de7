// Describes the command line for shells and `man`, from its own definition: `tandem completion`, `tandem man`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "reports/run/report.h"

namespace tandem {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Returns the options that have a name, not only a position.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_lnames().empty()) options.push_back(option);
  }
  return options;
}

std::string long_name(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}

// Returns the words of an option that accepts only a few, separated by blanks: its type is "TEXT:{real,none}" or
// "TEXT:real|none".
std::string words_of_option(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  std::string words = type.substr(type.find(':') + 1);
  if (words.starts_with('{')) {
    words = words.substr(1, words.find('}') - 1);
  } else if (words.find('|') == std::string::npos) {
    return "";
  }
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == ',' || c == '|'; }, ' ');
  return words;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

std::string names_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> commands = {"--help", "--version"};
  std::string values, options;
  for (const CLI::App* command : commands_of(app)) {
    commands.push_back(command->get_name());
    std::vector<std::string> names;
    for (const CLI::Option* option : options_of(*command)) {
      names.push_back(long_name(*option));
      const std::string words = words_of_option(*option);
      if (words.empty()) continue;
      values += fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                            command->get_name(), long_name(*option), words);
    }
    options += fmt::format("    '{} -'*) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n", command->get_name(),
                           names_text(names));
  }
  return fmt::format(R"(_tandem() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W '{}' -- "$word"))
    return
  fi
  case "$command $before" in
{}  esac
  case "$command $word" in
{}  esac
  COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _tandem tandem
)",
                     names_text(commands), values, options);
}

// Puts the text in single quotes, for fish.
std::string fish_quoted(const std::string& text) {
  std::string text_in_quotes = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') text_in_quotes += '\\';
    text_in_quotes += c;
  }
  return text_in_quotes + "'";
}

std::string fish_completion(const CLI::App& app) {
  std::string text = "complete -c tandem -n __fish_use_subcommand -f\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format("complete -c tandem -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
                        fish_quoted(command->get_description()));
    for (const CLI::Option* option : options_of(*command)) {
      const std::string words = words_of_option(*option);
      const std::string value = words.empty() ? (takes_value(*option) ? " -r" : "") : " -xa " + fish_quoted(words);
      text += fmt::format("complete -c tandem -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n", command->get_name(),
                          option->get_lnames().front(), value, fish_quoted(option->get_description()));
    }
  }
  return text;
}

std::string completion_for(const CLI::App& app, const std::string& shell) {
  if (shell == "fish") return fish_completion(app);
  if (shell == "bash") return bash_completion(app);
  return "#compdef tandem\nautoload -U +X bashcompinit && bashcompinit\n" + bash_completion(app);
}

// Escapes text for a manual page, where a backslash, or a dot at the beginning of a line, begins a command, and a minus
// must be one that can be typed.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    const bool begins_line = escaped.empty() || escaped.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\' || c == '-') escaped += '\\';
    escaped += c == '\\' ? "e" : std::string(1, c);
  }
  return escaped;
}

std::string option_roff(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += "-" + name + ", ";
  names += long_name(option);
  std::string type = takes_value(option) ? option.get_type_name() : "";
  type = type.substr(0, type.find(':'));  // without the range of a number
  if (const std::string words = words_of_option(option); !words.empty()) type = words;
  std::replace(type.begin(), type.end(), ' ', '|');
  return fmt::format(".TP\n\\fB{}\\fR {}\n{}\n", roff(names), roff(type), roff(option.get_description()));
}

std::string manual_page(const CLI::App& app) {
  std::string text =
      fmt::format(".TH TANDEM 1 \"\" \"tandem {}\"\n.SH NAME\ntandem \\- {}\n", version(), roff(app.get_description()));
  text += ".SH SYNOPSIS\n\\fBtandem\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n";
  for (const CLI::App* command : commands_of(app)) {
    std::string places;
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) places += " \\fI" + roff(option->get_name()) + "\\fR";
    }
    text += fmt::format(".SH TANDEM {}\n\\fBtandem {}\\fR{} [\\fIOPTION\\fR]...\n.PP\n{}.\n", command->get_name(),
                        command->get_name(), places, roff(command->get_description()));
    for (const CLI::Option* option : options_of(*command)) text += option_roff(*option);
  }
  return text + ".SH EXIT STATUS\n" + roff(app.get_footer()) + "\n";
}

}  // namespace

void add_manual(CLI::App& app, Action& action) {
  auto common = std::make_shared<CommonOptions>();
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes tandem's command lines");
  completion->add_option("shell", *shell, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_common_options(*completion, *common, false);
  completion->callback([common, shell, &app, &action] {
    action = [common, shell, &app] {
      Output(*common).write_document(completion_for(app, *shell));
      return kOk;
    };
  });
  CLI::App* man = app.add_subcommand("man", "Print the manual page");
  add_common_options(*man, *common, false);
  man->callback([common, &app, &action] {
    action = [common, &app] {
      Output(*common).write_document(manual_page(app));
      return kOk;
    };
  });
}

}  // namespace tandem
