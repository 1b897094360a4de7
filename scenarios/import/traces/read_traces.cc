#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/traces/chakra.h"
#include "scenarios/import/traces/chakra_order.h"
#include "scenarios/import/traces/kineto.h"
#include "scenarios/import/traces/trace.h"
#include "scenarios/import/traces/trace_ranks.h"
#include "topologies/base/error.h"
#include "topologies/base/json_stream.h"

namespace tandem {
namespace {

// Returns whether the first entry of a list is an event in Chrome's format, in which each has a phase.
bool is_list_of_events(JsonStream& json) {
  if (json.next() != JsonPart::begin_object) return false;
  while (json.next() == JsonPart::key) {
    if (json.text() == "ph") return true;
    json.skip();
  }
  return false;
}

}  // namespace

FilePlace beginning_of(const std::filesystem::path& file) {
  return is_chakra_file(file) ? FilePlace{.byte = 0} : kBeginning;
}

TraceKind trace_kind_of(const InputFile& file) {
  if (is_chakra_file(file.path())) return TraceKind::chakra_messages;
  ByteSource source(file);
  JsonStream json(source);
  bool is_of_numbers = false;
  try {
    const JsonPart first = json.next();
    if (first == JsonPart::begin_array) return is_list_of_events(json) ? TraceKind::kineto : TraceKind::none;
    if (first != JsonPart::begin_object) return TraceKind::none;
    while (json.next() == JsonPart::key) {
      const std::string_view key = json.text();
      if (key == "traceEvents" || key == "deviceProperties") return TraceKind::kineto;
      if (key == "workload_graph") return TraceKind::chakra_json;
      if (key == "nodes") return TraceKind::host_operators;
      is_of_numbers = !key.empty() && key.find_first_not_of("0123456789") == std::string_view::npos;
      if (is_of_numbers) break;
      json.skip();
    }
  } catch (const InputError&) {
    if (source.has_failed()) throw;
    // Its own reader says what is wrong.
  }
  return is_of_numbers ? TraceKind::chakra_groups : TraceKind::none;
}

namespace {

[[noreturn]] void refuse_file(const std::filesystem::path& file, const std::string& message) {
  throw InputError({problem_at(file.string(), beginning_of(file), message)});
}

// Refuses a single rank with collectives among all ranks, which would take no time in a job of one rank.
void check_alone(const RankTrace& trace) {
  const std::int64_t collectives = trace.count(TraceOp::Kind::collective);
  if (collectives == 0) return;
  refuse_file(trace.file, fmt::format("has {} collectives among all ranks of its job and is its only file, so nothing "
                                      "says how many ranks are missing: give the files of all ranks, or their number "
                                      "(import: --devices, --workers; scenario: `ranks`)",
                                      collectives));
}

std::vector<RankTrace> read_chakra(const std::vector<std::filesystem::path>& files, const ChakraGroups& groups,
                                   int ranks) {
  int world = std::max(ranks, static_cast<int>(files.size()));
  for (const std::filesystem::path& file : files) {
    const int rank = rank_of_file(file);
    if (rank < 0 && files.size() > 1) {
      refuse_file(file, "its name has no rank: expected a number before the ending, as in 'job.3.et'");
    }
    world = std::max(world, rank + 1);
  }
  for (const auto& [name, members] : groups) {
    for (const int rank : members) world = std::max(world, rank + 1);
  }
  std::vector<RankTrace> traces;
  for (const std::filesystem::path& file : files) {
    const bool is_binary = trace_kind_of(file) == TraceKind::chakra_messages;
    traces.push_back(make_chakra_trace(is_binary ? read_chakra_messages(file) : read_chakra_json(file), file.string(),
                                       groups, world));
  }
  if (world == 1 && ranks == 0) check_alone(traces.front());
  return traces;
}

// Reads each file by its own kind. All traces must be of one kind.
std::vector<RankTrace> read_each(const std::vector<std::filesystem::path>& files, int ranks) {
  std::vector<RankTrace> traces;
  std::vector<std::filesystem::path> chakra;
  ChakraGroups groups;
  for (const std::filesystem::path& file : files) {
    const InputFile opened(file);
    const TraceKind kind = trace_kind_of(opened);
    if (kind == TraceKind::host_operators) {
      refuse_file(
          file,
          "is an execution trace of PyTorch, which has operators of the host and no times of the device: record a "
          "trace with torch.profiler, or link both with Chakra's converter");
    }
    if (kind == TraceKind::none) refuse_file(file, "is no trace of PyTorch's profiler or of Chakra");
    if (kind == TraceKind::chakra_groups) groups = read_chakra_groups(file);
    if (kind == TraceKind::chakra_messages || kind == TraceKind::chakra_json) chakra.push_back(file);
    if (kind != TraceKind::kineto) continue;
    traces.push_back(read_kineto(opened));
  }
  if (!traces.empty() && !chakra.empty()) {
    refuse_file(chakra.front(), "is a trace of Chakra, and " + traces.front().file + " is one of PyTorch's profiler");
  }
  if (traces.empty() && chakra.empty()) refuse_file(files.front(), "has groups of ranks: give the traces, too");
  return chakra.empty() ? traces : read_chakra(chakra, groups, ranks);
}

// `traces` are in the order of their ranks.
void check_ranks(const std::vector<RankTrace>& traces) {
  for (std::size_t i = 1; i < traces.size(); ++i) {
    const RankTrace &first = traces[i - 1], &second = traces[i];
    if (second.rank != first.rank) continue;
    const RankTrace& unsaid = first.says_rank ? second : first;
    const RankTrace& other = first.says_rank ? first : second;
    if (unsaid.says_rank) refuse_file(second.file, fmt::format("is of rank {}, as {} is", second.rank, first.file));
    refuse_file(unsaid.file, fmt::format("does not say its rank (distributedInfo) and is taken as rank {}, as {} is",
                                         unsaid.rank, other.file));
  }
}

// All files are of one job, so the number of ranks that one states must hold for all of them.
void check_worlds(const std::vector<RankTrace>& traces) {
  const auto first =
      std::find_if(traces.begin(), traces.end(), [](const RankTrace& trace) { return trace.stated_world > 0; });
  if (first == traces.end()) return;
  for (const RankTrace& trace : traces) {
    const bool is_other_job = trace.stated_world > 0 && trace.stated_world != first->stated_world;
    if (!is_other_job && trace.world <= first->stated_world) continue;
    refuse_file(trace.file,
                fmt::format("is of a job of {}{} ranks, and {} of one of {}: give the files of one job",
                            is_other_job ? "" : "at least ", trace.world, first->file, first->stated_world));
  }
}

std::vector<RankTrace> checked_traces(const std::vector<std::filesystem::path>& files, int ranks) {
  std::vector<RankTrace> traces = read_each(files, ranks);
  std::stable_sort(traces.begin(), traces.end(),
                   [](const RankTrace& a, const RankTrace& b) { return a.rank < b.rank; });
  check_ranks(traces);
  check_worlds(traces);
  int world = 1;
  for (const RankTrace& trace : traces) world = std::max(world, trace.world);
  if (ranks > 0 && world != ranks) {
    refuse_file(traces.front().file, fmt::format("is of a job of {} ranks, and `ranks` is {}", world, ranks));
  }
  for (RankTrace& trace : traces) trace.world = world;
  check_groups(traces);
  if (!traces.front().has_host) order_by_dependencies(traces);
  return traces;
}

// Distinguishes a file from a later one in its place.
struct FileState {
  std::filesystem::path path;
  std::uintmax_t size = 0;
  std::filesystem::file_time_type written{};
  bool operator==(const FileState&) const = default;
};

std::vector<FileState> states_of(const std::vector<std::filesystem::path>& files) {
  std::vector<FileState> states;
  for (const std::filesystem::path& file : files) {
    std::error_code ignored;
    states.push_back({.path = std::filesystem::absolute(file, ignored).lexically_normal(),
                      .size = std::filesystem::file_size(file, ignored),
                      .written = std::filesystem::last_write_time(file, ignored)});
  }
  return states;
}

struct LastTraces {
  std::mutex mutex;  // guards the rest
  int ranks = 0;
  std::vector<FileState> states;
  std::shared_ptr<const std::vector<RankTrace>> traces;
};

}  // namespace

bool says_ranks(const std::vector<std::filesystem::path>& files) {
  int alone = 0;
  for (const std::filesystem::path& file : files) {
    const TraceKind kind = trace_kind_of(file);
    if (kind != TraceKind::chakra_messages && kind != TraceKind::chakra_json) return true;
    ++alone;
  }
  return alone != 1;
}

std::shared_ptr<const std::vector<RankTrace>> read_traces(const std::vector<std::filesystem::path>& files, int ranks) {
  static LastTraces last;
  const std::lock_guard lock(last.mutex);
  std::vector<FileState> states = states_of(files);
  if (last.traces && last.states == states && last.ranks == ranks) return last.traces;
  last.traces = nullptr;
  last.traces = std::make_shared<const std::vector<RankTrace>>(checked_traces(files, ranks));
  last.ranks = ranks;
  last.states = std::move(states);
  return last.traces;
}

}  // namespace tandem
