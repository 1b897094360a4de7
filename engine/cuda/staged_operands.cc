#include "engine/cuda/staged_operands.h"

#include <fmt/format.h>

#include "engine/cuda/cuda_device.h"
#include "engine/cuda/cuda_error.h"
#include "engine/cuda/gpu_watch.h"

namespace tandem::cuda {
namespace {

bool has_input(const CollectiveSpec& spec, int rank) {
  const bool is_roots = spec.kind == CollectiveKind::broadcast || spec.kind == CollectiveKind::send_receive;
  return !is_roots || rank == spec.root;
}

bool has_output(const CollectiveSpec& spec, int rank) {
  if (spec.kind == CollectiveKind::reduce) return rank == spec.root;
  return spec.kind != CollectiveKind::send_receive || rank == 1;
}

cudaStream_t gpu_stream_of(const threads::CollectiveCall& call, int rank) {
  return static_cast<CudaStream&>(call.stream(rank)).gpu_stream();
}

const Gpu& gpu_of(const threads::CollectiveCall& call, int rank) {
  return static_cast<CudaDevice&>(call.device(rank)).gpu();
}

// Copies between a tensor and a block of host memory, on the stream of the rank.
void copy(const threads::CollectiveCall& call, int rank, void* to, const void* from, std::size_t bytes) {
  const UseGpu use(gpu_of(call, rank).ordinal());
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gpu_stream_of(call, rank)), "cudaMemcpyAsync",
        call.device(rank).id().text());
}

}  // namespace

std::byte* StagedOperands::take(threads::HostOperands& operands, std::size_t bytes) const {
  void* block = pinned_->take(bytes);
  if (block == nullptr) throw RunError(fmt::format("no pinned memory for {} bytes of a collective", bytes));
  operands.held.emplace_back(block, [pool = pinned_, bytes](void* taken) { pool->give_back(taken, bytes); });
  return static_cast<std::byte*>(block);
}

void StagedOperands::wait_for(const threads::CollectiveCall& call, int rank) const {
  cudaStream_t stream = gpu_stream_of(call, rank);
  const std::string name = call.device(rank).id().text();
  if (!ends_within(stream, timeout_s_)) {
    throw RunError(fmt::format("{}: the GPU has not ended its work before a collective in {} s", name, timeout_s_));
  }
  check(query(stream), "cudaStreamQuery", name);
}

threads::HostOperands StagedOperands::load(const threads::CollectiveCall& call, const std::vector<int>& here) {
  const CollectiveSpec& spec = call.spec();
  const auto ranks = static_cast<std::size_t>(call.ranks());
  threads::HostOperands operands{
      .inputs = std::vector<std::byte*>(ranks), .outputs = std::vector<std::byte*>(ranks), .held = {}};
  for (const int rank : here) {
    const auto at = static_cast<std::size_t>(rank);
    if (has_output(spec, rank)) operands.outputs[at] = take(operands, call.output(rank).size_bytes());
    if (!has_input(spec, rank)) continue;
    const std::size_t bytes = call.input(rank).size_bytes();
    operands.inputs[at] = take(operands, bytes);
    copy(call, rank, operands.inputs[at], call.input(rank).data(), bytes);
  }
  for (const int rank : here) wait_for(call, rank);
  return operands;
}

void StagedOperands::store(const threads::CollectiveCall& call, const threads::HostOperands& operands) {
  const auto each = [&](auto&& visit) {
    for (int rank = 0; rank < call.ranks(); ++rank) {
      std::byte* const output = operands.outputs[static_cast<std::size_t>(rank)];
      if (output != nullptr) visit(rank, output);
    }
  };
  each([&](int rank, const std::byte* output) {
    copy(call, rank, call.output(rank).data(), output, call.output(rank).size_bytes());
  });
  each([&](int rank, const std::byte* /*output*/) { wait_for(call, rank); });
}

}  // namespace tandem::cuda
