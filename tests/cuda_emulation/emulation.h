// GPUs that this process only pretends to have: CUDA's runtime, cuBLAS and NCCL as far as engine/cuda calls them, done
// on the host. Linked before the libraries themselves, so that a test runs the engine's own code without a GPU.
//
// What is emulated is order, ownership and arithmetic; times mean nothing. Threads: any, except start().
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem::emulation {

struct Machine {
  int gpus = 1;                         // at most 16
  bool peers_reach = true;              // may GPUs be given access to each other's memory?
  std::size_t memory_bytes = 1U << 30;  // of each GPU
  std::uint64_t delay_seed = 0;         // not 0: some pieces of work are late by some hundred microseconds
  int connect_ms = 0;                   // what connecting takes: the first collective and messages of a communicator
  double clock_drift = 0;               // by how much the GPUs' clock gains, as a share of the time
};

// From the environment: TANDEM_EMULATED_GPUS, _PEERS (0 or 1), _MEMORY_BYTES, _DELAY_SEED. What a process starts with.
Machine machine_of_environment();

// Makes it this machine, with all of its memory, and forgets all failures. No work may be under way.
void start(const Machine& machine);

// The call of that name returns `error` once, after as many more calls that go well.
void fail_call(const std::string& call, int error, int after = 0);
// As when a kernel of that GPU has done what it must not: all its work from now on fails.
void break_gpu(int gpu, cudaError_t error);
// Work that has not begun does not begin before release_gpus().
void hang_gpu(int gpu);
void release_gpus();
// NCCL launches the first part of a group, and no other before the launches are let go or aborted.
void hold_launches(bool hold);
// What NCCL finds out by itself, on every communicator.
void fail_communicators(ncclResult_t error);

// How many events have been recorded since start(): with a time, and without.
struct EventCounts {
  int timed = 0, plain = 0;
};
EventCounts recorded_events();

// What has been allocated on a GPU since start() and not freed.
std::size_t bytes_in_use(int gpu);

}  // namespace tandem::emulation
