// What a collective is, said once for every engine: its kinds, what the ranks of a call must agree on, the checks of
// its operands, and the words of its errors. Engines differ only in how they execute one.
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

#include "topologies/base/dtype.h"
#include "topologies/base/error.h"

namespace tandem {

class Communicator;
class Device;
class Stream;
class Tensor;
struct DeviceId;

enum class Reduction : std::uint8_t { sum, maximum, minimum };
std::string_view name_of(Reduction reduction);

// send_receive is a call of two: rank 0 of it sends, rank 1 receives.
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
// How many parts of CollectiveSpec::count elements a rank's input or output holds: 1, or one a rank.
int input_parts(CollectiveKind kind, int ranks);
int output_parts(CollectiveKind kind, int ranks);

// What all ranks of a call must agree on.
struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;
  std::int64_t count = 0;  // elements of one part, see input_parts()
  Reduction reduction = Reduction::sum;
  int root = 0;

  bool operator==(const CollectiveSpec&) const = default;
  std::string text() const;  // "all_reduce of 10 f32 (sum)"
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
// One tensor of one type and size and one stream for each local device, on that device; a root within the group.
// `outputs` and `inputs` are the same where the collective works in place; all_to_all cannot. Returns `spec` with its
// element type and count filled in; both stay as they were when the worker has no device in the group.
CollectiveSpec check_operands(CollectiveSpec spec, const Communicator& group, std::span<const Tensor> outputs,
                              std::span<const Tensor> inputs, std::span<Stream* const> streams);
// One end of a send or receive. Returns the rank of the stream's device.
int check_end(const Communicator& group, const Tensor& tensor, int peer_rank, const Stream& stream);
// The devices of a communicator: at least one, each once.
void check_group(std::span<const DeviceId> devices);
// A timeout is greater than 0 s. Returns nothing for one that never ends.
std::optional<double> checked_timeout(std::optional<double> timeout_s);

// The words of engines' messages.
//
// A call under way: "all_reduce #5 (4 of 8 devices arrived; missing /job:..., ...)".
std::string call_text(CollectiveKind kind, std::int64_t sequence, const std::vector<DeviceId>& devices,
                      const std::function<bool(int rank)>& has_arrived);
// Two callers (devices or workers) disagree about what call `sequence` of their group is.
RunError call_mismatch(std::int64_t sequence, std::string_view caller, const CollectiveSpec& spec,
                       std::string_view other_caller, const CollectiveSpec& other_spec);
// Communicator::set_timeout's error: `call` (its call_text) took too long for the device `waiting`.
DeadlineExceededError deadline_exceeded(std::string_view call, const std::vector<DeviceId>& devices,
                                        const DeviceId& waiting, double timeout_s);

}  // namespace tandem
