#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "scenarios/import/flag_sources.h"
#include "scenarios/import/megatron_flags.h"

namespace tandem {
namespace {

// "  hidden_size ........ 4096"
struct PrintedArgument {
  std::string_view name{}, value{};
  int column = 0;
};

constexpr std::size_t kFewestDots = 3;  // outside of the block

bool is_argument_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string_view trimmed_value(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  if (const std::size_t escape = text.find('\x1b'); escape != std::string_view::npos) text = text.substr(0, escape);
  return text;
}

// A name, a blank, dots, and after another blank the value. Whatever is before the name was put there by others.
std::optional<PrintedArgument> printed_argument(std::string_view line, std::size_t fewest_dots) {
  for (std::size_t dots = line.find(" ."); dots != std::string_view::npos; dots = line.find(" .", dots + 1)) {
    std::size_t end = dots + 1;
    while (end < line.size() && line[end] == '.') ++end;
    if (end - dots - 1 < fewest_dots || end >= line.size() || line[end] != ' ') continue;
    std::size_t begin = dots;
    while (begin > 0 && is_argument_character(line[begin - 1])) --begin;
    if (begin == dots || std::isdigit(static_cast<unsigned char>(line[begin])) != 0) continue;
    return PrintedArgument{line.substr(begin, dots - begin), trimmed_value(line.substr(end)),
                           static_cast<int>(begin) + 1};
  }
  return std::nullopt;
}

template <typename Use>
void for_each_line(std::string_view text, Use use) {
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    use(text.substr(begin, end - begin), ++number);
    begin = end + 1;
  }
}

// Arguments that are on unless a flag turns them off.
struct TurnedOff {
  std::string_view argument, flag;
};
constexpr std::array kTurnedOff = {
    TurnedOff{"add_bias_linear", "disable_bias_linear"},
    TurnedOff{"bert_binary_head", "bert_no_binary_head"},
    TurnedOff{"scatter_gather_tensors_in_pipeline", "no_scatter_gather_tensors_in_pipeline"},
    TurnedOff{"apply_rope_fusion", "no_rope_fusion"},
    TurnedOff{"bias_swiglu_fusion", "no_bias_swiglu_fusion"},
    TurnedOff{"bias_gelu_fusion", "no_bias_gelu_fusion"},
    TurnedOff{"bias_dropout_fusion", "no_bias_dropout_fusion"},
    TurnedOff{"masked_softmax_fusion", "no_masked_softmax_fusion"},
    TurnedOff{"gradient_accumulation_fusion", "no_gradient_accumulation_fusion"},
    TurnedOff{"add_position_embedding", "no_position_embedding"},
};

// Values that arguments have without a flag, where the flag would be reported as not modelled. Facts from
// NVIDIA/Megatron-LM, megatron/training/arguments.py.
struct UsualValue {
  std::string_view argument, value;
};
constexpr std::array kUsualValues = {
    UsualValue{"clip_grad", "1.0"},
    UsualValue{"check_for_nan_in_loss_and_grad", "True"},
    UsualValue{"cp_comm_type", "p2p"},
    UsualValue{"cp_comm_type", "['p2p']"},
    UsualValue{"cpu_offloading_num_layers", "0"},
    UsualValue{"cuda_graph_impl", "none"},
    UsualValue{"data_parallel_sharding_strategy", "no_shard"},
    UsualValue{"fp8_recipe", "delayed"},
    UsualValue{"moe_token_dispatcher_type", "allgather"},
    UsualValue{"num_distributed_optimizer_instances", "1"},
    UsualValue{"recompute_modules", "['core_attn']"},
    UsualValue{"recompute_num_layers", "1"},
    UsualValue{"tp_comm_bulk_dgrad", "True"},
    UsualValue{"tp_comm_bulk_wgrad", "True"},
    UsualValue{"tp_comm_overlap_ag", "True"},
    UsualValue{"tp_comm_overlap_rs", "True"},
};

bool is_usual(std::string_view name, std::string_view value) {
  return std::any_of(kUsualValues.begin(), kUsualValues.end(),
                     [&](const UsualValue& usual) { return usual.argument == name && usual.value == value; });
}

class PrintedArguments {
 public:
  explicit PrintedArguments(Flags& flags) : flags_(flags) { flags_.is_printed = true; }

  void read(std::string_view text) {
    bool is_inside = false;  // the block, in which long names have few dots
    for_each_line(text, [&](std::string_view line, int number) {
      if (line.find("-- end of arguments") != std::string_view::npos) is_inside = false;
      if (line.find("-- arguments --") != std::string_view::npos) is_inside = true;
      if (const auto argument = printed_argument(line, is_inside ? 1 : kFewestDots)) {
        add({.name = std::string(argument->name),
             .value = std::string(argument->value),
             .line = number,
             .column = argument->column});
      }
    });
    if (!changed_.empty()) {
      flags_.notes.push_back(
          fmt::format("the file has several blocks of arguments, which differ in {}: the last one counts",
                      fmt::join(changed_, ", ")));
    }
    note_unknown();
  }

  void read(const std::vector<Flag>& arguments) {
    for (const Flag& argument : arguments) add(argument);
    note_unknown();
  }

 private:
  void add(const Flag& argument) {
    const std::string& name = argument.name;
    std::string value = argument.value;
    if (value.starts_with("AttnBackend.")) value = value.substr(value.find('.') + 1);
    if (value.starts_with('[') && value.find_first_of(",'*") == std::string::npos) {
      value = value.substr(1, value.find(']') - 1);  // [1]
    }
    const auto [seen, is_new] = seen_.try_emplace(name, value);
    if (!is_new && seen->second != value && std::find(changed_.begin(), changed_.end(), name) == changed_.end())
      changed_.push_back(name);
    seen->second = value;
    flags_.remove(name);
    const auto off = std::find_if(kTurnedOff.begin(), kTurnedOff.end(),
                                  [&](const TurnedOff& known) { return known.argument == name; });
    const bool is_on = value != "False" && value != "None";
    if (off != kTurnedOff.end()) {
      flags_.remove(off->flag);
      flags_.add({.name = is_on ? name : std::string(off->flag),
                  .value = is_on ? "True" : "",
                  .line = argument.line,
                  .column = argument.column});
    } else if (is_on && !is_usual(name, value)) {
      flags_.add({.name = name, .value = value, .line = argument.line, .column = argument.column});
    } else if (value == "False") {
      flags_.add({.name = name, .value = "false", .line = argument.line, .column = argument.column});
    }
  }

  // A program prints hundreds of arguments, most of which nobody gave.
  void note_unknown() {
    std::vector<std::string> unknown;
    for (const Flag& flag : flags_.all()) {
      const bool is_empty = flag.value == "0" || flag.value == "[]" || flag.value.empty() || flag.value == "0.0";
      if (flags_.is_on(flag.name) && !is_empty && is_unknown_argument(flag.name)) unknown.push_back(flag.name);
    }
    if (unknown.empty()) return;
    flags_.notes.push_back(fmt::format("{} arguments of the block are not known here, and have no effect: {}",
                                       unknown.size(), fmt::join(unknown, ", ")));
  }

  Flags& flags_;
  std::map<std::string, std::string> seen_;
  std::vector<std::string> changed_;
};

}  // namespace

bool has_printed_arguments(std::string_view text) {
  bool has_layers = false, has_width = false;
  for_each_line(text, [&](std::string_view line, int) {
    const bool may_be =
        line.find("num_layers .") != std::string_view::npos || line.find("hidden_size .") != std::string_view::npos;
    const auto argument = may_be ? printed_argument(line, kFewestDots) : std::nullopt;
    has_layers |= argument && argument->name == "num_layers";
    has_width |= argument && argument->name == "hidden_size";
  });
  return has_layers || has_width;
}

void read_printed_arguments(std::string_view text, Flags& flags) {
  PrintedArguments(flags).read(text);
}

void read_arguments(const std::vector<Flag>& arguments, Flags& flags) {
  PrintedArguments(flags).read(arguments);
}

}  // namespace tandem
