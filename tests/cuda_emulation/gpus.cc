#include "tests/cuda_emulation/gpus.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/cuda_emulation/memory.h"

namespace tandem::emulation {
namespace {

struct InjectedError {
  int error = 0;
  int after = 0;
};

// Never destroyed: streams of a hanging GPU outlive main().
struct State {
  Machine machine = machine_of_environment();
  std::array<Gpu, kMostGpus> gpus;
  std::mutex mutex;  // of the injected
  std::map<std::string, InjectedError> injected;
  std::atomic<bool> has_injected{false};
  std::atomic<ncclResult_t> communicators_failure{ncclSuccess};
  std::atomic<std::uint64_t> threads{0};
  std::atomic<bool> holds_launches{false};
  std::atomic<int> timed_events{0}, plain_events{0};
  std::mutex calls_mutex;  // of the next three
  int launching = 0;
  std::multiset<std::string> synchronising;
  std::set<std::pair<int, std::size_t>> loaded;  // kernels, by GPU

  State() {
    for (int i = 0; i < kMostGpus; ++i) gpus[static_cast<std::size_t>(i)].ordinal = i;
  }
};

State& state() {
  static State& state = *new State;
  return state;
}

thread_local int current = 0;
thread_local cudaError_t last = cudaSuccess;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

[[noreturn]] void fail_between_launches(const std::string& call) {
  std::fprintf(stderr, "emulated GPU: %s may wait for a GPU between two launches of an NCCL group\n", call.c_str());
  std::abort();
}

}  // namespace

// One piece in eight, by up to 300 us.
void be_late() {
  const std::uint64_t seed = state().machine.delay_seed;
  if (seed == 0) return;
  thread_local std::mt19937_64 random(seed * 1000 + state().threads.fetch_add(1));
  if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
}

Machine machine_of_environment() {
  Machine machine;
  machine.gpus = static_cast<int>(number_of("TANDEM_EMULATED_GPUS", 1));
  machine.peers_reach = number_of("TANDEM_EMULATED_PEERS", 1) != 0;
  machine.memory_bytes = number_of("TANDEM_EMULATED_MEMORY_BYTES", machine.memory_bytes);
  machine.delay_seed = number_of("TANDEM_EMULATED_DELAY_SEED", 0);
  return machine;
}

void start(const Machine& machine) {
  release_gpus();
  count_memory_anew();
  state().machine = machine;
  for (Gpu& gpu : state().gpus) gpu.failure = cudaSuccess;
  state().communicators_failure = ncclSuccess;
  state().holds_launches = false;
  state().timed_events = state().plain_events = 0;
  {
    const std::lock_guard lock(state().calls_mutex);
    state().loaded.clear();
  }
  const std::lock_guard lock(state().mutex);
  state().injected.clear();
  state().has_injected = false;
}

void fail_call(const std::string& call, int error, int after) {
  const std::lock_guard lock(state().mutex);
  state().injected[call] = {error, after};
  state().has_injected = true;
}

void break_gpu(int ordinal, cudaError_t error) {
  gpu(ordinal).failure = error;
}

void hang_gpu(int ordinal) {
  gpu(ordinal).hangs = true;
}

void release_gpus() {
  for (Gpu& gpu : state().gpus) {
    gpu.hangs = false;
    gpu.hangs.notify_all();
  }
}

void fail_communicators(ncclResult_t error) {
  state().communicators_failure = error;
}

const Machine& machine() {
  return state().machine;
}

Gpu& gpu(int ordinal) {
  return state().gpus.at(static_cast<std::size_t>(ordinal));
}

bool is_gpu(int ordinal) {
  return ordinal >= 0 && ordinal < machine().gpus;
}

int current_gpu() {
  return current;
}

void use_gpu(int ordinal) {
  current = ordinal;
}

cudaError_t last_error() {
  return last;
}

// An error of the GPU itself stays.
cudaError_t take_last_error() {
  const cudaError_t error = last;
  last = gpu(current).failure;
  return error;
}

// That work is under way is noted, too, as the runtime does.
cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

int injected(const char* call) {
  if (!state().has_injected) return 0;
  const std::lock_guard lock(state().mutex);
  const auto found = state().injected.find(call);
  if (found == state().injected.end() || found->second.after-- > 0) return 0;
  const int error = found->second.error;
  state().injected.erase(found);
  return error;
}

cudaError_t entered(const char* call, int ordinal) {
  if (const int error = injected(call)) return noted(static_cast<cudaError_t>(error));
  return noted(gpu(ordinal).failure);
}

void execute(Gpu& gpu, const Work& work) {
  be_late();
  gpu.hangs.wait(true);
  if (gpu.failure != cudaSuccess && !work.always) return;
  cudaError_t none = cudaSuccess;
  if (const cudaError_t error = work.run(); error != cudaSuccess) gpu.failure.compare_exchange_strong(none, error);
}

ncclResult_t communicators_failure() {
  return state().communicators_failure;
}

void hold_launches(bool hold) {
  state().holds_launches = hold;
}

bool holds_launches() {
  return state().holds_launches;
}

void count_event(bool is_timed) {
  ++(is_timed ? state().timed_events : state().plain_events);
}

EventCounts recorded_events() {
  return {state().timed_events, state().plain_events};
}

Synchronising::Synchronising(const char* call) : call_(call) {
  {
    const std::lock_guard lock(state().calls_mutex);
    if (state().launching > 0) fail_between_launches(call);
    state().synchronising.insert(call);
  }
  be_late();
}

Synchronising::~Synchronising() {
  const std::lock_guard lock(state().calls_mutex);
  state().synchronising.erase(state().synchronising.find(call_));
}

Launching::Launching() {
  const std::lock_guard lock(state().calls_mutex);
  if (!state().synchronising.empty()) fail_between_launches(*state().synchronising.begin());
  ++state().launching;
}

Launching::~Launching() {
  const std::lock_guard lock(state().calls_mutex);
  --state().launching;
}

LoadingKernel::LoadingKernel(int gpu, std::size_t kernel) {
  {
    const std::lock_guard lock(state().calls_mutex);
    if (!state().loaded.emplace(gpu, kernel).second) return;
  }
  synchronising_.emplace("the first launch of a kernel");
}

void wait_for_gpu(int ordinal) {
  gpu(ordinal).hangs.wait(true);
}

void wait_for_gpus() {
  for (Gpu& each : state().gpus) each.hangs.wait(true);
}

}  // namespace tandem::emulation
