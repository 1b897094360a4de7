#include "scenarios/reading/lora_reader.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "strategies/model/lora.h"

namespace tandem {

void read_lora(const YamlReader& map, LayersSettings& layers) {
  if (!map) return;
  constexpr std::int64_t kMostRank = 65536;
  const std::int64_t rank = map.required("rank").whole_number(1, kMostRank, 1);
  const YamlReader names = map.required("layers");
  if (names.is_list() && names.list().empty()) names.error("needs the name of at least one layer");
  if (layers.model.layers.empty()) return;
  freeze(layers.model);
  std::set<std::string> known;
  for (const YamlReader& entry : names.list()) {
    std::vector<std::string> together;
    bool is_new = true;
    for (const YamlReader& name : entry.is_list() ? entry.list() : std::vector{entry}) {
      together.push_back(name.text());
      if (!known.insert(together.back()).second) {
        name.error("is named twice");
        is_new = false;
      }
    }
    if (together.empty()) entry.error("needs the name of at least one layer");
    if (together.empty() || !is_new || std::ranges::count(together, "") > 0) continue;
    if (const auto problem = add_adapters(together, rank, layers.model)) entry.error(*problem);
  }
}

}  // namespace tandem
