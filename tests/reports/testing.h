// Timelines and reports made by hand, small enough to check on paper.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/run/report.h"

namespace tandem {

inline Record step_record(int worker, int step, Nanoseconds start, Nanoseconds end) {
  Record record;
  record.kind = RecordKind::step;
  record.category = Category::other;
  record.name = "step";
  record.worker = worker;
  record.step = step;
  record.start_ns = start;
  record.end_ns = end;
  return record;
}

inline Record work_record(Category category, int device, int stream, int step, Nanoseconds start, Nanoseconds end) {
  Record record;
  record.kind = RecordKind::op;
  record.category = category;
  record.name = "work";
  record.device = device;
  record.stream = stream;
  record.step = step;
  record.start_ns = start;
  record.end_ns = end;
  return record;
}

inline Record collective_record(std::int64_t sequence, int device, int step, Nanoseconds start, Nanoseconds end) {
  Record record = work_record(Category::communication, device, 1, step, start, end);
  record.kind = RecordKind::collective;
  record.name = "all_reduce";
  record.bytes = 1 << 20;
  record.ranks = 2;
  record.sequence = sequence;
  return record;
}

inline Timeline two_device_timeline(std::vector<Record> records) {
  Timeline timeline;
  timeline.engine = "cpu";
  timeline.devices = {{"/job:localhost/replica:0/task:0/device:CPU:0", 0},
                      {"/job:localhost/replica:0/task:0/device:CPU:1", 0}};
  timeline.records = std::move(records);
  return timeline;
}

inline std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Every field set, to a value that no other field has.
inline Report full_report() {
  Report report;
  report.scenario = "Ziffern \u00fcben \u6570\u5b57";
  report.scenario_hash = "1f2e3d";
  report.engine = "cpu";
  report.topology = "this machine";
  report.topology_provenance = "measured";
  report.strategy = "mirrored";
  report.cross_device_ops = "reduction_to_one_device";
  report.replicas = 2;
  report.steps = 40;
  report.warmup_steps = 3;
  report.units_per_step = 64;
  report.summary.step_time = {.mean = 2'000'000,
                              .median = 2'000'000,
                              .min = 1'900'000,
                              .p95 = 2'500'000,
                              .median_absolute_deviation = 40'000,
                              .samples = 37};
  report.summary.per_step = {.compute = 1'200'000,
                             .update = 80'000,
                             .exposed_input = 60'000,
                             .exposed_communication = 500'000,
                             .other = 30'000,
                             .idle = 130'000,
                             .input = 90'000,
                             .communication = 700'000};
  report.summary.collectives = {{.operation = "all_reduce",
                                 .bytes = 1 << 20,
                                 .devices = 2,
                                 .calls_per_step = 4,
                                 .time_ns = 150'000,
                                 .algbw = 6.99e9,
                                 .busbw = 6.98e9}};
  report.scaling_efficiency = 0.875;
  report.loss = {2.25, 0.1, 1.0 / 3.0};
  report.metrics = {{"test_accuracy", 0.9375}};
  report.settings = {{"threads", "2"}, {"blas", "OpenBLAS 0.3.21"}};
  report.notes = {"a caveat"};
  return report;
}

// One collective whose first rank waits for the second.
inline Report waiting_report() {
  Report report = full_report();
  report.summary.ranks = {{.device = "/job:worker/replica:0/task:0/device:GPU:0", .waiting = 40'000},
                          {.device = "/job:worker/replica:0/task:1/device:GPU:0", .caused = 40'000}};
  CollectiveSummary& one = report.summary.collectives[0];
  one.waiting_ns = 20'000;
  one.ranks = {{.rank = 0, .waiting = 40'000, .transfer = 150'000}, {.rank = 1, .waiting = 0, .transfer = 145'000}};
  return report;
}

inline Report simulated_report() {
  Report report = full_report();
  report.engine = "sim";
  report.deterministic = true;
  report.settings = {{"network/model", "CM02"}};
  return report;
}

}  // namespace tandem
