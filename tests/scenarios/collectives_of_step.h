// What the first device of a simulated run exchanges in a step.
#pragma once

#include <string>
#include <vector>

#include "tests/scenarios/running.h"

namespace tandem {

inline int first_gpu(const Timeline& timeline) {
  for (std::size_t i = 0; i < timeline.devices.size(); ++i) {
    if (timeline.devices[i].name.find("GPU:0") != std::string::npos) return static_cast<int>(i);
  }
  return -1;
}

// Returns the records of this collective that the first device leaves in one step.
inline std::vector<Record> collectives_of_step(const RunResult& result, const std::string& name) {
  const int device = first_gpu(result.timeline);
  std::vector<Record> found;
  for (const Record& record : result.timeline.records) {
    const bool is_one = record.kind == RecordKind::collective && record.name == name;
    if (is_one && record.step == 1 && record.device == device) found.push_back(record);
  }
  return found;
}

inline int count_of(const RunResult& result, const std::string& name) {
  return static_cast<int>(collectives_of_step(result, name).size());
}

inline int all_reduces(const RunResult& result) {
  return count_of(result, "all_reduce");
}

}  // namespace tandem
