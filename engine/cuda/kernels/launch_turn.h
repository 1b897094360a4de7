// The turn to launch what several GPUs must get together, or to call what may wait for a GPU.
//
// One thread launches the parts of an NCCL group one after the other, and each part waits on its GPU for the others. If
// another thread's call waits for such a GPU in between, and holds a lock of the driver meanwhile, neither ever ends.
// Calls of this kind are allocating and freeing, making handles and streams, and loading a kernel; all of them take the
// turn.
//
// Threads: any. A thread that has the turn may take it again.
#pragma once

#include <cstddef>

namespace tandem::cuda {

class LaunchTurn {
 public:
  // Waits for the turn. Throws RunError when it does not come within the timeout, because a GPU hangs.
  LaunchTurn();
  ~LaunchTurn();
  LaunchTurn(const LaunchTurn&) = delete;
  LaunchTurn& operator=(const LaunchTurn&) = delete;

  static void set_timeout_s(double timeout_s);  // of this process; 300 s before the first call
};

// Takes the turn if this thread launches a kernel for the first time on its current GPU, because CUDA then loads it.
class FirstLaunch {
 public:
  // `kernel` is the address of a kernel, or a number for those that a library chooses.
  explicit FirstLaunch(std::size_t kernel);
  ~FirstLaunch();
  FirstLaunch(const FirstLaunch&) = delete;
  FirstLaunch& operator=(const FirstLaunch&) = delete;

 private:
  bool has_turn_ = false;
};

}  // namespace tandem::cuda
