#include "scenarios/reading/experts_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "scenarios/reading/number_list.h"
#include "scenarios/scenario/named_files.h"
#include "topologies/base/portable_math.h"

namespace tandem {
namespace {

constexpr double kMostZipf = 10;
constexpr double kMostCapacity = 1000;
constexpr double kMostCount = 1e15;

// The k-th most popular of so many experts is chosen k^-exponent times as often as the first. Which expert is the k-th
// is drawn, always in the same way.
std::vector<double> zipf(double exponent, std::int64_t experts) {
  std::vector<double> popularity(static_cast<std::size_t>(experts));
  for (std::size_t i = 0; i < popularity.size(); ++i) {
    popularity[i] = portable::pow(static_cast<double>(i + 1), -exponent);
  }
  std::mt19937_64 random(1);
  for (std::size_t left = popularity.size(); left > 1; --left) {
    std::swap(popularity[left - 1], popularity[random() % left]);
  }
  return popularity;
}

// Returns the numbers of experts that layers of the model have.
std::set<std::int64_t> numbers_of_experts(const Model& model) {
  std::set<std::int64_t> numbers;
  for (const Layer& layer : model.layers) {
    if (has_experts(layer)) numbers.insert(layer.gemm->experts);
  }
  return numbers;
}

std::vector<double> read_popularity(const YamlReader& imbalance, const std::filesystem::path& folder,
                                    std::int64_t experts) {
  imbalance.exactly_one_of({"zipf", "counts"});
  if (const YamlReader exponent = imbalance.optional("zipf")) {
    return zipf(exponent.number({.least = 0, .most = kMostZipf}), experts);
  }
  const YamlReader counts = imbalance.optional("counts");
  if (!counts) return {};
  std::vector<double> popularity;
  if (counts.is_map()) {
    counts.error("expected a list of numbers, or a file with them, found the map");
    return {};
  }
  if (counts.is_list()) {
    for (const YamlReader& count : counts.list()) popularity.push_back(count.number({.least = 0, .most = kMostCount}));
  } else if (const auto file = existing_file(counts, folder)) {
    popularity = included(counts, [&] {
      return read_number_list(*file, {.what = "how many rows an expert gets", .whole = "numbers of rows"});
    });
  }
  if (popularity.empty() && !counts.is_list()) return {};  // of a file that could not be read
  const bool has_some = std::accumulate(popularity.begin(), popularity.end(), 0.0) > 0;
  if (std::ssize(popularity) == experts && has_some) return popularity;
  counts.error(fmt::format("needs a number for each of the {} experts, not all of them 0; found {}", experts,
                           popularity.size()));
  return {};
}

// Reads what matters where a row goes to a device, or to a group of devices, once.
void read_dispatched_rows(const YamlReader& map, ExpertSettings& experts) {
  const YamlReader dtype = map.optional("dispatch_dtype"), groups = map.optional("groups");
  experts.dispatches_bytes = dtype.one_of<bool>({{"dtype", false}, {"fp8", true}}, false);
  constexpr std::int64_t kMostGroups = 16384;
  if (groups) {
    experts.groups.count = groups.required("of").whole_number(1, kMostGroups, 1);
    experts.groups.used = groups.required("used").whole_number(1, kMostGroups, 1);
  }
  if (experts.dispatch != Dispatch::all_to_all) return;
  constexpr const char* kProblem = "is for dispatch deepep and hybridep; all_to_all sends a copy for each expert";
  if (experts.dispatches_bytes) dtype.error(kProblem);
  if (groups) groups.error(kProblem);
}

void check_groups(const YamlReader& map, const RoutingGroups& groups, const Model& model) {
  if (groups.used > groups.count) {
    map.optional("used").error(fmt::format("is more than there are groups: {}", groups.count));
    return;
  }
  for (const Layer& layer : model.layers) {
    if (!layer.routing) continue;
    const std::int64_t experts = layer.routing->experts;
    if (experts % groups.count != 0) {
      map.optional("of").error(
          fmt::format("{} groups do not divide the {} experts around layer '{}'", groups.count, experts, layer.name));
      return;
    }
    if (layer.routing->used <= experts / groups.count * groups.used) continue;
    map.optional("used").error(fmt::format("{} of {} groups do not have the {} experts that layer '{}' uses",
                                           groups.used, groups.count, layer.routing->used, layer.name));
    return;
  }
}

}  // namespace

void read_experts(const YamlReader& map, const std::filesystem::path& folder, LayersSettings& layers) {
  if (!map) return;
  ExpertSettings& experts = layers.experts;
  experts.dispatch =
      map.optional("dispatch")
          .one_of<Dispatch>(
              {{"all_to_all", Dispatch::all_to_all}, {"deepep", Dispatch::deepep}, {"hybridep", Dispatch::hybridep}},
              Dispatch::all_to_all);
  const YamlReader capacity = map.optional("capacity"), imbalance = map.optional("imbalance");
  experts.capacity = capacity.number({.above = 0, .most = kMostCapacity, .otherwise = 0});
  if (capacity && imbalance) {
    imbalance.error("changes nothing beside a capacity: every expert computes on as many rows as it has room for");
  }
  read_dispatched_rows(map, experts);
  if (layers.model.layers.empty()) return;
  const std::set<std::int64_t> numbers = numbers_of_experts(layers.model);
  if (numbers.empty()) return map.error(fmt::format("model '{}' has no experts", layers.model.name));
  if (std::ranges::none_of(layers.model.layers, [](const Layer& layer) { return layer.routing.has_value(); })) {
    map.error(fmt::format("is for models whose files say `dispatch` and `combine` around experts; '{}' does not",
                          layers.model.name));
  }
  if (experts.groups.count > 0) check_groups(map.optional("groups"), experts.groups, layers.model);
  if (imbalance && numbers.size() > 1) {
    imbalance.error(fmt::format("is for models whose layers have as many experts; '{}' has layers of {} and of {}",
                                layers.model.name, *numbers.begin(), *numbers.rbegin()));
  } else if (imbalance) {
    experts.popularity = read_popularity(imbalance, folder, *numbers.begin());
  }
}

}  // namespace tandem
