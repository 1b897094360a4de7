#include "engine/cuda/kernels/launch_turn.h"

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <utility>

#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

// Never destroyed: a thread that a hanging GPU keeps may outlive main().
std::timed_mutex& turn() {
  static std::timed_mutex& turn = *new std::timed_mutex;
  return turn;
}

std::atomic<double> turn_timeout_s{300};
thread_local int turns_of_thread = 0;

void take_turn() {
  if (turns_of_thread == 0 && !turn().try_lock_for(std::chrono::duration<double>(turn_timeout_s.load()))) {
    throw RunError("no turn to call CUDA or NCCL: another thread's call does not return, because a GPU hangs");
  }
  ++turns_of_thread;
}

void give_turn_back() {
  if (--turns_of_thread == 0) turn().unlock();
}

}  // namespace

LaunchTurn::LaunchTurn() {
  take_turn();
}

LaunchTurn::~LaunchTurn() {
  give_turn_back();
}

void LaunchTurn::set_timeout_s(double timeout_s) {
  turn_timeout_s = timeout_s;
}

FirstLaunch::FirstLaunch(std::size_t kernel) {
  thread_local std::set<std::pair<int, std::size_t>> launched;
  int gpu = 0;
  cudaGetDevice(&gpu);
  if (!launched.emplace(gpu, kernel).second) return;
  take_turn();
  has_turn_ = true;
}

FirstLaunch::~FirstLaunch() {
  if (has_turn_) give_turn_back();
}

}  // namespace tandem::cuda
