// The ranks of an emulated NCCL communicator, and where their streams meet.
//
// Threads: any. What waits on a stream ends when all ranks are aborted.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/cuda_emulation/streams.h"

namespace tandem::emulation {

enum class Collective : std::uint8_t { all_reduce, reduce, broadcast, all_gather, reduce_scatter };

// What one rank contributes to a collective; `count` as in its call.
struct Contribution {
  Collective kind = Collective::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t operation = ncclSum;
  int root = 0;

  bool agrees_with(const Contribution& other) const;
};

// One send or receive.
struct Message {
  bool is_send = false;
  void* at = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
};

std::size_t size_of(ncclDataType_t type);
// As all ranks' contributions, in the order of ranks; on host memory.
void execute(const std::vector<Contribution>& ranks);

// NCCL would hang, or write where it must not.
[[noreturn]] void fail(const char* what);
// Success, or what NCCL says of two ranks on one GPU.
ncclResult_t check_gpus(const std::vector<int>& gpus, std::string& message);

class Clique {
 public:
  virtual ~Clique() = default;
  virtual int ranks() const = 0;
  // Each rank joins once; the last to come finds the faults.
  virtual void join(int rank, int gpu) = 0;
  virtual ncclResult_t wait_for_all(const std::atomic<bool>& is_aborted, std::string& message) = 0;
  // Of one rank. Work under way ends when all are aborted: the kernels of a rank also wait for the others' to end.
  virtual void abort() = 0;
  virtual bool has_ended() = 0;
  // Whether this is the first collective, or the first messages: then its ranks have to be connected.
  bool is_first(bool has_messages) { return !has_connected_[has_messages ? 1 : 0].exchange(true); }

  // On the rank's stream, in the order of its calls. False: aborted.
  virtual bool meet(int rank, const Contribution& mine) = 0;
  virtual bool exchange(int rank, const std::vector<Message>& mine) = 0;

 private:
  std::array<std::atomic<bool>, 2> has_connected_{};
};

// All ranks are in this process.
class LocalClique final : public Clique {
 public:
  explicit LocalClique(int ranks) : gpus_(static_cast<std::size_t>(ranks), -1), calls_(gpus_.size(), 0) {}

  int ranks() const override { return static_cast<int>(gpus_.size()); }
  void join(int rank, int gpu) override;
  ncclResult_t wait_for_all(const std::atomic<bool>& is_aborted, std::string& message) override;
  void abort() override;
  bool has_ended() override;
  bool meet(int rank, const Contribution& mine) override;
  bool exchange(int rank, const std::vector<Message>& mine) override;

 private:
  struct Call {
    std::map<int, Contribution> ranks;
    bool is_done = false;
    int left = 0;
  };
  struct Parcel {
    Message message;
    bool is_taken = false;
  };
  using Mailbox = std::deque<std::shared_ptr<Parcel>>;

  bool is_aborted() const { return aborted_ == ranks(); }
  void complete(Call& call);
  static void take(Parcel& parcel, const Message& mine);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> gpus_;
  int joined_ = 0, aborted_ = 0;
  std::vector<std::uint64_t> calls_;  // of each rank so far
  std::map<std::uint64_t, Call> under_way_;
  std::map<std::pair<int, int>, Mailbox> mail_;  // from, to
};

}  // namespace tandem::emulation
