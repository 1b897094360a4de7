#include "strategies/cross_device/all_reduce_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

AllReduceSpec completed(const Json& entry) {
  const bool is_right =
      entry.is_array() && !entry.empty() && entry.size() <= 3 && entry[0].is_string() &&
      std::all_of(entry.begin() + 1, entry.end(), [](const Json& n) { return n.is_number_integer(); });
  if (!is_right) {
    throw ValueError(
        fmt::format("{} is no all-reduce spec: give [algorithm, shards, limit], at most these three", entry.dump()));
  }
  AllReduceSpec spec{.algorithm = entry[0].get<std::string>()};
  if (entry.size() > 1) spec.shards = entry[1].get<int>();
  if (entry.size() > 2) spec.limit = entry[2].get<std::int64_t>();
  return spec;
}

}  // namespace

std::vector<AllReduceSpec> all_reduce_specs_from_json(std::string_view text) {
  const Json specs = Json::parse(text, nullptr, false);
  if (specs.is_discarded()) throw ValueError(fmt::format("'{}' is not JSON", text));
  if (specs.is_string()) return {{.algorithm = specs.get<std::string>()}};
  const bool is_list = specs.is_array() && !specs.empty() && !specs[0].is_string();
  if (!is_list) return {completed(specs)};
  std::vector<AllReduceSpec> all;
  for (const Json& entry : specs) all.push_back(completed(entry));
  return all;
}

void check_all_reduce_algorithm(const std::string& algorithm) {
  constexpr std::array kKnown = {"nccl",       "xring",      "pscpu",      "psgpu",
                                 "nccl/xring", "nccl/rechd", "nccl/pscpu", "pscpu/pscpu"};
  if (std::find(kKnown.begin(), kKnown.end(), algorithm) == kKnown.end()) {
    throw ValueError(fmt::format("unknown all-reduce algorithm '{}' (known: {})", algorithm, fmt::join(kKnown, ", ")));
  }
}

SizeSplit split_by_elements(const std::vector<std::optional<std::int64_t>>& elements, std::int64_t limit) {
  SizeSplit split;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!elements[i]) throw ValueError(fmt::format("tensor {} has an unknown shape: all-reduce needs to know it", i));
    (limit < 0 || *elements[i] <= limit ? split.within : split.above).push_back(i);
  }
  return split;
}

std::vector<std::vector<std::size_t>> assign_to_specs(const std::vector<AllReduceSpec>& specs,
                                                      const std::vector<std::optional<std::int64_t>>& elements) {
  std::vector<std::vector<std::size_t>> assigned(specs.size());
  for (const std::size_t tensor : split_by_elements(elements, -1).within) {
    const auto fits = std::find_if(specs.begin(), specs.end(), [&](const AllReduceSpec& spec) {
      return spec.limit < 0 || *elements[tensor] <= spec.limit;
    });
    if (fits == specs.end()) {
      throw AssertionError(
          fmt::format("a tensor of {} elements is above the limit of every all-reduce spec", *elements[tensor]));
    }
    assigned[static_cast<std::size_t>(fits - specs.begin())].push_back(tensor);
  }
  return assigned;
}

}  // namespace tandem
