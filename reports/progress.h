// A line on stderr that shows the progress of a long run. On a terminal it is rewritten in place, at most ten times a
// second; elsewhere a plain line is printed every ten seconds. Runs shorter than two seconds print nothing.
//
// Threads: update() may be called from any one thread at a time.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace tandem {

struct ProgressOptions {
  std::ostream* stream = nullptr;  // null: prints nothing
  bool terminal = false;           // whether the stream is a terminal
  std::function<double()> now_s;   // a steady clock; empty: the system's
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // finishes
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows "digits: 12 of 100". A total of 0 is unknown and left out.
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
