// Which all-reduce MultiWorkerAllReduce of TensorFlow 1 uses for which tensors. Pure functions, for any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct AllReduceSpec {
  std::string algorithm{};
  int shards = 1;
  std::int64_t limit = -1;  // elements of the largest tensor it is for; negative for any
  bool operator==(const AllReduceSpec&) const = default;
};

// From "nccl", ["nccl", shards, limit] where the numbers may be left out, or a list of such lists. ValueError for an
// entry that is no list, or has no or more than three elements.
std::vector<AllReduceSpec> all_reduce_specs_from_json(const nlohmann::json& specs);

// ValueError for an algorithm that is none of nccl, xring, pscpu, psgpu, nccl/xring, nccl/rechd, nccl/pscpu,
// pscpu/pscpu.
void check_all_reduce_algorithm(const std::string& algorithm);

struct SizeSplit {
  std::vector<std::size_t> within{}, above{};  // indices, in order
};
// Which tensors have at most `limit` elements; all of them for a negative limit. ValueError for an unknown size.
SizeSplit split_by_elements(const std::vector<std::optional<std::int64_t>>& elements, std::int64_t limit);

// The tensors that each spec reduces: the first whose limit they keep. AssertionError when one fits none.
std::vector<std::vector<std::size_t>> assign_to_specs(const std::vector<AllReduceSpec>& specs,
                                                      const std::vector<std::optional<std::int64_t>>& elements);

}  // namespace tandem
