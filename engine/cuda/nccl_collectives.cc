#include "engine/cuda/nccl_collectives.h"

#include <fmt/format.h>

#include "engine/cuda/cuda_error.h"
#include "engine/cuda/cuda_stream.h"

namespace tandem::cuda {
namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ncclFloat64;
    case DType::f32:
      return ncclFloat32;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i64:
      return ncclInt64;
    case DType::i32:
      return ncclInt32;
    case DType::u8:
      return ncclUint8;
    default:
      throw RunError(fmt::format("a collective has no implementation for {}", name_of(dtype)));
  }
}

ncclRedOp_t operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return ncclSum;
    case Reduction::maximum:
      return ncclMax;
    case Reduction::minimum:
      return ncclMin;
  }
  return ncclSum;
}

}  // namespace

NcclCollectives::NcclCollectives(const std::vector<int>& gpus, std::vector<std::string> names)
    : names_(std::move(names)), communicators_(gpus.size()) {
  cuda::check(ncclCommInitAll(communicators_.data(), static_cast<int>(gpus.size()), gpus.data()), "ncclCommInitAll",
              fmt::format("{} GPUs", gpus.size()));
}

NcclCollectives::~NcclCollectives() {
  for (ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
}

void NcclCollectives::perform(const cpu::CollectiveCall& call) {
  if (call.spec().kind == cpu::CollectiveKind::send_receive) return copies_.perform(call);
  const std::lock_guard lock(mutex_);
  if (communicators_.empty()) throw RunError("the NCCL communicator was given up after a missed deadline");
  cuda::check(ncclGroupStart(), "ncclGroupStart");
  try {
    for (int rank = 0; rank < call.ranks(); ++rank) perform_rank(call, rank);
  } catch (...) {
    ncclGroupEnd();  // what was begun; the first error is the one to tell
    throw;
  }
  cuda::check(ncclGroupEnd(), "ncclGroupEnd", call.text());
}

void NcclCollectives::perform_rank(const cpu::CollectiveCall& call, int rank) {
  const cpu::CollectiveSpec& spec = call.spec();
  const auto count = static_cast<std::size_t>(spec.count);
  const void* input = call.input(rank).data();
  void* output = call.output(rank).data();
  const ncclDataType_t type = type_of(spec.dtype);
  const ncclRedOp_t operation = operation_of(spec.reduction);
  ncclComm_t communicator = communicators_[static_cast<std::size_t>(rank)];
  cudaStream_t stream = static_cast<CudaStream&>(call.stream(rank)).gpu_stream();
  const std::string& name = names_[static_cast<std::size_t>(rank)];
  switch (spec.kind) {
    case cpu::CollectiveKind::all_reduce:
      return cuda::check(ncclAllReduce(input, output, count, type, operation, communicator, stream), "ncclAllReduce",
                         name);
    case cpu::CollectiveKind::reduce:
      return cuda::check(ncclReduce(input, output, count, type, operation, spec.root, communicator, stream),
                         "ncclReduce", name);
    case cpu::CollectiveKind::broadcast:
      return cuda::check(ncclBroadcast(input, output, count, type, spec.root, communicator, stream), "ncclBroadcast",
                         name);
    case cpu::CollectiveKind::all_gather:
      return cuda::check(ncclAllGather(input, output, count, type, communicator, stream), "ncclAllGather", name);
    case cpu::CollectiveKind::reduce_scatter:
      return cuda::check(ncclReduceScatter(input, output, count, type, operation, communicator, stream),
                         "ncclReduceScatter", name);
    case cpu::CollectiveKind::send_receive:
      break;
  }
}

// Ends its kernels too, so that the streams can be waited for.
void NcclCollectives::abort() {
  const std::lock_guard lock(mutex_);
  for (ncclComm_t communicator : communicators_) ncclCommAbort(communicator);
  communicators_.clear();
}

void NcclCollectives::check() {
  const std::lock_guard lock(mutex_);
  for (std::size_t rank = 0; rank < communicators_.size(); ++rank) {
    ncclResult_t state = ncclSuccess;
    cuda::check(ncclCommGetAsyncError(communicators_[rank], &state), "ncclCommGetAsyncError", names_[rank]);
    if (state != ncclInProgress) {
      cuda::check(state, "NCCL", fmt::format("rank {}, {}", rank, names_[rank]));
    }
  }
}

}  // namespace tandem::cuda
