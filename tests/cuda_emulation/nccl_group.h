// What NCCL's calls of a thread add up to: nothing happens before the outermost group ends. Then communicators are made
// together, and each rank's collectives go to its stream, where they wait for those of the others.
#pragma once

#include "tests/cuda_emulation/nccl_clique.h"

namespace tandem::emulation {

// Kept by the work on streams too, so that an aborted communicator may be gone before they notice.
struct RankState {
  std::shared_ptr<Clique> clique;
  int rank = 0, gpu = 0;
  bool blocks = true;  // else the calls of a group return at once, and the state says when they are done
  std::atomic<bool> is_aborted{false};
  std::atomic<ncclResult_t> state{ncclInProgress};  // in progress until all ranks have joined
  std::shared_ptr<Mark> last;                       // of its latest call: they keep their order on whatever streams
};

// One call, or all of a group's sends and receives with a communicator.
struct Call {
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  Contribution contribution;
  std::vector<Message> messages;      // not empty: it is these
  std::shared_ptr<RankState> rank{};  // of the communicator
};

// Notes why as the thread's last message.
ncclResult_t refused(ncclResult_t result, std::string message);
const std::string& last_message();
// What a call begins with: a test may want it to fail.
ncclResult_t entered_nccl(const char* call);

// A call's result: within a group an error is the group's, which then does nothing.
ncclResult_t noted(ncclResult_t result);
// Each does what it says at once outside a group.
ncclResult_t add_call(const char* name, Call call);
ncclResult_t add_ranks(ncclComm_t* communicators, const std::shared_ptr<Clique>& clique, int first_rank,
                       const std::vector<int>& gpus, bool blocks);
// Waits for the work of a rank whose communicator is freed, at the end of a group for all of them together.
ncclResult_t free_rank(std::shared_ptr<RankState> rank);
void begin_group();
ncclResult_t end_group();

}  // namespace tandem::emulation

struct ncclComm {
  std::shared_ptr<tandem::emulation::RankState> rank = std::make_shared<tandem::emulation::RankState>();
};
