#include "cli/base/crash_note.h"

#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is POSIX
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace tandem {
namespace {

// Formatted beforehand, since a signal handler must not format. There are two, so that one is always complete.
struct Note {
  std::array<char, 96> text;
  std::size_t size = 0;
};
std::array<Note, 2> crash_notes;
std::atomic<const Note*> current = nullptr;
static_assert(std::atomic<const Note*>::is_always_lock_free, "a signal handler reads it");

// Raises the signal again: SA_RESETHAND has restored the default action, which ends the program.
void write_note(int signal) {
  if (const Note* note = current.load()) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, note->text.data(), note->size);
  }
  raise(signal);
}

}  // namespace

void handle_crashes() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = write_note;
    action.sa_flags = SA_RESETHAND | SA_ONSTACK;  // a stack that overflows has no room for a handler
    sigaction(signal, &action, nullptr);
  }
}

void note_seed(std::uint64_t seed) {
  Note& note = current.load() == &crash_notes[0] ? crash_notes[1] : crash_notes[0];
  const auto end =
      fmt::format_to_n(note.text.data(), note.text.size(), "tandem: crashed under --schedule-seed {}\n", seed);
  note.size = std::min(end.size, note.text.size());
  current.store(&note);
}

}  // namespace tandem
