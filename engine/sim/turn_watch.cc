#include "engine/sim/turn_watch.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>

#include "topologies/base/error.h"
#include "topologies/base/shown.h"

namespace tandem::sim {
namespace {

constexpr int kLooks = 8;            // in the timeout
constexpr double kIdleShare = 0.01;  // of a processor; the watch itself and a line of progress take less
constexpr int kRunFailed = 5;        // docs/exit-codes.md

int this_thread() {
  return static_cast<int>(syscall(SYS_gettid));
}

double process_cpu_s() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Whether a thread of this process waits for something that may never come. A paused terminal lets it wait in a write,
// for as long as a person likes. The state follows the name, which is in parentheses and may have some itself.
bool is_asleep(int thread) {
  std::ifstream in(fmt::format("/proc/self/task/{}/stat", thread));
  std::string line;
  std::getline(in, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || !line.substr(name_end + 1).starts_with(" S")) return false;
  long call = -1;  // stays so where the system does not tell
  std::ifstream(fmt::format("/proc/self/task/{}/syscall", thread)) >> call;
  return call != SYS_write && call != SYS_writev;
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

TurnWatch::TurnWatch(double timeout_s, Text where)
    : timeout_s_(timeout_s), where_(std::move(where)), thread_(this_thread()) {
  if (timeout_s_ <= 0) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  thread_of_watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TurnWatch::~TurnWatch() = default;

void TurnWatch::note_thread() {
  thread_.store(this_thread(), std::memory_order_relaxed);
}

void TurnWatch::watch(const std::stop_token& stop) {
  const std::chrono::duration<double> interval(timeout_s_ / kLooks);
  std::uint64_t seen = turns_.load(std::memory_order_acquire);
  double cpu_s = process_cpu_s();
  int still = 0;  // looks in a row that found everything as it was
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, stop, interval, [&stop] { return stop.stop_requested(); })) {
    const std::uint64_t turns = turns_.load(std::memory_order_acquire);
    const double now_cpu_s = process_cpu_s();
    const bool is_idle = now_cpu_s - cpu_s < kIdleShare * interval.count() + 1e-3;
    still = turns == seen && is_idle && is_asleep(thread_.load(std::memory_order_relaxed)) ? still + 1 : 0;
    seen = turns;
    cpu_s = now_cpu_s;
    if (still == kLooks) end_process(turns);
  }
}

void TurnWatch::end_process(std::uint64_t turns) const {
  const std::string text = fmt::format(
      "tandem: the simulation is blocked: nothing has happened in it for {} s, and its thread waits outside the "
      "engine\n{}\n"
      "The tasks of a simulation take turns on one thread. A mutex of the operating system that is held while its task "
      "waits, or any other wait that another task should end, stops all of them; use Tasks::make_monitor() "
      "(docs/writing-a-strategy.md). TANDEM_SIM_WATCHDOG_S sets another limit, 0 none.",
      timeout_s_, where_());
  if (turns_.load(std::memory_order_acquire) != turns) return;  // it went on while the text was made
  print(shown_output(text) + "\n");
  _exit(kRunFailed);
}

double sim_watchdog_s() {
  constexpr double kUsual = 60;
  const char* text = std::getenv("TANDEM_SIM_WATCHDOG_S");
  if (text == nullptr) return kUsual;
  char* end = nullptr;
  const double timeout_s = std::strtod(text, &end);
  if (end != text && *end == '\0' && timeout_s >= 0 && std::isfinite(timeout_s)) return timeout_s;
  throw Error(fmt::format("TANDEM_SIM_WATCHDOG_S is '{}', must be a number of seconds, or 0 for no limit", text));
}

}  // namespace tandem::sim
