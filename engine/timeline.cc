#include "engine/timeline.h"

#include <algorithm>

#include "topologies/base/error.h"

namespace tandem {

std::string_view name_of(Category category) {
  switch (category) {
    case Category::compute:
      return "compute";
    case Category::communication:
      return "communication";
    case Category::update:
      return "update";
    case Category::input:
      return "input";
    case Category::other:
      return "other";
  }
  TANDEM_UNREACHABLE("a Category outside its enumerators");
}

std::string_view name_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::op:
      return "op";
    case RecordKind::copy:
      return "copy";
    case RecordKind::collective:
      return "collective";
    case RecordKind::step:
      return "step";
  }
  TANDEM_UNREACHABLE("a RecordKind outside its enumerators");
}

std::string_view name_of(RecordLevel level) {
  switch (level) {
    case RecordLevel::all:
      return "all";
    case RecordLevel::collectives:
      return "collectives";
    case RecordLevel::steps:
      return "steps";
  }
  TANDEM_UNREACHABLE("a RecordLevel outside its enumerators");
}

bool is_recorded(RecordKind kind, RecordLevel level) {
  if (kind == RecordKind::step || level == RecordLevel::all) return true;
  return kind == RecordKind::collective && level == RecordLevel::collectives;
}

std::vector<CollectiveTiming> collective_timings(const std::vector<Record>& records,
                                                 const std::function<bool(const Record&)>& counts) {
  struct Call {
    const Record* record = nullptr;
    Nanoseconds last_arrival_ns = 0;
    Nanoseconds first_end_ns = 0, last_end_ns = 0;
  };
  std::map<std::int64_t, Call> calls;
  for (const Record& record : records) {
    if (record.kind != RecordKind::collective || (counts && !counts(record))) continue;
    Call& call =
        calls.try_emplace(record.sequence, Call{&record, record.start_ns, record.end_ns, record.end_ns}).first->second;
    call.last_arrival_ns = std::max(call.last_arrival_ns, record.start_ns);
    call.first_end_ns = std::min(call.first_end_ns, record.end_ns);
    call.last_end_ns = std::max(call.last_end_ns, record.end_ns);
  }
  std::vector<CollectiveTiming> timings;
  timings.reserve(calls.size());
  for (const auto& [sequence, call] : calls) {
    timings.push_back({.record = call.record,
                       .duration_ns = call.last_end_ns - call.last_arrival_ns,
                       .until_first_end_ns = call.first_end_ns - call.last_arrival_ns});
  }
  return timings;
}

}  // namespace tandem
