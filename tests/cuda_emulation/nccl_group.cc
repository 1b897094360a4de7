#include "tests/cuda_emulation/nccl_group.h"

#include "tests/cuda_emulation/memory.h"

namespace tandem::emulation {
namespace {

struct Joining {
  std::shared_ptr<RankState> rank;
  bool blocks;
};

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;  // of a call: then the group does nothing
  std::vector<Call> calls;
  std::vector<Joining> joining;
};
thread_local Group group;
thread_local std::string message_of_thread;

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
  rank.clique->meet(rank.rank, mine, rank.is_aborted);
  return cudaSuccess;
}

cudaError_t run_messages(RankState& rank, const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    if (const auto error = check_access(message.at, message.bytes, rank.gpu)) return error;
  }
  rank.clique->exchange(rank.rank, messages, rank.is_aborted);
  return cudaSuccess;
}

cudaError_t run_call(RankState& rank, const Call& call) {
  if (gpu(rank.gpu).failure != cudaSuccess) return cudaSuccess;
  return call.messages.empty() ? run_collective(rank, call.contribution) : run_messages(rank, call.messages);
}

// A captured call has its place in its graph; any other waits for the communicator's one before, whatever the stream.
Work work_of(const Call& call) {
  const std::shared_ptr<RankState>& rank = call.communicator->rank;
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
  if (call.stream->gpu != call.communicator->rank->gpu) return refused(ncclInvalidArgument, "a stream of another GPU");
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

ncclResult_t finish_joining(const std::vector<Joining>& joining) {
  ncclResult_t result = ncclSuccess;
  for (const Joining& each : joining) {
    std::string message;
    const ncclResult_t joined = each.rank->clique->wait_for_all(message);
    each.rank->state = joined;
    if (joined != ncclSuccess) result = refused(joined, message);
  }
  return result;
}

ncclResult_t perform_group() {
  const Group ended = std::exchange(group, {});
  bool blocks = true;
  for (const Joining& each : ended.joining) {
    each.rank->clique->join(each.rank->rank, each.rank->gpu);
    blocks = blocks && each.blocks;
  }
  if (!blocks) {
    std::thread([joining = ended.joining] { finish_joining(joining); }).detach();
    return ncclInProgress;
  }
  if (const ncclResult_t result = finish_joining(ended.joining); result != ncclSuccess) return result;
  for (const Call& call : ended.calls) {
    if (const ncclResult_t result = put_on_stream(call); result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace

ncclResult_t refused(ncclResult_t result, std::string message) {
  message_of_thread = std::move(message);
  return result;
}

const std::string& last_message() {
  return message_of_thread;
}

ncclResult_t entered_nccl(const char* call) {
  const auto error = static_cast<ncclResult_t>(injected(call));
  return error == ncclSuccess ? error : refused(error, std::string(call) + " was told to fail");
}

namespace {

ncclResult_t check_call(const char* name, const Call& call) {
  if (const ncclResult_t result = entered_nccl(name); result != ncclSuccess) return result;
  if (call.communicator == nullptr) return refused(ncclInvalidArgument, "no communicator");
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
  add_to_group(std::move(call));
  return group.depth > 0 ? ncclSuccess : perform_group();
}

ncclResult_t add_ranks(ncclComm_t* communicators, const std::shared_ptr<Clique>& clique, int first_rank,
                       const std::vector<int>& gpus, bool blocks) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    communicators[i] = new ncclComm;
    RankState& rank = *communicators[i]->rank;
    rank.clique = clique;
    rank.rank = first_rank + static_cast<int>(i);
    rank.gpu = gpus[i];
    group.joining.push_back({communicators[i]->rank, blocks});
  }
  return group.depth > 0 ? ncclSuccess : perform_group();
}

void begin_group() {
  ++group.depth;
}

ncclResult_t end_group() {
  if (group.depth == 0) return refused(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return ncclSuccess;
  if (group.error == ncclSuccess) group.error = entered_nccl("ncclGroupEnd");
  if (group.error != ncclSuccess) return std::exchange(group, {}).error;
  return perform_group();
}

}  // namespace tandem::emulation
