#include "cli/base/interrupt.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is POSIX
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "cli/base/exit_codes.h"
#include "engine/launched_job.h"

namespace tandem {
namespace {

std::atomic<bool> requested = false;
std::atomic<int> orderly_ends = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler uses them");

[[noreturn]] void end_now() {
  constexpr std::string_view kMessage = "tandem: interrupted\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kInterrupted);
}

void request(int signal) {
  interrupt_job(signal);
  if (requested.exchange(true)) _exit(kInterrupted);  // what the first one said is enough
  if (orderly_ends == 0) end_now();
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Returns those that end the program.
sigset_t install_handlers() {
  for (const int signal : {SIGPIPE, SIGXFSZ}) handle(signal, SIG_IGN);
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (is_ignored(signal)) continue;
    handle(signal, request);
    sigaddset(&ending, signal);
  }
  return ending;
}

}  // namespace

void handle_signals_later() {
  const sigset_t ending = install_handlers();
  sigprocmask(SIG_BLOCK, &ending, nullptr);
}

void handle_signals() {
  const sigset_t ending = install_handlers();
  sigprocmask(SIG_UNBLOCK, &ending, nullptr);
}

// The wrong direction lets each use of the stream fail.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

OrderlyEnd::OrderlyEnd() {
  ++orderly_ends;
}

OrderlyEnd::~OrderlyEnd() {
  --orderly_ends;
}

bool interrupt_requested() {
  return requested;
}

void check_for_interrupt() {
  if (requested && joined_job() == nullptr) throw Interrupted();
}

}  // namespace tandem
