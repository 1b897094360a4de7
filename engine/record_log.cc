#include "engine/record_log.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "topologies/base/error.h"

namespace tandem {
namespace {

// The fields that decide the place of a record, kept apart from it, because sorting then moves 24 bytes instead of a
// whole record.
struct RecordPlace {
  Nanoseconds start_ns = 0;
  std::int32_t worker = 0;
  std::int32_t device = 0;
  std::int32_t stream = 0;
  std::uint32_t index = 0;

  auto key() const { return std::tie(start_ns, worker, device, stream, index); }
};

// Returns `count` records in the order of a timeline; `at` returns the one with an index.
template <typename At>
std::vector<Record> in_order(std::size_t count, At&& at) {
  TANDEM_CHECK(count <= std::numeric_limits<std::uint32_t>::max(), "more records than can be numbered");
  std::vector<RecordPlace> places;
  places.reserve(count);
  for (std::uint32_t index = 0; index < count; ++index) {
    const Record& record = at(index);
    places.push_back({record.start_ns, record.worker, record.device, record.stream, index});
  }
  std::sort(places.begin(), places.end(), [](const RecordPlace& a, const RecordPlace& b) { return a.key() < b.key(); });
  std::vector<Record> sorted;
  sorted.reserve(count);
  for (const RecordPlace& place : places) sorted.push_back(at(place.index));
  return sorted;
}

}  // namespace

void sort_records(std::vector<Record>& records) {
  const auto order = [](const Record& record) {
    return std::tie(record.start_ns, record.worker, record.device, record.stream);
  };
  if (std::ranges::is_sorted(records, {}, order)) return;
  records = in_order(records.size(), [&](std::uint32_t index) -> const Record& { return records[index]; });
}

void RecordLog::move_to(std::vector<Record>& records) {
  for (std::vector<Record>& chunk : chunks_) {
    records.insert(records.end(), chunk.begin(), chunk.end());
    std::vector<Record>().swap(chunk);
  }
  chunks_.clear();
  size_ = 0;
}

std::vector<Record> RecordLog::take_sorted() {
  std::vector<Record> sorted =
      in_order(size_, [this](std::uint32_t index) -> const Record& { return chunks_[index / kChunk][index % kChunk]; });
  chunks_.clear();
  size_ = 0;
  return sorted;
}

}  // namespace tandem
