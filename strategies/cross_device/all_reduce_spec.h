// Chooses the all-reduce for each tensor as TensorFlow 1's MultiWorkerAllReduce does. Pure functions. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

struct AllReduceSpec {
  std::string algorithm{};
  int shards = 1;
  std::int64_t limit = -1;  // most elements of a tensor; negative: no limit
  bool operator==(const AllReduceSpec&) const = default;
};

// Parses the JSON text "nccl" (in quotes), ["nccl", shards, limit], where the numbers may be omitted, or a list of such
// lists. ValueError for text that is no JSON, and for an entry that is no list of one to three elements.
std::vector<AllReduceSpec> all_reduce_specs_from_json(std::string_view text);

// Throws ValueError for an algorithm that is none of nccl, xring, pscpu, psgpu, nccl/xring, nccl/rechd, nccl/pscpu,
// pscpu/pscpu.
void check_all_reduce_algorithm(const std::string& algorithm);

struct SizeSplit {
  std::vector<std::size_t> within{}, above{};  // indices, in order
};
// Separates tensors of at most `limit` elements from larger ones; a negative limit admits all. Throws ValueError for an
// unknown size.
SizeSplit split_by_elements(const std::vector<std::optional<std::int64_t>>& elements, std::int64_t limit);

// Returns the indices of the tensors that each spec reduces: a tensor goes to the first spec whose limit it keeps.
// Throws AssertionError when it keeps none.
std::vector<std::vector<std::size_t>> assign_to_specs(const std::vector<AllReduceSpec>& specs,
                                                      const std::vector<std::optional<std::int64_t>>& elements);

}  // namespace tandem
