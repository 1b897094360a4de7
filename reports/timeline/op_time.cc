#include "reports/timeline/op_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tandem {
namespace {

struct Executions {
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  int count = 0;
};

}  // namespace

Nanoseconds op_time(const Timeline& timeline, int warmup_steps) {
  using Stream = std::tuple<int, int, RecordKind, Name>;  // device, stream, kind and name of the op
  struct Seen {
    int step = kNoStep, count = 0;  // how many of the name there were in this step so far
  };
  std::map<Stream, Seen> seen;
  std::map<std::pair<Stream, int>, Executions> ops;  // by stream and place in the step
  std::set<int> steps;
  for (const Record& record : timeline.records) {
    if (record.step < warmup_steps) continue;
    steps.insert(record.step);
    if (record.kind != RecordKind::op && record.kind != RecordKind::copy) continue;
    const Stream stream{record.device, record.stream, record.kind, record.name};
    Seen& before = seen[stream];
    if (std::exchange(before.step, record.step) != record.step) before.count = 0;
    Executions& op = ops[{stream, before.count++}];
    op.least = std::min(op.least, record.end_ns - record.start_ns);
    ++op.count;
  }
  double sum_ns = 0;
  for (const auto& [key, op] : ops) {
    sum_ns += static_cast<double>(op.least) * op.count / static_cast<double>(steps.size());
  }
  return std::llround(sum_ns);
}

}  // namespace tandem
