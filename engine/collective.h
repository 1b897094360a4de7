// Defines collectives once for all engines: their kinds, what the ranks of a call must agree on, the checks of
// operands, and the texts of errors. Engines differ only in how they execute a collective.
//
// Adding a kind: a row in the table of collective.cc, its effect in each engine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/name.h"
#include "topologies/base/dtype.h"
#include "topologies/base/error.h"

namespace tandem {

struct DeviceId;

enum class Reduction : std::uint8_t { sum, maximum, minimum };
std::string_view name_of(Reduction reduction);

// send_receive is a call between two ranks: rank 0 sends, rank 1 receives.
enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_receive
};
std::string_view name_of(CollectiveKind kind);  // "all_reduce", "send and receive"
// The name in a rank's record: as above, but "send" and "receive" on the two sides of send_receive.
std::string_view record_name(CollectiveKind kind, int rank);
std::optional<CollectiveKind> collective_of_record(std::string_view record_name);

bool is_reducing(CollectiveKind kind);
bool has_root(CollectiveKind kind);
// The number of parts, of CollectiveSpec::count elements each, that a rank's input or output holds: 1, or one for each
// rank.
int input_parts(CollectiveKind kind, int ranks);
int output_parts(CollectiveKind kind, int ranks);

// What all ranks of a call must agree on.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  std::int64_t count = 0;  // elements of one part, see input_parts()
  Reduction reduction = Reduction::sum;
  int root = 0;
  Name purpose{};                // of the program's call, see engine/purpose.h; empty: none
  bool by_copy_engines = false;  // see Communicator::set_gathers_by_copy_engines()

  bool operator==(const CollectiveSpec&) const = default;
  std::string text() const;  // "all_reduce of 10 f32 (sum)", without the purpose
  std::size_t part_bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }
  // The size in nccl-tests' definition: the larger of a rank's input and output.
  std::size_t buffer_bytes(int ranks) const;
};

// nccl-tests' definitions (doc/PERFORMANCE.md): algbw = bytes / time, busbw = algbw * factor, where the factor is
// 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and all_to_all, 1 for broadcast, reduce and
// send_receive.
double bus_bandwidth_factor(CollectiveKind kind, int ranks);

// Checks of what a worker passes to its communicator. All throw UsageError, in the same words on every engine.
//
// Checks the devices of a communicator: at least one, none twice.
void check_group(std::span<const DeviceId> devices);
// Checks that a timeout is greater than 0 s. Returns nothing for an infinite one.
std::optional<double> checked_timeout(std::optional<double> timeout_s);

// Texts of the engines' messages.
//
// Describes a call under way: "all_reduce #5 for read() of variable 'v' (4 of 8 devices arrived; missing /job:...)".
std::string call_text(CollectiveKind kind, Name purpose, std::int64_t sequence, const std::vector<DeviceId>& devices,
                      const std::function<bool(int rank)>& has_arrived);
// Makes the error of two callers (devices or workers) that disagree about call `sequence` of their group.
RunError call_mismatch(std::int64_t sequence, std::string_view caller, const CollectiveSpec& spec,
                       std::string_view other_caller, const CollectiveSpec& other_spec);
// Makes the error of Communicator::set_timeout(): `call` (its call_text) took too long for the device `waiting`.
DeadlineExceededError deadline_exceeded(std::string_view call, const std::vector<DeviceId>& devices,
                                        const DeviceId& waiting, double timeout_s);

}  // namespace tandem
