#include "engine/cuda/collectives/nccl_collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/cuda_stream.h"

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
  TANDEM_UNREACHABLE("a Reduction outside its enumerators");
}

cudaStream_t stream_of(const threads::CollectiveCall& call, int party) {
  return static_cast<CudaStream&>(call.stream(party)).gpu_stream();
}

// Names the call in errors. A call that spans processes does not know who has arrived.
std::string text_of(const threads::CollectiveCall& call) {
  return call.spans_processes() ? call.spec().text() : call.text();
}

// The part of one rank in a call.
struct RankPart {
  const threads::CollectiveCall& call;
  const NcclMember& member;
  ncclComm_t handle;

  void issue() const {
    const CollectiveSpec& spec = call.spec();
    const auto count = static_cast<std::size_t>(spec.count);
    const void* input = call.input(member.rank).data();
    void* output = call.output(member.rank).data();
    const ncclDataType_t type = type_of(spec.dtype);
    const ncclRedOp_t operation = operation_of(spec.reduction);
    cudaStream_t stream = stream_of(call, member.rank);
    switch (spec.kind) {
      case CollectiveKind::all_reduce:
        return check(ncclAllReduce(input, output, count, type, operation, handle, stream), "ncclAllReduce");
      case CollectiveKind::reduce:
        return check(ncclReduce(input, output, count, type, operation, spec.root, handle, stream), "ncclReduce");
      case CollectiveKind::broadcast:
        return check(ncclBroadcast(input, output, count, type, spec.root, handle, stream), "ncclBroadcast");
      case CollectiveKind::all_gather:
        return check(ncclAllGather(input, output, count, type, handle, stream), "ncclAllGather");
      case CollectiveKind::reduce_scatter:
        return check(ncclReduceScatter(input, output, count, type, operation, handle, stream), "ncclReduceScatter");
      case CollectiveKind::all_to_all:
        return exchange(type, count, stream);
      case CollectiveKind::send_receive:
        break;  // a call of a pair, not of the group
    }
  }

 private:
  // As nccl-tests does it: NCCL joins the messages of a group to one kernel for each rank.
  void exchange(ncclDataType_t type, std::size_t count, cudaStream_t stream) const {
    const std::size_t part_bytes = call.spec().part_bytes();
    const auto* input = static_cast<const std::byte*>(call.input(member.rank).data());
    auto* output = static_cast<std::byte*>(call.output(member.rank).data());
    for (int peer = 0; peer < call.ranks(); ++peer) {
      const std::size_t offset = static_cast<std::size_t>(peer) * part_bytes;
      check(ncclSend(input + offset, count, type, peer, handle, stream), "ncclSend");
      check(ncclRecv(output + offset, count, type, peer, handle, stream), "ncclRecv");
    }
  }
  void check(ncclResult_t result, std::string_view name) const {
    cuda::check(result, name, fmt::format("rank {}, {}", member.rank, member.name));
  }
};

}  // namespace

void NcclCollectives::execute(const threads::CollectiveCall& call) {
  if (call.spec().kind == CollectiveKind::send_receive) return send(call);
  communicators_->in_group(
      text_of(call), [&](const NcclMember& member) { return stream_of(call, member.rank); },
      [&](const NcclMember& member, ncclComm_t handle) {
        RankPart{call, member, handle}.issue();
      },
      [&] { return call.is_run_stopped(); });
}

// Rank 0 of the call sends to rank 1. NCCL turns a message to the sender itself into a copy.
void NcclCollectives::send(const threads::CollectiveCall& call) {
  const auto count = static_cast<std::size_t>(call.spec().count);
  const ncclDataType_t type = type_of(call.spec().dtype);
  const int from = rank_of(call.device(0)), to = rank_of(call.device(1));
  const auto stream = [&](const NcclMember& member) -> cudaStream_t {
    if (member.rank == from) return stream_of(call, 0);
    return member.rank == to ? stream_of(call, 1) : nullptr;
  };
  const auto issue = [&](const NcclMember& member, ncclComm_t handle) {
    if (member.rank == from) {
      check(ncclSend(call.input(0).data(), count, type, to, handle, stream_of(call, 0)), "ncclSend", member.name);
    }
    if (member.rank == to) {
      check(ncclRecv(call.output(1).data(), count, type, from, handle, stream_of(call, 1)), "ncclRecv", member.name);
    }
  };
  communicators_->in_group(text_of(call), stream, issue, [&] { return call.is_run_stopped(); });
}

int NcclCollectives::rank_of(const Device& device) const {
  const auto found = std::find(devices_.begin(), devices_.end(), device.id().text());
  TANDEM_CHECK(found != devices_.end(), "a message to a device outside the group");
  return static_cast<int>(found - devices_.begin());
}

}  // namespace tandem::cuda
