#include <algorithm>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/flag_sources.h"
#include "scenarios/import/flags.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostScript = std::int64_t{4} << 20;
constexpr std::string_view kModelArguments = "MODEL_ARGS";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// One line "  key: value  # comment" of a map.
void read_entry(std::string_view line, int number, bool is_flag_map, Flags& flags) {
  std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || line[begin] == '#') return;
  const std::size_t colon = line.find(':', begin);
  if (colon == std::string_view::npos) return;
  std::string_view key = line.substr(begin, colon - begin);
  std::string_view value = line.substr(colon + 1);
  if (const std::size_t comment = value.find(" #"); comment != std::string_view::npos) value = value.substr(0, comment);
  while (!value.empty() && (is_blank(value.front()))) value.remove_prefix(1);
  while (!value.empty() && (is_blank(value.back()))) value.remove_suffix(1);
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) {
    value = value.substr(1, value.size() - 2);
  }
  if (!is_flag_map) {
    flags.environment[std::string(key)] = value;
    return;
  }
  flags.add(
      {.name = name_of_flag(key), .value = std::string(value), .line = number, .column = static_cast<int>(begin) + 1});
}

// Whether a line begins with "MODEL_ARGS" or "MODEL_ARGS_2" and a colon.
bool is_map_of_flags(std::string_view text) {
  for (std::size_t at = 0; (at = text.find(kModelArguments, at)) != std::string_view::npos; ++at) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", at);
    if (end != std::string_view::npos && text[end] == ':') return true;
  }
  return false;
}

void read_map(std::string_view text, Flags& flags) {
  int number = 0;
  std::string section;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const bool is_top = !line.empty() && !is_blank(line[0]) && line[0] != '#';
    if (is_top) section = line.substr(0, line.find(':'));
    if (is_top) continue;
    if (section.starts_with(kModelArguments)) read_entry(line, number, true, flags);
    if (section == "ENV_VARS") read_entry(line, number, false, flags);
  }
}

}  // namespace

std::string name_of_flag(std::string_view word) {
  while (word.starts_with('-')) word.remove_prefix(1);
  std::string name(word);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool has_flags(std::string_view text) {
  if (text.starts_with("schema_version") || text.find("\nschema_version") != std::string_view::npos) return false;
  if (is_map_of_flags(text) || has_printed_arguments(text) || has_bridge_config(text)) return true;
  return text.find("--num-layers") != std::string_view::npos || text.find("--hidden-size") != std::string_view::npos;
}

Flags read_flags(const InputFile& file) {
  std::string text = beginning_of(file, kMostScript);  // of a log, which may be long
  if (!has_printed_arguments(text)) text = read_unpacked(file, kMostScript);
  Flags flags(file.name());
  if (is_map_of_flags(text)) {
    read_map(text, flags);
  } else if (has_bridge_config(text)) {
    read_bridge_config(text, flags);
  } else if (has_printed_arguments(text)) {
    read_printed_arguments(text, flags);
  } else {
    read_script_flags(text, flags);
  }
  return flags;
}

}  // namespace tandem
