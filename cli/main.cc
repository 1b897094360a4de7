#include "cli/base/interrupt.h"
#include "cli/command_line.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

// Runs before the initializers of the libraries, which take a tenth of a second and begin threads.
[[gnu::section(".preinit_array"), gnu::used]] void (*const hold_signals_first)() = tandem::handle_signals_later;

}  // namespace
#endif

int main(int argc, char** argv) {
  return tandem::run_command_line(argc, argv);
}
