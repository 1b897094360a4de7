// The emulated GPUs, and what each call of the runtime begins and ends with.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "tests/cuda_emulation/emulation.h"

namespace tandem::emulation {

inline constexpr int kMostGpus = 16;

// Room for the kernel of one communicator at a time. A GPU may have room for more, but promises it to nobody.
struct CommunicationSlot {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_taken = false;
};

struct Gpu {
  int ordinal = 0;
  std::atomic<cudaError_t> failure{cudaSuccess};  // stays
  std::atomic<bool> hangs{false};
  CommunicationSlot slot;
};

const Machine& machine();
Gpu& gpu(int ordinal);  // lives as long as the process
bool is_gpu(int ordinal);

// Of the calling thread.
int current_gpu();
void use_gpu(int ordinal);
cudaError_t last_error();
cudaError_t take_last_error();

// For the end of a call: notes an error as the thread's last one, and returns it.
cudaError_t noted(cudaError_t error);
// For the beginning of a call: what a test wants it to fail with.
int injected(const char* call);
// The same, or how the GPU has failed. Noted.
cudaError_t entered(const char* call, int ordinal = current_gpu());

// A piece of a GPU's work, which returns how it has failed. It is left out on a GPU that has failed, unless `always`.
struct Work {
  std::function<cudaError_t()> run;
  bool always = false;
};
// On a thread of the emulation: late where the machine is to be, and not while the GPU hangs.
void execute(Gpu& gpu, const Work& work);

ncclResult_t communicators_failure();
bool holds_launches();
void count_event(bool is_timed);

// A call that may wait for GPUs. With a real one it deadlocks when some parts of an NCCL group are launched and others
// are not; here it ends the process.
class Synchronising {
 public:
  explicit Synchronising(const char* call);
  ~Synchronising();
  Synchronising(const Synchronising&) = delete;
  Synchronising& operator=(const Synchronising&) = delete;

 private:
  const char* const call_;
};
// The time from the first launch of an NCCL group to its last.
class Launching {
 public:
  Launching();
  ~Launching();
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;
};
// The first launch of a kernel on a GPU, which loads it.
class LoadingKernel {
 public:
  LoadingKernel(int gpu, std::size_t kernel);

 private:
  std::optional<Synchronising> synchronising_;
};
// As long as a GPU hangs, or any of them does.
void wait_for_gpu(int ordinal);
void wait_for_gpus();
void be_late();  // where the machine is to be

}  // namespace tandem::emulation
