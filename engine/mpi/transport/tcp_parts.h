// Where the parts of a collective's ranks lie in one buffer: part p is from first[p] to first[p + 1], in bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace tandem::mpi {

inline std::byte* at(void* data, std::int64_t offset) {
  return static_cast<std::byte*>(data) + offset;
}
inline const std::byte* at(const void* data, std::int64_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}

inline void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

inline std::int64_t length(const std::vector<std::int64_t>& first, int part) {
  const auto p = static_cast<std::size_t>(part);
  return first[p + 1] - first[p];
}

// Parts of `counts` units, each of `unit_bytes`.
inline std::vector<std::int64_t> parts_of_counts(std::span<const int> counts, std::int64_t unit_bytes) {
  std::vector<std::int64_t> first(counts.size() + 1, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) first[i + 1] = first[i] + counts[i] * unit_bytes;
  return first;
}

// `count` elements in `parts` parts of nearly equal size.
inline std::vector<std::int64_t> equal_parts(std::int64_t count, std::size_t parts, std::int64_t element_bytes) {
  const auto n = static_cast<std::int64_t>(parts);
  std::vector<std::int64_t> first;
  for (std::int64_t part = 0; part <= n; ++part) {
    first.push_back((count / n * part + std::min(part, count % n)) * element_bytes);
  }
  return first;
}

}  // namespace tandem::mpi
