#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace tandem {
namespace {

std::atomic<bool> requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void request(int signal) {
  requested = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void handle_interrupts() {
  std::signal(SIGINT, request);
}

void handle_terminations() {
  std::signal(SIGTERM, request);
}

bool interrupt_requested() {
  return requested;
}

void check_for_interrupt() {
  if (requested) throw Interrupted();
}

}  // namespace tandem
