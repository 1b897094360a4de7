#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "scenarios/import/flag_sources.h"
#include "scenarios/import/shell/shell_script.h"

namespace tandem {
namespace {

// Blanks all lines that are not between the fences of a Markdown text, so that others keep their numbers.
std::string without_prose(std::string_view text) {
  if (!text.starts_with("```") && text.find("\n```") == std::string_view::npos) return std::string(text);
  std::string result;
  bool is_inside = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const bool is_fence = line.starts_with("```");
    if (is_fence) is_inside = !is_inside;
    if (is_inside && !is_fence) result += line;
    result += '\n';
    begin = end + 1;
  }
  return result;
}

bool is_flag_word(const ShellWord& word) {
  const std::string& text = word.shown;
  return text.size() > 2 && text.starts_with("--") && std::isalpha(static_cast<unsigned char>(text[2])) != 0;
}

bool has_sizes(const ShellCommand& words) {
  return std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
    const std::string name = name_of_flag(word.shown.substr(0, word.shown.find_first_of("= ")));
    return is_flag_word(word) && (name == "num_layers" || name == "hidden_size");
  });
}

// Returns how many words come before the arguments of the program: a launcher with its options, and the program.
std::size_t launcher_length(const ShellCommand& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].text.ends_with(".py") && !is_flag_word(words[i])) return i + 1;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_flag_word(words[i])) return i;
  }
  return words.size();
}

struct LauncherOption {
  std::string_view option, flag;
};
// Options of torchrun, srun, mpirun, deepspeed and accelerate, and the flags that mean the same.
constexpr std::array kLauncherOptions = {
    LauncherOption{"ntasks_per_node", "nproc_per_node"},
    LauncherOption{"gres", "nproc_per_node"},
    LauncherOption{"gpus_per_node", "nproc_per_node"},
    LauncherOption{"num_gpus", "nproc_per_node"},
    LauncherOption{"nproc_per_node", "nproc_per_node"},
    LauncherOption{"nodes", "nnodes"},
    LauncherOption{"N", "nnodes"},
    LauncherOption{"num_nodes", "nnodes"},
    LauncherOption{"num_machines", "nnodes"},
    LauncherOption{"nnodes", "nnodes"},
    LauncherOption{"np", "world_size"},
    LauncherOption{"n", "world_size"},
    LauncherOption{"ntasks", "world_size"},
    LauncherOption{"num_processes", "world_size"},
};

// Whether a word is a program that starts the processes of a job.
bool is_launcher(const std::string& word) {
  constexpr std::array<std::string_view, 6> kLaunchers = {"srun", "mpirun", "mpiexec", "orterun", "jsrun", "aprun"};
  const std::string program = word.substr(word.rfind('/') + 1);
  return std::find(kLaunchers.begin(), kLaunchers.end(), program) != kLaunchers.end();
}

class ScriptFlags {
 public:
  ScriptFlags(ShellScript script, Flags& flags) : script_(std::move(script)), flags_(flags) {}

  void read() {
    flags_.notes = script_.notes;
    const ShellCommand command = chosen_command();
    const std::size_t launcher = launcher_length(command);
    read_batch_options();
    read_launcher({command.begin(), command.begin() + static_cast<std::ptrdiff_t>(launcher)});
    read_arguments({command.begin() + static_cast<std::ptrdiff_t>(launcher), command.end()});
    for (const auto& [name, words] : script_.values.all()) {
      if (!words.empty()) flags_.environment[name] = words.front().shown;
    }
  }

 private:
  void note(int line, const std::string& text) { flags_.notes.push_back(fmt::format("line {}: {}", line, text)); }

  // The first command that has the sizes of a model. Lines that are nothing but flags are taken as one command.
  ShellCommand chosen_command() {
    ShellCommand fragments;
    const ShellCommand* chosen = nullptr;
    bool is_noted = false;
    for (const ShellCommand& command : script_.commands) {
      if (is_flag_word(command.front())) {
        fragments.insert(fragments.end(), command.begin(), command.end());
      } else if (has_sizes(command) && chosen != nullptr) {
        if (!is_noted) note(command.front().line, "another command with the sizes of a model is not read");
        is_noted = true;
      } else if (has_sizes(command)) {
        chosen = &command;
      }
    }
    if (chosen != nullptr) {
      ShellCommand whole = *chosen;
      whole.insert(whole.end(), fragments.begin(), fragments.end());
      return whole;
    }
    return has_sizes(fragments) ? fragments : words_of_variables(std::move(fragments));
  }

  // Without such a command: what the variables hold, in the order of the file.
  ShellCommand words_of_variables(ShellCommand words) {
    for (const auto& [name, values] : script_.values.all()) {
      for (const ShellWord& value : values) {
        if (is_flag_word(value) || values.size() > 1) words.push_back(value);
      }
    }
    std::stable_sort(words.begin(), words.end(), [](const ShellWord& a, const ShellWord& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    if (has_sizes(words)) {
      flags_.notes.emplace_back(
          "no command with the sizes of a model is executed here: the flags of all variables are taken");
    }
    return words;
  }

  void read_batch_options() {
    const auto set = [&](const char* variable, const char* flag) {
      const std::vector<ShellWord>* value = script_.values.find(variable);
      if (value == nullptr || value->empty() || flags_.find(flag) != nullptr) return;
      ShellWord option = value->front();
      option.shown = variable;
      const std::string& devices = value->front().text;  // "8", or "gpu:a100:8" of an option --gres
      set_devices(option, flag, devices.substr(devices.rfind(':') + 1));
    };
    set("SLURM_NNODES", "nnodes");
    set("SLURM_GPUS_ON_NODE", "nproc_per_node");
    set("SLURM_NTASKS_PER_NODE", "nproc_per_node");
  }

  // Programs may start each other: srun starts the tasks, and torchrun in each of them the processes of its machine.
  // Then the number of tasks is not that of the processes.
  void read_launcher(const ShellCommand& words) {
    const bool starts_processes = std::any_of(words.begin(), words.end(), [](const ShellWord& word) {
      return name_of_flag(word.shown.substr(0, word.shown.find('='))) == "nproc_per_node" &&
             word.shown.starts_with('-');
    });
    std::string program;  // whose options these are
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& text = words[i].shown;
      if (is_launcher(text)) program = text.substr(text.rfind('/') + 1);
      const std::size_t equals = text.find('=');
      if (!text.starts_with('-')) {
        if (equals != std::string::npos && is_shell_name(text.substr(0, equals)))
          flags_.environment[text.substr(0, equals)] = text.substr(equals + 1);
        continue;
      }
      const std::string name = name_of_flag(text.substr(0, equals));
      const auto known = std::find_if(kLauncherOptions.begin(), kLauncherOptions.end(),
                                      [&](const LauncherOption& option) { return option.option == name; });
      if (known == kLauncherOptions.end()) continue;
      const bool is_short = name == "n" || name == "N" || name == "np";  // other programs have such options, too
      const bool counts_tasks = name == "n" || name == "np" || name == "ntasks";
      if ((is_short && program.empty()) || (counts_tasks && starts_processes)) continue;
      std::string value = equals != std::string::npos ? text.substr(equals + 1)
                          : i + 1 < words.size()      ? words[i + 1].shown
                                                      : "";
      if (name == "gres") value = value.substr(value.rfind(':') + 1);
      const bool counts_processes = name == "N" && program != "srun";  // of a machine; with srun, machines
      set_devices(words[i], counts_processes ? "nproc_per_node" : std::string(known->flag), value);
    }
  }

  void set_devices(const ShellWord& word, const std::string& flag, const std::string& value) {
    if (value == "gpu" || value == "auto") return;
    if (value.find('$') != std::string::npos) {
      return note(word.line, fmt::format("{} {} is not known here (--devices, --workers)",
                                         word.shown.substr(0, word.shown.find('=')), value));
    }
    const bool counts_tasks =
        name_of_flag(word.shown).starts_with("ntasks_per_node") || word.shown == "SLURM_NTASKS_PER_NODE";
    const bool is_one_task = counts_tasks && value == "1";
    if (is_one_task) return;  // it starts the processes of its node itself
    flags_.add({.name = flag, .value = value, .line = word.line, .column = word.column});
  }

  void read_arguments(const ShellCommand& words) {
    Flag current;
    bool is_open = false;
    const auto close = [&] {
      if (is_open) flags_.add(current);
      is_open = false;
    };
    for (const ShellWord& word : words) {
      if (is_flag_word(word)) {
        close();
        const std::size_t end = word.shown.find_first_of("= ");
        current = {
            .name = name_of_flag(word.shown.substr(0, end)), .value = "", .line = word.line, .column = word.column};
        if (end != std::string::npos) current.value = word.shown.substr(end + 1);
        is_open = true;
      } else if (is_open && (word.is_complete() || current.value.empty())) {
        current.value += (current.value.empty() ? "" : " ") + word.shown;
      } else if (!word.is_complete()) {
        note(word.line, fmt::format("{} has no value in this file: what it would add is left out", word.shown));
      }
    }
    close();
  }

  ShellScript script_;
  Flags& flags_;
};

}  // namespace

void read_script_flags(std::string_view text, Flags& flags) {
  ScriptFlags(read_shell_script(without_prose(text), flags.file()), flags).read();
}

}  // namespace tandem
