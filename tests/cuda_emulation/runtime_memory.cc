// The runtime's calls about memory.
#include <array>
#include <cstring>
#include <vector>

#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/streams.h"

using namespace tandem::emulation;

struct CUmemPoolHandle_st {
  int gpu = 0;
};

namespace {

CUmemPoolHandle_st& pool_of(int ordinal) {
  static std::array<CUmemPoolHandle_st, kMostGpus> pools;
  CUmemPoolHandle_st& pool = pools.at(static_cast<std::size_t>(ordinal));
  pool.gpu = ordinal;
  return pool;
}

bool is_on_gpu(const void* at) {
  return place_of(at) >= 0;
}

bool agrees(cudaMemcpyKind kind, const void* to, const void* from) {
  switch (kind) {
    case cudaMemcpyDefault:
      return true;
    case cudaMemcpyDeviceToDevice:
      return is_on_gpu(to) && is_on_gpu(from);
    case cudaMemcpyHostToDevice:
      return is_on_gpu(to) && !is_on_gpu(from);
    case cudaMemcpyDeviceToHost:
      return !is_on_gpu(to) && is_on_gpu(from);
    default:
      return !is_on_gpu(to) && !is_on_gpu(from);
  }
}

Work copying(void* to, const void* from, std::size_t bytes) {
  return {[=] {
    if (const cudaError_t error = check_copy(to, bytes)) return error;
    if (const cudaError_t error = check_copy(from, bytes)) return error;
    std::memmove(to, from, bytes);
    return cudaSuccess;
  }};
}

// Pageable memory is read before the call returns.
Work copying_staged(void* to, const void* from, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  return {[to, bytes, staged = std::vector<std::byte>(begin, begin + bytes)] {
    if (const cudaError_t error = check_copy(to, bytes)) return error;
    std::memcpy(to, staged.data(), bytes);
    return cudaSuccess;
  }};
}

}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  if (!agrees(kind, to, from)) return noted(cudaErrorInvalidValue);
  const bool from_pageable = place_of(from) == kNowhere, to_pageable = place_of(to) == kNowhere;
  if (from_pageable || to_pageable) {
    if (const cudaError_t error = is_captured(stream) ? may_disturb(stream) : cudaSuccess) return noted(error);
  }
  const cudaError_t error = issue(stream, from_pageable ? copying_staged(to, from, bytes) : copying(to, from, bytes));
  if (error != cudaSuccess || !to_pageable) return noted(error);
  stream->queue->wait();
  return noted(gpu(stream->gpu).failure);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_gpu, const void* from, int from_gpu, std::size_t bytes,
                                cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  if (!is_gpu(to_gpu) || !is_gpu(from_gpu)) return noted(cudaErrorInvalidDevice);
  if (place_of(to) != to_gpu || place_of(from) != from_gpu) return noted(cudaErrorInvalidValue);
  return noted(issue(stream, copying(to, from, bytes)));
}

// The address is known at once; the memory is the stream's own when it has come so far.
cudaError_t cudaMallocAsync(void** block, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  *block = allocate(stream->gpu, bytes);
  if (*block == nullptr && !is_captured(stream)) {
    stream->queue->wait();  // what this stream frees may be taken again
    *block = allocate(stream->gpu, bytes);
  }
  if (*block == nullptr) return noted(cudaErrorMemoryAllocation);
  return noted(issue(stream, {[] { return cudaSuccess; }}));
}

// A graph keeps its blocks: freed in it means only that their contents are gone.
cudaError_t cudaFreeAsync(void* block, cudaStream_t stream) {
  if (const cudaError_t error = entered(__func__, stream->gpu)) return error;
  if (!is_on_gpu(block)) return noted(cudaErrorInvalidValue);
  if (is_captured(stream)) return cudaSuccess;
  return noted(issue(stream, {[block] { return release(block) ? cudaSuccess : cudaErrorInvalidValue; }, true}));
}

cudaError_t cudaHostAlloc(void** block, std::size_t bytes, unsigned) {
  if (const cudaError_t error = entered(__func__)) return error;
  if (const cudaError_t error = may_disturb()) return noted(error);
  const Synchronising synchronising(__func__);
  *block = allocate(kHost, bytes);
  return *block == nullptr ? noted(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFreeHost(void* block) {
  const Synchronising synchronising(__func__);
  wait_for_gpus();
  if (const cudaError_t error = may_disturb()) return noted(error);
  if (block != nullptr && (place_of(block) != kHost || !release(block))) return noted(cudaErrorInvalidValue);
  return entered(__func__);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int ordinal) {
  if (const cudaError_t error = entered(__func__)) return error;
  if (!is_gpu(ordinal)) return noted(cudaErrorInvalidDevice);
  *pool = &pool_of(ordinal);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return entered(__func__);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses, std::size_t count) {
  if (const cudaError_t error = entered(__func__)) return error;
  for (std::size_t i = 0; i < count; ++i) {
    const cudaMemAccessDesc& access = accesses[i];
    if (access.location.type != cudaMemLocationTypeDevice) return noted(cudaErrorInvalidValue);
    if (!is_gpu(access.location.id) || !machine().peers_reach) return noted(cudaErrorInvalidDevice);
    let_in(pool->gpu, access.location.id, access.flags == cudaMemAccessFlagsProtReadWrite);
  }
  return cudaSuccess;
}
