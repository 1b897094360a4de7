#include "engine/base/run_phase.h"

#include <utility>

namespace tandem {
namespace {

std::function<void(const RunPhase&)>& listener_of_process() {
  static std::function<void(const RunPhase&)> listener;
  return listener;
}

}  // namespace

void set_phase_listener(std::function<void(const RunPhase&)> listener) {
  listener_of_process() = std::move(listener);
}

void tell_phase(const RunPhase& phase) {
  if (const auto& listener = listener_of_process()) listener(phase);
}

}  // namespace tandem
