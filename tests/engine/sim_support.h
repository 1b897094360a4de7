// Running simulations in tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/sim_machines.h"

namespace tandem {

inline Timeline simulate(EngineOptions options, const Program& program) {
  return open_sim_engine(std::move(options))->run(program);
}

inline std::vector<Record> records_of(const Timeline& timeline, RecordKind kind) {
  std::vector<Record> found;
  for (const Record& record : timeline.records) {
    if (record.kind == kind) found.push_back(record);
  }
  return found;
}

// Everything in a timeline that equal runs repeat.
inline std::string text_of(const Timeline& timeline) {
  std::string text;
  for (const Record& record : timeline.records) {
    text += record.name.text() + " " + std::to_string(record.worker) + " " + std::to_string(record.device) + " " +
            std::to_string(record.start_ns) + " " + std::to_string(record.end_ns) + " " + std::to_string(record.step) +
            " " + std::to_string(record.sequence) + "\n";
  }
  for (const auto& [key, value] : timeline.settings) text.append(key).append("=").append(value).append("\n");
  for (const std::string& note : timeline.notes) text.append(note).append("\n");
  return text;
}

inline Nanoseconds duration_ns(const Record& record) {
  return record.end_ns - record.start_ns;
}

// An op with a cost and nothing to do.
inline Op cost_only(double flops, double bytes = 0, DType dtype = DType::f32) {
  return op::host_function("work", {flops, bytes, dtype}, [] {});
}

}  // namespace tandem
