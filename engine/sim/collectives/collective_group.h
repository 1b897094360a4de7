// The groups of devices that communicate, and the calls in which their workers meet.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/communicator.h"
#include "engine/sim/collectives/call_deadline.h"
#include "engine/sim/collectives/collective_schedule.h"
#include "engine/sim/sim_stream.h"

namespace tandem::sim {

class SimRun;

// What all workers of a call must agree on.
struct CollectiveRequest {
  Operation operation = Operation::all_reduce;
  Reduction reduction = Reduction::sum;
  int root_rank = 0;
  DType dtype = DType::f32;
  double bytes = 0;  // nccl-tests' definition

  std::string text() const;  // "all_reduce of 4.000 MB f32"
  bool operator==(const CollectiveRequest&) const = default;
};

class CollectiveGroup;

// One collective operation of a group, from its first arrival to its end. In the kernel.
class CollectiveCall : public std::enable_shared_from_this<CollectiveCall> {
 public:
  CollectiveCall(SimRun& run, CollectiveGroup& group, CollectiveRequest request, int first_worker,
                 std::int64_t sequence);

  // A worker announces its devices' part. Throws RunError naming both when it is not the same operation.
  void join(int worker, const CollectiveRequest& request);
  void set_tensors(int rank, const Tensor& output, const Tensor& input);
  // The stream of `rank` has come to this call, and fails the run when it is not over `timeout_s` later. The last
  // arrival starts it.
  void arrive(int rank, SimStream& stream, Record record, double issued_s, std::optional<double> timeout_s);

  const CollectiveRequest& request() const { return request_; }
  const std::vector<SimDevice*>& devices() const;
  std::span<const Tensor> outputs() const { return outputs_; }
  std::span<const Tensor> inputs() const { return inputs_; }
  std::int64_t sequence() const { return sequence_; }
  std::string text() const;  // "all_reduce #5 (4 of 8 devices arrived; missing /job:...)"

 private:
  void start();
  void end();
  void miss_deadline(int rank, double timeout_s);

  struct Arrival {
    SimStream* stream = nullptr;
    Record record;
  };

  SimRun& run_;
  CollectiveGroup& group_;
  CollectiveRequest request_;
  int first_worker_;
  std::int64_t sequence_;
  std::vector<Arrival> arrivals_;  // by rank
  int arrived_ = 0;
  double last_arrival_s_ = 0;
  CallDeadline deadline_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> inputs_;
};

// Both ends of a point-to-point transfer.
struct PairCall {
  std::int64_t sequence = 0;
  SimStream* sender = nullptr;
  SimStream* receiver = nullptr;
  Tensor from;
  Tensor to;
  Record send_record;
  Record receive_record;
  CallDeadline deadline;
};

class CollectiveGroup {
 public:
  CollectiveGroup(SimRun& run, std::vector<SimDevice*> devices);

  const std::vector<SimDevice*>& devices() const { return devices_; }  // by rank
  // The ranks in the order in which rings pass them: devices of one worker are neighbours.
  const std::vector<int>& ring_order() const { return ring_order_; }

  const std::vector<int>& ranks_of(int worker) const;

  // The next call of `worker`, made by whoever comes first.
  std::shared_ptr<CollectiveCall> next_call(int worker, const CollectiveRequest& request);
  // The oldest pair between two ranks that still lacks this end.
  std::shared_ptr<PairCall> next_pair(int from_rank, int to_rank, bool is_sender);

 private:
  struct Pairs {
    std::vector<std::shared_ptr<PairCall>> open;
    std::size_t sends = 0;
    std::size_t receives = 0;
  };
  SimRun& run_;
  std::vector<SimDevice*> devices_;
  std::vector<int> ring_order_;
  std::map<int, std::vector<int>> ranks_of_;  // by worker
  std::map<int, std::uint64_t> calls_made_;   // by worker
  struct Open {
    std::shared_ptr<CollectiveCall> call;
    int joined = 0;
  };
  std::map<std::uint64_t, Open> open_calls_;
  std::map<std::pair<int, int>, Pairs> pairs_;
};

class CollectiveGroups {
 public:
  CollectiveGroup& group(SimRun& run, std::span<const DeviceId> devices);
  std::int64_t next_sequence() { return sequence_++; }

 private:
  std::map<std::vector<int>, std::unique_ptr<CollectiveGroup>> groups_;
  // The last one asked for: thousands of workers ask for the same thousands of devices, one after the other.
  std::vector<DeviceId> last_devices_;
  CollectiveGroup* last_ = nullptr;
  std::int64_t sequence_ = 0;
};

}  // namespace tandem::sim
