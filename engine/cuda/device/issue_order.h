// Tracks which work a program orders before which, by streams, events and waits, whatever the times of the work.
//
// Memory that one piece of work has used may be reused by another that comes after it in this order.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/device.h"

namespace tandem::cuda {

// A place in the order of issue of one stream: after its first `position` pieces of work.
struct StreamPoint {
  int stream = 0;
  std::uint64_t position = 0;
};

// How far each stream has come, at least: a vector clock.
class StreamClock {
 public:
  void reach(StreamPoint point);
  void merge(const StreamClock& other);
  bool covers(StreamPoint point) const;

 private:
  std::vector<std::uint64_t> positions_;  // by stream; streams beyond the end have not begun
};

// The streams of one run.
class IssueOrder {
 public:
  int add_stream();  // returns its number
  void set_stream(int number, Stream& stream);
  Stream* stream(int number) const;  // null before set_stream()
  // Returns what is done once a stream has reached the point: all that it has issued or waited for.
  StreamClock at(StreamPoint now) const;
  void wait(int stream, const StreamClock& clock);  // the stream's later work comes after these points
  void note_done(const StreamClock& clock);         // a task has seen that all of it is done
  // Whether all points come before whatever the stream issues from now on.
  bool are_before(std::span<const StreamPoint> points, int stream) const;
  std::vector<StreamPoint> not_before(std::span<const StreamPoint> points, int stream) const;  // the points that do not

 private:
  bool is_before(StreamPoint point, int stream) const;

  mutable std::mutex mutex_;         // guards the rest
  std::vector<StreamClock> clocks_;  // by stream, like streams_
  std::vector<Stream*> streams_;
  StreamClock done_;
};

}  // namespace tandem::cuda
