#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

#include "engine/launched_job.h"

namespace tandem {
namespace {

std::atomic<bool> requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void request(int signal) {
  requested = true;
  interrupt_job(signal);
  std::signal(signal, SIG_DFL);
}

}  // namespace

void handle_interrupts() {
  std::signal(SIGINT, request);
}

void handle_terminations() {
  std::signal(SIGTERM, request);
}

void handle_hangups() {
  if (std::signal(SIGHUP, request) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

bool interrupt_requested() {
  return requested;
}

void check_for_interrupt() {
  if (requested && joined_job() == nullptr) throw Interrupted();
}

}  // namespace tandem
