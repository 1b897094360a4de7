#include "engine/record_log.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "topologies/base/error.h"

namespace tandem {
namespace {

// The fields that decide the place of a record, kept apart from it, because sorting then moves 24 bytes instead of a
// whole record.
struct Place {
  Nanoseconds start_ns = 0;
  std::int32_t worker = 0;
  std::int32_t device = 0;
  std::int32_t stream = 0;
  std::uint32_t index = 0;

  auto key() const { return std::tie(start_ns, worker, device, stream, index); }
};

std::vector<Place> places_in_order(const std::vector<Record>& records) {
  TANDEM_CHECK(records.size() <= std::numeric_limits<std::uint32_t>::max(), "more records than can be numbered");
  std::vector<Place> places;
  places.reserve(records.size());
  for (const Record& record : records) {
    const auto index = static_cast<std::uint32_t>(places.size());
    places.push_back({record.start_ns, record.worker, record.device, record.stream, index});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.key() < b.key(); });
  return places;
}

}  // namespace

// Follows each cycle of the permutation, so that it needs no second copy of the records.
void sort_records(std::vector<Record>& records) {
  std::vector<Place> places = places_in_order(records);
  for (std::uint32_t first = 0; first < places.size(); ++first) {
    if (places[first].index == first) continue;
    Record held = std::move(records[first]);
    std::uint32_t to = first;
    for (std::uint32_t from = places[to].index; from != first; from = places[to].index) {
      records[to] = std::move(records[from]);
      places[to].index = to;  // is in its place
      to = from;
    }
    records[to] = std::move(held);
    places[to].index = to;
  }
}

void RecordLog::move_to(std::vector<Record>& records) {
  for (std::vector<Record>& chunk : chunks_) {
    std::move(chunk.begin(), chunk.end(), std::back_inserter(records));
    std::vector<Record>().swap(chunk);
  }
  chunks_.clear();
  size_ = 0;
}

std::vector<Record> RecordLog::take_sorted() {
  std::vector<Record> records;
  records.reserve(size_);
  move_to(records);
  sort_records(records);
  return records;
}

}  // namespace tandem
