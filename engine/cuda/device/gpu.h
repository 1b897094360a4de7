// A physical GPU, shared by the logical devices on it: its memory, its events and its handles.
//
// Threads: any.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cuda/device/gpu_clock.h"
#include "engine/cuda/device/gpu_events.h"
#include "engine/cuda/device/gpu_handles.h"
#include "engine/cuda/device/launch_graphs.h"
#include "engine/threads/block_pool.h"

namespace tandem::cuda {

// Restores the calling thread's current GPU at its end, whatever has changed it.
class KeepGpu {
 public:
  KeepGpu();
  ~KeepGpu();
  KeepGpu(const KeepGpu&) = delete;
  KeepGpu& operator=(const KeepGpu&) = delete;

 private:
  int former_ = 0;
};

// Makes a GPU the calling thread's current one, and restores the former one at its end.
class UseGpu {
 public:
  explicit UseGpu(int gpu);
  UseGpu(const UseGpu&) = delete;
  UseGpu& operator=(const UseGpu&) = delete;

 private:
  const KeepGpu former_;
};

// Copies between memory of GPUs or of the host, on a stream of a GPU. `to_gpu` and `from_gpu` are kHostPlace for the
// host.
void copy_memory(void* to, int to_gpu, const void* from, int from_gpu, std::size_t bytes, cudaStream_t stream,
                 std::string_view who);

// Keeps memory of a GPU for work under way. Any thread may call it.
class GpuUser {
 public:
  virtual ~GpuUser() = default;
  virtual std::size_t settle() = 0;  // gives back the memory of finished work; returns how much work or memory is left
};

class Gpu {
 public:
  // Throws RunError when the GPU cannot be used. `watchdog_s` bounds the time of an allocation.
  Gpu(int ordinal, double watchdog_s, std::shared_ptr<Hangs> hangs);
  ~Gpu() { handles_.give_back(clock_stream_, StreamUse::computation); }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int ordinal() const { return ordinal_; }
  const std::string& text() const { return text_; }  // "GPU 0"
  const std::shared_ptr<threads::BlockPool>& memory() const { return memory_; }
  EventPool& events() const { return *events_; }
  GpuHandles& handles() { return handles_; }
  GpuClock& clock() { return clock_; }
  GraphCounts& graph_counts() { return graph_counts_; }  // of all runs
  void add_user(GpuUser& user);
  void remove_user(GpuUser& user);
  // Takes a block. Where there is no room, waits for the GPU's users as long as any of them makes progress; returns
  // null if that does not help.
  void* take_when_settled(std::size_t bytes);
  // Nobody waits any longer for a GPU that hangs, and what its work may use is kept until the process ends.
  bool hangs() const { return hangs_->is_hanging(ordinal_); }
  void note_hang() { hangs_->note(ordinal_); }

 private:
  std::size_t settle_users();

  const int ordinal_;
  const std::string text_;
  const std::shared_ptr<Hangs> hangs_;
  GpuHandles handles_;
  const std::shared_ptr<threads::BlockPool> memory_;
  const std::shared_ptr<EventPool> events_;
  const cudaStream_t clock_stream_;
  GpuClock clock_;
  GraphCounts graph_counts_;
  std::mutex users_mutex_;  // guards users_
  std::vector<GpuUser*> users_;
};

// Makes a pool of host memory that GPUs copy from and to at full speed.
std::shared_ptr<threads::BlockPool> make_pinned_memory(std::shared_ptr<const Hangs> hangs);

}  // namespace tandem::cuda
