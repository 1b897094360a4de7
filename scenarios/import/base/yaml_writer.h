// Writes YAML for people: maps of lines, indented, and short maps on one line.
//
// Threads: one at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// Returns a text as a quoted YAML scalar.
std::string yaml_text(std::string_view text);

// A map whose keys keep their order. Every function returns the map itself.
class YamlMap {
 public:
  // Words and numbers are written as they are.
  YamlMap& set(std::string_view key, std::string_view word);
  YamlMap& set(std::string_view key, const char* word) { return set(key, std::string_view(word)); }
  YamlMap& set(std::string_view key, bool value) { return set(key, value ? "true" : "false"); }
  YamlMap& set(std::string_view key, std::integral auto number) { return set(key, std::to_string(number)); }
  YamlMap& quote(std::string_view key, std::string_view text) { return set(key, yaml_text(text)); }
  // A map, or a list of words, on the key's own line.
  YamlMap& set(std::string_view key, const YamlMap& map) { return set(key, map.line()); }
  YamlMap& set(std::string_view key, const std::vector<std::string>& words);
  YamlMap& append(const YamlMap& more);  // its keys
  // A map or a list on the lines below the key.
  YamlMap& below(std::string_view key, const YamlMap& map);
  YamlMap& list(std::string_view key, const std::vector<YamlMap>& maps);
  YamlMap& list(std::string_view key, const std::vector<std::string>& words);

  std::string text() const;  // a line for each key
  std::string line() const;  // "{name: embedding, rows: 4}": for maps without entries below their keys
  // How a list has the map as an item: on one line, or on the lines of text().
  YamlMap& on_one_line();

 private:
  struct Entry {
    std::string key, value;
    std::vector<std::string> lines{};  // below the key, indented
  };
  std::vector<std::string> lines() const;

  std::vector<Entry> entries_;
  bool is_line_ = false;
};

}  // namespace tandem
