// Words that people write in scenarios and on the command line.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace tandem {

class YamlReader;

template <typename Value>
using Words = std::vector<std::pair<std::string, Value>>;
Words<DeviceType> device_type_words();
Words<ValueMode> value_words();
Words<CollectiveFidelity> fidelity_words();

// Returns the word of such a list for a value that it has.
template <typename Value>
const std::string& word_of(const Words<Value>& words, Value wanted) {
  return std::ranges::find(words, wanted, &Words<Value>::value_type::second)->first;
}

template <typename Value>
std::vector<std::string> names_of(const Words<Value>& words) {
  std::vector<std::string> names;
  for (const auto& [name, value] : words) names.push_back(name);
  return names;
}

// Reports `word`, which was read from `value`, unless it is empty or one of `known`: "unknown <what> 'wrod' (one of
// ...); did you mean 'word'?"
void check_known(const YamlReader& value, std::string_view what, const std::string& word,
                 const std::vector<std::string>& known);

}  // namespace tandem
