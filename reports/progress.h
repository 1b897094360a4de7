// One line on stderr that says how far a long run is: rewritten in place on a terminal, at most ten times a second; a
// plain line every ten seconds otherwise. Nothing for what takes less than two seconds.
//
// Threads: update() may be called from any one thread at a time.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace tandem {

struct ProgressOptions {
  std::ostream* stream = nullptr;  // none: silent
  bool terminal = false;           // of the stream
  std::function<double()> now_s;   // a steady clock; empty: the system's
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // "digits: 12 of 100". `total` 0: unknown.
  void update(std::string_view what, int done, int total);
  // Removes the line from a terminal, so that what follows starts on a clean one.
  void finish();

 private:
  ProgressOptions options_;
  double started_s_ = 0;
  double last_s_ = 0;
  bool shown_ = false;  // a line is on the terminal
};

}  // namespace tandem
