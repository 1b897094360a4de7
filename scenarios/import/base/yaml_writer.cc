#include "scenarios/import/base/yaml_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topologies/base/error.h"

namespace tandem {

std::string yaml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

YamlMap& YamlMap::set(std::string_view key, std::string_view word) {
  entries_.push_back({.key = std::string(key), .value = std::string(word)});
  return *this;
}

YamlMap& YamlMap::set(std::string_view key, const std::vector<std::string>& words) {
  return set(key, fmt::format("[{}]", fmt::join(words, ", ")));
}

YamlMap& YamlMap::append(const YamlMap& more) {
  entries_.insert(entries_.end(), more.entries_.begin(), more.entries_.end());
  return *this;
}

YamlMap& YamlMap::below(std::string_view key, const YamlMap& map) {
  Entry entry{.key = std::string(key), .value = {}};
  for (const std::string& line : map.lines()) entry.lines.push_back("  " + line);
  entries_.push_back(std::move(entry));
  return *this;
}

YamlMap& YamlMap::list(std::string_view key, const std::vector<YamlMap>& maps) {
  Entry entry{.key = std::string(key), .value = {}};
  for (const YamlMap& map : maps) {
    const char* mark = "  - ";
    for (const std::string& line : map.is_line_ ? std::vector{map.line()} : map.lines()) {
      entry.lines.push_back(std::exchange(mark, "    ") + line);
    }
  }
  entries_.push_back(std::move(entry));
  return *this;
}

YamlMap& YamlMap::list(std::string_view key, const std::vector<std::string>& words) {
  Entry entry{.key = std::string(key), .value = {}};
  for (const std::string& word : words) entry.lines.push_back("  - " + word);
  entries_.push_back(std::move(entry));
  return *this;
}

YamlMap& YamlMap::on_one_line() {
  is_line_ = true;
  return *this;
}

std::vector<std::string> YamlMap::lines() const {
  std::vector<std::string> lines;
  for (const Entry& entry : entries_) {
    lines.push_back(entry.key + ":" + (entry.value.empty() ? "" : " " + entry.value));
    lines.insert(lines.end(), entry.lines.begin(), entry.lines.end());
  }
  return lines;
}

std::string YamlMap::text() const {
  std::string text;
  for (const std::string& line : lines()) text += line + "\n";
  return text;
}

std::string YamlMap::line() const {
  std::vector<std::string> entries;
  for (const Entry& entry : entries_) {
    TANDEM_REQUIRE(entry.lines.empty(), "a map on one line has entries below '" + entry.key + "'");
    entries.push_back(entry.key + ": " + entry.value);
  }
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

}  // namespace tandem
