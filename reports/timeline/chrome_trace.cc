#include "reports/timeline/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "topologies/base/error.h"

namespace tandem {
namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Writes a time as exact microseconds.
std::string microseconds(Nanoseconds time) {
  return fmt::format("{}{}.{:03}", time < 0 ? "-" : "", std::abs(time / 1000), std::abs(time % 1000));
}

// One stream of one device, or a worker's host (device kNoDevice).
struct LaneKey {
  int worker = 0;
  int device = kNoDevice;
  int stream = 0;
  bool operator<(const LaneKey& other) const {
    return std::tie(worker, device, stream) < std::tie(other.worker, other.device, other.stream);
  }
};

// The events of one lane. Each lies inside the earlier events that are still open, or after their end.
struct Row {
  std::vector<const Record*> events;
  std::vector<Nanoseconds> open_ends;

  bool accept(const Record& record) {
    while (!open_ends.empty() && open_ends.back() <= record.start_ns) open_ends.pop_back();
    if (!open_ends.empty() && open_ends.back() < record.end_ns) return false;
    open_ends.push_back(record.end_ns);
    events.push_back(&record);
    return true;
  }
};

using Lanes = std::map<LaneKey, std::vector<Row>>;

LaneKey lane_of(const Record& record) {
  return {.worker = record.worker, .device = record.device, .stream = record.device == kNoDevice ? 0 : record.stream};
}

// Sorts outer events first, so that they open before what lies inside them.
std::vector<const Record*> in_drawing_order(const Timeline& timeline, std::optional<int> worker) {
  std::vector<const Record*> records;
  for (const Record& record : timeline.records) {
    if (!worker || record.worker == *worker) records.push_back(&record);
  }
  std::stable_sort(records.begin(), records.end(), [](const Record* a, const Record* b) {
    return std::tuple(a->start_ns, -a->end_ns) < std::tuple(b->start_ns, -b->end_ns);
  });
  return records;
}

Lanes lanes_of(const std::vector<const Record*>& records) {
  Lanes lanes;
  for (const Record* record : records) {
    std::vector<Row>& rows = lanes[lane_of(*record)];
    const bool placed = std::any_of(rows.begin(), rows.end(), [&](Row& row) { return row.accept(*record); });
    if (!placed) rows.emplace_back().accept(*record);
  }
  return lanes;
}

// HTA distinguishes kinds of work by name and category: nccl... is communication, Memcpy memory, and the rest compute.
std::string shown_name(const Record& record) {
  switch (record.kind) {
    case RecordKind::step:
      return fmt::format("ProfilerStep#{}", record.step);
    case RecordKind::collective:
      return "nccl:" + record.name.text();
    case RecordKind::copy:
      return record.name.empty() ? fmt::format("Memcpy ({})", name_of(record.category))
                                 : "Memcpy " + record.name.text();
    case RecordKind::op:
      return record.name;
  }
  TANDEM_UNREACHABLE("a RecordKind outside its enumerators");
}

std::string_view shown_category(RecordKind kind) {
  switch (kind) {
    case RecordKind::copy:
      return "gpu_memcpy";
    case RecordKind::step:
      return "user_annotation";
    case RecordKind::op:
    case RecordKind::collective:
      return "kernel";
  }
  TANDEM_UNREACHABLE("a RecordKind outside its enumerators");
}

std::string arguments_of(const Record& record) {
  std::string text = fmt::format(R"("category":"{}")", name_of(record.category));
  if (record.step != kNoStep) text += fmt::format(R"(,"step":{})", record.step);
  if (record.kind == RecordKind::step) return text;
  if (record.bytes > 0) text += fmt::format(R"(,"bytes":{})", nlohmann::json(record.bytes).dump());
  if (record.flops > 0) text += fmt::format(R"(,"flops":{})", nlohmann::json(record.flops).dump());
  if (record.kind == RecordKind::collective) {
    text += fmt::format(R"(,"Collective name":{},"Group size":{},"Seq":{})", json_string(record.name), record.ranks,
                        record.sequence);
  }
  return text;
}

// Writes the events, one on each line, separated by commas.
class TraceWriter {
 public:
  TraceWriter(const Timeline& timeline, std::ostream& stream, Nanoseconds base_ns)
      : timeline_(timeline), stream_(stream), base_ns_(base_ns) {}

  void write_process(int worker) {
    metadata("process_name", worker, 0, fmt::format(R"("name":"worker {}")", worker));
    metadata("process_labels", worker, 0,
             fmt::format(R"("labels":{})", json_string(timeline_.engine + represented_by(worker))));
    metadata("process_sort_index", worker, 0, fmt::format(R"("sort_index":{})", worker));
  }

  void write_lane(const LaneKey& key, const std::vector<Row>& rows, int& lane) {
    for (std::size_t i = 0; i < rows.size(); ++i, ++lane) {
      std::string name = lane_name(key);
      if (i > 0) name += fmt::format(" ({})", i + 1);
      metadata("thread_name", key.worker, lane, fmt::format(R"("name":{})", json_string(name)));
      metadata("thread_sort_index", key.worker, lane, fmt::format(R"("sort_index":{})", lane));
      for (const Record* record : rows[i].events) write_event(*record, lane);
    }
  }

 private:
  // ", represents 12 workers": others that did the same have no process in the trace.
  std::string represented_by(int worker) const {
    for (const WorkerClass& one : timeline_.classes) {
      if (one.representative == worker && one.workers > 1) return fmt::format(", represents {} workers", one.workers);
    }
    return {};
  }

  std::string lane_name(const LaneKey& key) const {
    if (key.device == kNoDevice) return "host";
    const auto index = static_cast<std::size_t>(key.device);
    const std::string device =
        index < timeline_.devices.size() ? timeline_.devices[index].name : fmt::format("device {}", key.device);
    return fmt::format("{} stream {}", device, key.stream);
  }

  void metadata(std::string_view name, int worker, int lane, std::string_view arguments) {
    begin_event();
    stream_ << fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", name, worker, lane,
                           arguments);
  }

  void write_event(const Record& record, int lane) {
    begin_event();
    stream_ << fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                           json_string(shown_name(record)), shown_category(record.kind), record.worker, lane,
                           microseconds(record.start_ns - base_ns_),
                           microseconds(std::max<Nanoseconds>(0, record.end_ns - record.start_ns)),
                           arguments_of(record));
  }

  void begin_event() {
    stream_ << (first_ ? "\n" : ",\n");
    first_ = false;
  }

  const Timeline& timeline_;
  std::ostream& stream_;
  Nanoseconds base_ns_;
  bool first_ = true;
};

int world_size(const Timeline& timeline) {
  int workers = 0;
  for (const TimelineDevice& device : timeline.devices) workers = std::max(workers, device.worker + 1);
  for (const Record& record : timeline.records) workers = std::max(workers, record.worker + 1);
  return workers;
}

// Returns the base time, which all workers' files share so that they can be laid side by side.
Nanoseconds base_of(const Timeline& timeline) {
  Nanoseconds base = timeline.records.empty() ? 0 : timeline.records.front().start_ns;
  for (const Record& record : timeline.records) base = std::min(base, record.start_ns);
  return base;
}

}  // namespace

void write_chrome_trace(const Timeline& timeline, std::ostream& stream, std::optional<int> worker) {
  const Nanoseconds base_ns = base_of(timeline);
  // HTA looks for the rank by text: the blank after "rank": is part of the format.
  stream << fmt::format(R"({{"schemaVersion":1,"distributedInfo":{{"rank": {},"world_size": {}}},)", worker.value_or(0),
                        world_size(timeline));
  stream << fmt::format(R"("displayTimeUnit":"ns","baseTimeNanoseconds":{},"traceEvents":[)", base_ns);
  const Lanes lanes = lanes_of(in_drawing_order(timeline, worker));
  TraceWriter writer(timeline, stream, base_ns);
  int current = -1;
  int lane = 0;
  for (const auto& [key, rows] : lanes) {
    if (key.worker != current) {
      current = key.worker;
      lane = 0;
      writer.write_process(current);
    }
    writer.write_lane(key, rows, lane);
  }
  stream << "\n]}\n";
  if (!stream) throw Error("the trace could not be written");
}

}  // namespace tandem
