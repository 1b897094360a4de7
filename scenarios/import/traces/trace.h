// The work of one rank's streams, in the order in which its host issued it, as a profiler recorded it or as another
// program describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "scenarios/import/base/input_file.h"
#include "topologies/base/error.h"

namespace tandem {

struct TraceOp {
  // join: no work, only a point that is reached when all that it waits for has ended.
  enum class Kind : std::uint8_t { kernel, memory, collective, send, receive, join };
  Kind kind = Kind::kernel;
  int name = 0;                  // RankTrace::names
  int stream = 0;                // 0, 1, ... in the order of their first work
  std::int64_t start_ns = 0;     // recorded, since the trace began
  std::int64_t duration_ns = 0;  // recorded
  std::int64_t lag_ns = 0;       // between what it waited for and its start
  std::int64_t issue_ns = 0;     // host time since it issued or waited before
  std::vector<int> after{};      // ops of other streams that it waits for
  int host_waits_for = -1;       // an op whose end the host waits for before it issues this one; -1: none

  double flops = 0, moved_bytes = 0;  // of a kernel without a recorded time: the device's model says how long it takes

  CollectiveKind collective = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;  // of the larger of a rank's input and output
  int group = -1;          // RankTrace::groups
  int peer = -1;           // the rank at the other end; of a broadcast the root
  std::int64_t id = 0;     // of Chakra's node
  std::int64_t tag = 0;    // of a send or receive of Chakra
  FilePlace place{};       // in the file

  std::int64_t end_ns() const { return start_ns + duration_ns; }
};

struct RankTrace {
  std::string file;
  int rank = 0;
  bool has_host = true;   // false: ops wait for nothing but each other, and no host issues them one by one
  bool says_rank = true;  // false: taken as rank 0
  int world = 1;          // ranks of the job
  int stated_world = 0;   // those that the file itself states; 0: it does not
  std::string device;     // the name of its GPU; empty: unknown
  std::vector<std::string> names{};
  std::vector<std::vector<int>> groups{};  // ranks
  std::vector<TraceOp> ops{};              // in the order of issue
  int streams = 0;
  int steps = 0;                     // those that the profiler marked; 0: none
  int first_step = 0;                // its number of the first of them
  std::int64_t recorded_ns = 0;      // from the first issue or start to the last end
  std::vector<std::string> notes{};  // what is unknown
  std::string deadlock{};            // which ops of ranks wait for each other in a circle; empty: none

  std::int64_t count(TraceOp::Kind kind) const;
  std::int64_t kernel_ns() const;  // recorded, of all ops but collectives
  std::int64_t collective_bytes(CollectiveKind kind) const;
  std::int64_t collective_count(CollectiveKind kind) const;
};

// Returns which kind of trace a file has, or that it has the groups of ranks that traces name, by its content. Throws
// InputError for a file that cannot be read.
enum class TraceKind : std::uint8_t { none, kineto, chakra_messages, chakra_json, chakra_groups, host_operators };
TraceKind trace_kind_of(const InputFile& file);

// Returns the place of what is wrong with a whole file: its first line, or its first byte where it has no lines.
FilePlace beginning_of(const std::filesystem::path& file);

inline constexpr std::int64_t kMostRanksOfJob = 1 << 20;

// Returns the traces of a job's ranks, each rank once, in order. Keeps the result for the files that were read last and
// returns it again while they have not changed, because both an import and the scenario that it makes read them.
// `ranks` is the number of ranks of the job where its files do not say it (says_ranks), else 0. Throws InputError.
//
// Threads: any.
std::shared_ptr<const std::vector<RankTrace>> read_traces(const std::vector<std::filesystem::path>& files,
                                                          int ranks = 0);

// Returns whether the files say how many ranks their job has. A single Chakra file without groups does not.
bool says_ranks(const std::vector<std::filesystem::path>& files);

// Returns the machine of the catalog whose GPUs have this name; empty if there is none.
std::string machine_with(const std::string& device);

}  // namespace tandem
