#include "scenarios/sweep/process_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr int kTick_ms = 200;
constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP};

bool read_all(int descriptor, void* to, std::size_t size) {
  auto* bytes = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t count = ::read(descriptor, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool write_all(int descriptor, const void* from, std::size_t size) {
  const auto* bytes = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t count = write(descriptor, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

std::string ending_of(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("its process was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("its process ended with exit code {}", WEXITSTATUS(status));
}

// A pipe whose other end is gone is an error to handle here, not the end of the program.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~WithoutPipeSignal() { sigaction(SIGPIPE, &before_, nullptr); }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  struct sigaction before_ {};
};

// Holds back the signals that end the program. A child that is forked meanwhile must say what they do there, and then
// let them through.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : kEndingSignals) sigaddset(&ending, signal);
    sigprocmask(SIG_BLOCK, &ending, &before_);
  }
  ~SignalsHeldBack() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

// A process, and the two pipes to it. A job is its number; a result its size and its bytes.
class ProcessPool::Child {
 public:
  Child(pid_t process, int to, int from) : process_(process), to_(to), from_(from) {}
  ~Child() {
    close(to_);
    close(from_);
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int from() const { return from_; }
  int job() const { return job_; }  // -1: none
  // If the process is gone, the other pipe shows it.
  void begin(int job) {
    job_ = job;
    write_all(to_, &job, sizeof job);
  }
  bool finish(std::string& result) {
    std::uint32_t size = 0;
    if (!read_all(from_, &size, sizeof size)) return false;
    result.resize(size);
    if (!read_all(from_, result.data(), size)) return false;
    job_ = -1;
    return true;
  }
  // Waits for the end of a process that has closed its pipe.
  std::string ending() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return ending_of(status);
  }
  // Closes, in a child, the parent's ends of other children's pipes.
  void forget() const {
    close(to_);
    close(from_);
  }

 private:
  pid_t process_;
  int to_, from_;
  int job_ = -1;
};

namespace {

// Runs a child until there are no more jobs, or the parent is gone. The signals of a terminal and of `timeout` reach
// the child as well, but the parent decides. What kills the parent kills the child in the middle of its job, because it
// has the parent's open files, and thereby their locks.
[[noreturn]] void work(pid_t parent, int jobs, int results, const ProcessPool::Job& job) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it was killed before
  for (int number = 0; read_all(jobs, &number, sizeof number);) {
    const std::string result = job(number);
    const auto size = static_cast<std::uint32_t>(result.size());
    if (!write_all(results, &size, sizeof size) || !write_all(results, result.data(), size)) break;
  }
  _exit(0);
}

}  // namespace

ProcessPool::ProcessPool(int processes, Job job) : job_(std::move(job)) {
  while (static_cast<int>(children_.size()) < processes && add_child()) {
  }
  if (children_.empty()) throw RunError(fmt::format("no process could be started: {}", std::strerror(errno)));
}

ProcessPool::~ProcessPool() = default;

bool ProcessPool::add_child() {
  std::array<int, 2> jobs{}, results{};
  if (pipe(jobs.data()) != 0) return false;
  if (pipe(results.data()) != 0) {
    for (const int end : jobs) close(end);
    return false;
  }
  std::fflush(nullptr);
  const pid_t parent = getpid();
  pid_t process = 0;
  {
    const SignalsHeldBack held_back;
    process = fork();
    if (process == 0) {
      for (const int signal : kEndingSignals) ::signal(signal, SIG_IGN);
      ::signal(SIGPIPE, SIG_IGN);
    }
  }
  if (process == 0) {
    for (const auto& other : children_) other->forget();
    close(jobs[1]);
    close(results[0]);
    work(parent, jobs[0], results[1], job_);
  }
  close(jobs[0]);
  close(results[1]);
  if (process < 0) {
    close(jobs[1]);
    close(results[0]);
    return false;
  }
  children_.push_back(std::make_unique<Child>(process, jobs[1], results[0]));
  return true;
}

bool ProcessPool::give(Child& child, const Events& events) {
  while (events.is_wanted && !waiting_.empty() && !events.is_wanted(waiting_.front())) waiting_ = waiting_.subspan(1);
  if (waiting_.empty()) return false;
  if (events.begun) events.begun(waiting_.front());
  child.begin(waiting_.front());
  waiting_ = waiting_.subspan(1);
  return true;
}

void ProcessPool::read_from(std::size_t index, const Events& events) {
  Child& child = *children_[index];
  const int job = child.job();
  std::string result;
  if (!child.finish(result)) return lose(index, events);
  if (events.is_wanted) {  // what this job gave decides whether the next one is
    events.done(job, result);
    give(child, events);
    return;
  }
  give(child, events);
  events.done(job, result);
}

// Another process takes its place.
void ProcessPool::lose(std::size_t index, const Events& events) {
  const std::unique_ptr<Child> child = std::move(children_[index]);
  children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(index));
  const std::string ending = child->ending();
  if (!waiting_.empty() && add_child()) give(*children_.back(), events);
  if (child->job() >= 0) events.lost(child->job(), ending);
  if (children_.empty() && !waiting_.empty()) throw RunError("no process is left, and none could be started");
}

void ProcessPool::run(std::span<const int> jobs, const Events& events) {
  const WithoutPipeSignal without_signal;
  waiting_ = jobs;
  for (const auto& child : children_) give(*child, events);
  const auto is_busy = [](const auto& child) { return child->job() >= 0; };
  while (std::any_of(children_.begin(), children_.end(), is_busy)) {
    std::vector<pollfd> polled;
    for (const auto& child : children_) polled.push_back({.fd = child->from(), .events = POLLIN, .revents = 0});
    poll(polled.data(), polled.size(), kTick_ms);
    events.tick();
    // Goes backwards, because a lost child is removed.
    for (std::size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents != 0) read_from(i, events);
    }
  }
}

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace tandem
