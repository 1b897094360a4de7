// NCCL's calls.
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/cuda_emulation/nccl_group.h"
#include "tests/cuda_emulation/nccl_shared_clique.h"

using namespace tandem::emulation;

namespace {

// The folder in which the processes of a job meet; null where this process is alone.
const char* job_folder() {
  return std::getenv("TANDEM_EMULATED_JOB");
}

// The text of an id, which names its communicator's files.
std::string name_of(const ncclUniqueId& id) {
  return {id.internal, strnlen(id.internal, sizeof(id.internal))};
}

// Made by the first rank that comes with the id, shared by all.
std::shared_ptr<Clique> clique_of(const ncclUniqueId& id, int ranks) {
  static std::mutex& mutex = *new std::mutex;
  static auto& cliques = *new std::map<std::string, std::weak_ptr<Clique>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Clique>& known = cliques[name_of(id)];
  std::shared_ptr<Clique> clique = known.lock();
  if (clique) return clique;
  if (job_folder() == nullptr) {
    clique = std::make_shared<LocalClique>(ranks);
  } else {
    clique = std::make_shared<SharedClique>(std::string(job_folder()) + "/" + name_of(id), ranks);
  }
  known = clique;
  return clique;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return entered_nccl(__func__);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (const ncclResult_t result = entered_nccl(__func__); result != ncclSuccess) return result;
  static std::atomic<std::uint64_t> next{1};
  *id = {};
  std::snprintf(id->internal, sizeof(id->internal), "%d-%llu", getpid(), static_cast<unsigned long long>(next++));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (const ncclResult_t result = entered_nccl("ncclCommInitRank"); result != ncclSuccess) return noted(result);
  if (rank < 0 || rank >= ranks) return noted(refused(ncclInvalidArgument, "no such rank"));
  const std::shared_ptr<Clique> clique = clique_of(id, ranks);
  return add_ranks(communicator, clique, rank, {current_gpu()}, config == nullptr || config->blocking != 0);
}

ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(communicator, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommInitAll(ncclComm_t* communicators, int count, const int* gpus) {
  if (const ncclResult_t result = entered_nccl(__func__); result != ncclSuccess) return result;
  for (int rank = 0; rank < count; ++rank) {
    if (!is_gpu(gpus[rank])) return refused(ncclUnhandledCudaError, "no such GPU");
    for (int other = 0; other < rank; ++other) {
      if (gpus[rank] == gpus[other]) return refused(ncclInvalidUsage, "Duplicate GPU detected");
    }
  }
  return add_ranks(communicators, std::make_shared<LocalClique>(count), 0, {gpus, gpus + count}, true);
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  return communicator == nullptr ? ncclInvalidArgument : entered_nccl(__func__);
}

// Waits for what is under way, as NCCL does.
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (communicator == nullptr) return ncclInvalidArgument;
  const std::shared_ptr<RankState> rank = communicator->rank;
  if (rank->state == ncclInProgress) return refused(ncclInvalidArgument, "its previous operation is in progress");
  delete communicator;
  return free_rank(rank);
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  if (communicator == nullptr) return ncclInvalidArgument;
  const std::shared_ptr<RankState> rank = communicator->rank;
  rank->is_aborted = true;
  rank->clique->abort();
  if (!rank->blocks) rank->state.wait(ncclInProgress);
  delete communicator;
  return free_rank(rank);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  if (const ncclResult_t result = entered_nccl(__func__); result != ncclSuccess) return result;
  const ncclResult_t failure = communicators_failure();
  *error = failure != ncclSuccess ? failure : communicator->rank->state.load();
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  if (const ncclResult_t result = entered_nccl(__func__); result != ncclSuccess) return result;
  begin_group();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  return end_group();
}

ncclResult_t ncclAllReduce(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  return add_call(__func__,
                  {communicator, stream, {Collective::all_reduce, input, output, count, type, operation}, {}});
}

ncclResult_t ncclReduce(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t communicator, cudaStream_t stream) {
  return add_call(__func__,
                  {communicator, stream, {Collective::reduce, input, output, count, type, operation, root}, {}});
}

ncclResult_t ncclBroadcast(const void* input, void* output, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add_call(__func__,
                  {communicator, stream, {Collective::broadcast, input, output, count, type, ncclSum, root}, {}});
}

ncclResult_t ncclAllGather(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return add_call(__func__, {communicator, stream, {Collective::all_gather, input, output, count, type}, {}});
}

ncclResult_t ncclReduceScatter(const void* input, void* output, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  return add_call(__func__,
                  {communicator, stream, {Collective::reduce_scatter, input, output, count, type, operation}, {}});
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add_call(__func__, {communicator, stream, {}, {{true, const_cast<void*>(from), count * size_of(type), peer}}});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add_call(__func__, {communicator, stream, {}, {{false, to, count * size_of(type), peer}}});
}

const char* ncclGetLastError(ncclComm_t) {
  return last_message().c_str();
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
