// Ctrl-C, and SIGTERM and SIGHUP where a command asks for it: the first one asks the work to stop at its next step, a
// second one ends the program immediately. The ranks of a job end at the first one, because the engine that has joined
// them looks at the signal itself (interrupt_job).
#pragma once

#include <exception>

namespace tandem {

// Thrown by check_for_interrupt, through the run.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

void handle_interrupts();    // once, at the start
void handle_terminations();  // SIGTERM, too, from here on
void handle_hangups();       // SIGHUP, too, unless it is ignored, as under nohup
bool interrupt_requested();
void check_for_interrupt();  // throws Interrupted, except in a job

}  // namespace tandem
