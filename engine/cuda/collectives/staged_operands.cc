#include "engine/cuda/collectives/staged_operands.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <fmt/format.h>

#include <cstring>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/device/gpu_events.h"

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

// Copies between a rank's GPU and the host, on the rank's stream. One of the places is kHostPlace.
void copy(const threads::CollectiveCall& call, int rank, void* to, int to_place, const void* from, int from_place,
          std::size_t bytes) {
  const UseGpu use(gpu_of(call, rank).ordinal());
  copy_memory(to, to_place, from, from_place, bytes, gpu_stream_of(call, rank), call.device(rank).id().text());
}

DType staged_type(const CollectiveSpec& spec) {
  const bool is_half = spec.dtype == DType::f16 || spec.dtype == DType::bf16;
  return is_half && is_reducing(spec.kind) ? DType::f32 : spec.dtype;
}

// Turns `count` halves at the beginning of a block into f32, from the last to the first, because they overlap.
template <typename Half>
void widen(std::byte* block, std::size_t count) {
  for (std::size_t i = count; i-- > 0;) {
    Half half;
    std::memcpy(&half, block + i * sizeof(Half), sizeof(Half));
    const auto value = static_cast<float>(half);
    std::memcpy(block + i * sizeof(float), &value, sizeof(float));
  }
}
template <typename Half>
void narrow(std::byte* block, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, block + i * sizeof(float), sizeof(float));
    const Half half(value);
    std::memcpy(block + i * sizeof(Half), &half, sizeof(Half));
  }
}

// Keeps memory that a GPU may still use.
void abandon(const threads::HostOperands& operands) {
  static_cast<void>(new std::vector<std::shared_ptr<void>>(operands.held));
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
  const StopGrace::IsStopped is_stopped = [&call] { return call.is_run_stopped(); };
  StopGrace grace(is_stopped);
  const PollPause pause;
  while (query(stream) == cudaErrorNotReady) {
    if (grace.is_over()) throw RunError(name + ": a collective was given up, because the run has ended");
    if (pause.is_over(watch_.timeout_s())) {
      throw RunError(
          fmt::format("{}: the GPU has not ended its work for a collective in {} s", name, watch_.timeout_s()));
    }
    watch_.check_watched();
    pause();
  }
  check(query(stream), "cudaStreamQuery", name);
}

// Takes all memory before the first copy begins.
threads::HostOperands StagedOperands::load(const threads::CollectiveCall& call, const std::vector<int>& here) {
  const CollectiveSpec& spec = call.spec();
  const auto ranks = static_cast<std::size_t>(call.ranks());
  threads::HostOperands operands{.dtype = staged_type(spec),
                                 .inputs = std::vector<std::byte*>(ranks),
                                 .outputs = std::vector<std::byte*>(ranks),
                                 .held = {}};
  const std::size_t growth = size_of(operands.dtype) / size_of(spec.dtype);
  std::vector<int> givers;
  for (const int rank : here) {
    const auto at = static_cast<std::size_t>(rank);
    if (has_output(spec, rank)) operands.outputs[at] = take(operands, call.output(rank).size_bytes() * growth);
    if (!has_input(spec, rank)) continue;
    operands.inputs[at] = take(operands, call.input(rank).size_bytes() * growth);
    givers.push_back(rank);
  }
  try {
    for (const int rank : givers) {
      copy(call, rank, operands.inputs[static_cast<std::size_t>(rank)], kHostPlace, call.input(rank).data(),
           gpu_of(call, rank).ordinal(), call.input(rank).size_bytes());
    }
    for (const int rank : givers) wait_for(call, rank);
  } catch (...) {
    abandon(operands);
    throw;
  }
  if (growth == 1) return operands;
  for (const int rank : givers) {
    const auto count = static_cast<std::size_t>(call.input(rank).element_count());
    (spec.dtype == DType::f16 ? widen<__half> : widen<__nv_bfloat16>)(operands.inputs[static_cast<std::size_t>(rank)],
                                                                      count);
  }
  return operands;
}

void StagedOperands::store(const threads::CollectiveCall& call, const threads::HostOperands& operands) {
  const DType dtype = call.spec().dtype;
  const auto each = [&](auto&& visit) {
    for (int rank = 0; rank < call.ranks(); ++rank) {
      std::byte* const output = operands.outputs[static_cast<std::size_t>(rank)];
      if (output != nullptr) visit(rank, output);
    }
  };
  try {
    each([&](int rank, std::byte* output) {
      const Tensor& to = call.output(rank);
      if (operands.dtype != dtype) {
        (dtype == DType::f16 ? narrow<__half> : narrow<__nv_bfloat16>)(output,
                                                                       static_cast<std::size_t>(to.element_count()));
      }
      copy(call, rank, to.data(), gpu_of(call, rank).ordinal(), output, kHostPlace, to.size_bytes());
    });
    each([&](int rank, std::byte* /*output*/) { wait_for(call, rank); });
  } catch (...) {
    abandon(operands);
    throw;
  }
}

}  // namespace tandem::cuda
