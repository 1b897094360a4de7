#include "scenarios/scenario/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "topologies/base/strict_yaml.h"

namespace tandem {

Words<DeviceType> device_type_words() {
  return {{"cpu", DeviceType::cpu}, {"gpu", DeviceType::gpu}};
}

Words<ValueMode> value_words() {
  return {{"real", ValueMode::real}, {"none", ValueMode::none}};
}

Words<CollectiveFidelity> fidelity_words() {
  return {{"fluid", CollectiveFidelity::fluid}, {"message", CollectiveFidelity::message}};
}

void check_known(const YamlReader& value, std::string_view what, const std::string& word,
                 const std::vector<std::string>& known) {
  if (word.empty() || std::find(known.begin(), known.end(), word) != known.end()) return;
  const std::string nearest = nearest_name(word, known);
  value.error(fmt::format("unknown {} '{}' (one of {}){}", what, word, fmt::join(known, ", "),
                          nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
}

}  // namespace tandem
