// What signals do: Ctrl-C, SIGTERM and SIGHUP end the program with kInterrupted (docs/exit-codes.md). Usually the first
// one does so immediately, which loses nothing, since files are written as a whole. During work that has something to
// show or to end first (OrderlyEnd), the first one asks it to stop at its next step, and a second one ends the program
// immediately. The ranks of a job end at the first one, because the engine that has joined them looks at the signal
// itself (interrupt_job).
#pragma once

#include <exception>

namespace tandem {

// Thrown by check_for_interrupt, through the run.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Installs the handlers, and holds the signals back, for the initializers of libraries: a thread that one of these
// begins never gets them, so that they reach the thread that computes. handle_signals() lets them through.
void handle_signals_later();

// Installs the handlers; a second call changes nothing. A signal that is ignored stays so, as SIGHUP is under nohup,
// and SIGINT in the background of a script. A signal that the program was started with blocked is let through, which
// may have come meanwhile. A pipe or a limit of file sizes that ends the standard output or a file becomes an error of
// the write, instead of the program's end.
void handle_signals();

// Opens those of the three standard streams that the program was started without, so that no file takes their place.
// Writing to them fails.
void open_standard_streams();

// While one exists, the first signal asks the work to stop.
//
// Threads: any; the signal may arrive on any.
class OrderlyEnd {
 public:
  OrderlyEnd();
  ~OrderlyEnd();
  OrderlyEnd(const OrderlyEnd&) = delete;
  OrderlyEnd& operator=(const OrderlyEnd&) = delete;
};

bool interrupt_requested();
void check_for_interrupt();  // throws Interrupted, except in a job

}  // namespace tandem
