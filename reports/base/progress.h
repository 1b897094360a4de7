// A line on stderr that shows the progress of a long run. On a terminal it is rewritten in place, at most ten times a
// second; elsewhere a plain line is printed every ten seconds. Runs shorter than two seconds print nothing.
//
// Threads: all functions may be called from any thread.
#pragma once

#include <cstdint>
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
  ~Progress();  // calls finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows "digits: 12 of 100, 6 s, about 44 s left". A total of 0 is unknown; it and the time left are then not shown.
  // The parts of the work are taken to be equal; whoever knows better says how much time is left, or kUnknown.
  void update(std::string_view what, std::int64_t done, std::int64_t total, double left_s = kEqualParts);
  static constexpr double kEqualParts = -1, kUnknown = -2;
  double now_s() const { return options_.now_s(); }
  // Makes tick() show "digits: begins, 3 s" until the first update().
  void begin(std::string_view what);
  // Makes it show another phase there, "digits: finds routes, 3 s". `starts_again`: what was shown is done once more.
  void phase(std::string_view phase, bool starts_again);
  // Shows the last line again with the current time, for work that takes long from one update to the next.
  void tick();
  // Removes the line from a terminal, so that further output starts on a clean line.
  void finish();

 private:
  void show(double now_s);
  double left_s(double now_s) const;  // negative: not known

  ProgressOptions options_;
  std::mutex mutex_;   // guards the rest
  std::string title_;  // of begin()
  std::string phase_;
  std::string what_;
  std::int64_t done_ = 0, total_ = 0;
  double told_left_s_ = kEqualParts;  // at the last update()
  bool has_begun_ = false;            // update() was called since begin()
  double updated_s_ = 0;              // time of the last update() that counted more
  double started_s_ = 0;
  double began_s_ = 0;           // when the work that `done_` counts began
  std::int64_t first_done_ = 0;  // of its first update(), which may include preparations, and its time
  double first_s_ = 0;
  double last_s_ = 0;   // when the last line was shown
  bool shown_ = false;  // a line is on the terminal
};

}  // namespace tandem
