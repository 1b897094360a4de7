#include "tests/cuda_emulation/nccl_group.h"

#include <chrono>
#include <optional>
#include <thread>

#include "tests/cuda_emulation/memory.h"

namespace tandem::emulation {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;  // of a call: then the group does nothing
  std::vector<Call> calls;
  std::vector<std::shared_ptr<RankState>> joining, freed;
};
thread_local Group group;

// One for all threads, as NCCL's.
std::mutex message_mutex;
std::string& last_text() {
  static std::string& text = *new std::string;
  return text;
}

// Takes a GPU's slot for one communicator's kernel; without it where the communicator is aborted.
class SlotTurn {
 public:
  explicit SlotTurn(RankState& rank) : slot_(gpu(rank.gpu).slot) {
    std::unique_lock lock(slot_.mutex);
    while (slot_.is_taken) {
      if (rank.clique->has_ended()) return;
      slot_.changed.wait_for(lock, std::chrono::milliseconds(1));
    }
    has_slot_ = slot_.is_taken = true;
  }
  ~SlotTurn() {
    if (!has_slot_) return;
    const std::lock_guard lock(slot_.mutex);
    slot_.is_taken = false;
    slot_.changed.notify_all();
  }
  SlotTurn(const SlotTurn&) = delete;
  SlotTurn& operator=(const SlotTurn&) = delete;

 private:
  CommunicationSlot& slot_;
  bool has_slot_ = false;
};

cudaError_t run_collective(RankState& rank, const Contribution& mine) {
  const auto ranks = static_cast<std::size_t>(rank.clique->ranks());
  const std::size_t bytes = mine.count * size_of(mine.type);
  const bool scatters = mine.kind == Collective::reduce_scatter, gathers = mine.kind == Collective::all_gather;
  const bool is_root = mine.root == rank.rank;
  if (mine.kind != Collective::broadcast || is_root) {
    if (const auto error = check_access(mine.input, scatters ? bytes * ranks : bytes, rank.gpu)) return error;
  }
  if (mine.kind != Collective::reduce || is_root) {
    if (const auto error = check_access(mine.output, gathers ? bytes * ranks : bytes, rank.gpu)) return error;
  }
  rank.clique->meet(rank.rank, mine);
  return cudaSuccess;
}

cudaError_t run_messages(RankState& rank, const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    if (const auto error = check_access(message.at, message.bytes, rank.gpu)) return error;
  }
  rank.clique->exchange(rank.rank, messages);
  return cudaSuccess;
}

cudaError_t run_call(RankState& rank, const Call& call) {
  if (gpu(rank.gpu).failure != cudaSuccess) return cudaSuccess;
  const SlotTurn turn(rank);
  return call.messages.empty() ? run_collective(rank, call.contribution) : run_messages(rank, call.messages);
}

// A captured call has its place in its graph; any other waits for the communicator's one before, whatever the stream.
Work work_of(const Call& call) {
  const std::shared_ptr<RankState>& rank = call.rank;
  if (is_captured(call.stream)) return {[rank, call] { return run_call(*rank, call); }};
  auto mark = std::make_shared<Mark>();
  const auto before = std::exchange(rank->last, mark);
  return {[=] {
            if (before) before->is_done.wait(false);
            const cudaError_t error = run_call(*rank, call);
            mark->is_done = true;
            mark->is_done.notify_all();
            return error;
          },
          true};
}

ncclResult_t put_on_stream(const Call& call) {
  // The launch of one rank's part: those before are under way.
  if (const ncclResult_t result = entered_nccl("ncclLaunchKernel"); result != ncclSuccess) return result;
  if (call.stream->gpu != call.rank->gpu) return refused(ncclInvalidArgument, "a stream of another GPU");
  const cudaError_t error = issue(call.stream, work_of(call));
  return error == cudaSuccess ? ncclSuccess : refused(ncclUnhandledCudaError, cudaGetErrorString(error));
}

void add_to_group(Call call) {
  for (Call& earlier : group.calls) {
    if (call.messages.empty() || earlier.messages.empty() || earlier.communicator != call.communicator) continue;
    earlier.messages.push_back(call.messages.front());
    return;
  }
  group.calls.push_back(std::move(call));
}

ncclResult_t join(const std::vector<std::shared_ptr<RankState>>& ranks) {
  if (ranks.empty()) return ncclSuccess;
  const Synchronising synchronising("ncclCommInitRank");
  ncclResult_t result = ncclSuccess;
  for (const auto& rank : ranks) {
    std::string text;
    const ncclResult_t joined = rank->clique->wait_for_all(rank->is_aborted, text);
    if (joined != ncclSuccess) result = refused(joined, text);
  }
  return result;
}

void connect(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    if (!call.rank->clique->is_first(!call.messages.empty())) continue;
    const Synchronising synchronising("connecting a communicator");
    std::this_thread::sleep_for(std::chrono::milliseconds(machine().connect_ms));
  }
}

ncclResult_t launch(const std::vector<Call>& calls) {
  connect(calls);
  std::optional<Launching> launching;
  if (calls.size() > 1) launching.emplace();
  for (const Call& call : calls) {
    if (const ncclResult_t result = put_on_stream(call); result != ncclSuccess) return result;
    be_late();
    while (holds_launches() && !call.rank->is_aborted) std::this_thread::yield();
    if (call.rank->is_aborted) return ncclInternalError;
  }
  return ncclSuccess;
}

void free(const std::vector<std::shared_ptr<RankState>>& ranks) {
  if (ranks.empty()) return;
  const Synchronising synchronising("ncclCommDestroy or ncclCommAbort");
  for (const auto& rank : ranks) {
    if (const auto last = rank->last) last->is_done.wait(false);
    wait_for_gpu(rank->gpu);
  }
}

std::vector<std::shared_ptr<RankState>> ranks_of(const Group& ended) {
  std::vector<std::shared_ptr<RankState>> ranks = ended.joining;
  for (const Call& call : ended.calls) ranks.push_back(call.rank);
  return ranks;
}

void set_state(const std::vector<std::shared_ptr<RankState>>& ranks, ncclResult_t state) {
  for (const auto& rank : ranks) {
    rank->state = state;
    rank->state.notify_all();
  }
}

ncclResult_t finish(const Group& ended) {
  ncclResult_t result = join(ended.joining);
  if (result == ncclSuccess) result = launch(ended.calls);
  free(ended.freed);
  set_state(ranks_of(ended), result);
  return result;
}

ncclResult_t execute_group() {
  Group ended = std::exchange(group, {});
  bool blocks = true;
  for (const auto& rank : ended.joining) rank->clique->join(rank->rank, rank->gpu);
  for (const auto& rank : ranks_of(ended)) blocks = blocks && rank->blocks;
  if (blocks || !ended.freed.empty()) return finish(ended);
  set_state(ranks_of(ended), ncclInProgress);
  std::thread([ended = std::move(ended)] { finish(ended); }).detach();
  return ncclInProgress;
}

// The group does nothing, and leaves the thread on the GPU of its last rank.
ncclResult_t give_up_group() {
  const Group failed = std::exchange(group, {});
  set_state(failed.joining, failed.error);
  if (const auto ranks = ranks_of(failed); !ranks.empty()) use_gpu(ranks.back()->gpu);
  return failed.error;
}

}  // namespace

ncclResult_t refused(ncclResult_t result, std::string message) {
  const std::lock_guard lock(message_mutex);
  last_text() = std::move(message);
  return result;
}

const std::string& last_message() {
  thread_local std::string copy;
  const std::lock_guard lock(message_mutex);
  copy = last_text();
  return copy;
}

ncclResult_t entered_nccl(const char* call) {
  const auto error = static_cast<ncclResult_t>(injected(call));
  return error == ncclSuccess ? error : refused(error, std::string(call) + " was told to fail");
}

namespace {

ncclResult_t check_call(const char* name, const Call& call) {
  if (const ncclResult_t result = entered_nccl(name); result != ncclSuccess) return result;
  if (call.communicator == nullptr) return refused(ncclInvalidArgument, "no communicator");
  if (call.communicator->rank->state == ncclInProgress) {
    return refused(ncclInvalidArgument, "the communicator's previous operation is in progress");
  }
  const int ranks = call.communicator->rank->clique->ranks();
  const int peer = call.messages.empty() ? call.contribution.root : call.messages.front().peer;
  return peer < 0 || peer >= ranks ? refused(ncclInvalidArgument, "no such rank") : ncclSuccess;
}

}  // namespace

ncclResult_t noted(ncclResult_t result) {
  if (group.depth > 0 && result != ncclSuccess) group.error = result;
  return result;
}

ncclResult_t add_call(const char* name, Call call) {
  if (const ncclResult_t result = check_call(name, call); result != ncclSuccess) return noted(result);
  call.rank = call.communicator->rank;
  add_to_group(std::move(call));
  return group.depth > 0 ? ncclSuccess : execute_group();
}

ncclResult_t add_ranks(ncclComm_t* communicators, const std::shared_ptr<Clique>& clique, int first_rank,
                       const std::vector<int>& gpus, bool blocks) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    communicators[i] = new ncclComm;
    RankState& rank = *communicators[i]->rank;
    rank.clique = clique;
    rank.rank = first_rank + static_cast<int>(i);
    rank.gpu = gpus[i];
    rank.blocks = blocks;
    group.joining.push_back(communicators[i]->rank);
  }
  return group.depth > 0 ? ncclSuccess : execute_group();
}

ncclResult_t free_rank(std::shared_ptr<RankState> rank) {
  group.freed.push_back(std::move(rank));
  return group.depth > 0 ? ncclSuccess : execute_group();
}

void begin_group() {
  ++group.depth;
}

ncclResult_t end_group() {
  if (group.depth == 0) return refused(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return ncclSuccess;
  if (group.error == ncclSuccess) group.error = entered_nccl("ncclGroupEnd");
  if (group.error != ncclSuccess) return give_up_group();
  return execute_group();
}

}  // namespace tandem::emulation
