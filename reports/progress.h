// A line on stderr that shows the progress of a long run. On a terminal it is rewritten in place, at most ten times a
// second; elsewhere a plain line is printed every ten seconds. Runs shorter than two seconds print nothing.
//
// Threads: all functions may be called from any thread.
#pragma once

#include <functional>
#include <mutex>
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

  // Shows "digits: 12 of 100, 6 s, about 44 s left". A total of 0 is unknown and left out, with what is left.
  void update(std::string_view what, int done, int total);
  // From now on tick() shows "digits: begins, 3 s" until the first update().
  void begin(std::string_view what);
  // Shows the last line again with the time of now, for work that takes long from one update to the next.
  void tick();
  // Removes the line from a terminal, so that what follows starts on a clean one.
  void finish();

 private:
  void show(double now_s);

  ProgressOptions options_;
  std::mutex mutex_;
  std::string what_;
  int done_ = 0, total_ = 0;
  bool has_begun_ = false;  // an update has come
  double updated_s_ = 0;    // when
  double started_s_ = 0;
  double began_s_ = 0;  // what is done since the last begin(), or since there was less to do
  double last_s_ = 0;   // when a line was shown
  bool shown_ = false;  // a line is on the terminal
};

}  // namespace tandem
