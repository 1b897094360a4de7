#include "engine/cuda/device/issue_order.h"

#include <algorithm>

namespace tandem::cuda {

void StreamClock::reach(StreamPoint point) {
  const auto stream = static_cast<std::size_t>(point.stream);
  if (positions_.size() <= stream) positions_.resize(stream + 1);
  positions_[stream] = std::max(positions_[stream], point.position);
}

void StreamClock::merge(const StreamClock& other) {
  if (positions_.size() < other.positions_.size()) positions_.resize(other.positions_.size());
  for (std::size_t stream = 0; stream < other.positions_.size(); ++stream) {
    positions_[stream] = std::max(positions_[stream], other.positions_[stream]);
  }
}

bool StreamClock::covers(StreamPoint point) const {
  const auto stream = static_cast<std::size_t>(point.stream);
  return stream < positions_.size() && point.position <= positions_[stream];
}

int IssueOrder::add_stream() {
  const std::lock_guard lock(mutex_);
  clocks_.emplace_back();
  streams_.push_back(nullptr);
  return static_cast<int>(clocks_.size()) - 1;
}

void IssueOrder::set_stream(int number, Stream& stream) {
  const std::lock_guard lock(mutex_);
  streams_[static_cast<std::size_t>(number)] = &stream;
}

Stream* IssueOrder::stream(int number) const {
  const std::lock_guard lock(mutex_);
  return streams_[static_cast<std::size_t>(number)];
}

StreamClock IssueOrder::at(StreamPoint now) const {
  const std::lock_guard lock(mutex_);
  StreamClock clock = clocks_[static_cast<std::size_t>(now.stream)];
  clock.reach(now);
  return clock;
}

void IssueOrder::wait(int stream, const StreamClock& clock) {
  const std::lock_guard lock(mutex_);
  clocks_[static_cast<std::size_t>(stream)].merge(clock);
}

void IssueOrder::note_done(const StreamClock& clock) {
  const std::lock_guard lock(mutex_);
  done_.merge(clock);
}

bool IssueOrder::is_before(StreamPoint point, int stream) const {
  return point.stream == stream || clocks_[static_cast<std::size_t>(stream)].covers(point) || done_.covers(point);
}

bool IssueOrder::are_before(std::span<const StreamPoint> points, int stream) const {
  const std::lock_guard lock(mutex_);
  return std::all_of(points.begin(), points.end(), [&](StreamPoint point) { return is_before(point, stream); });
}

std::vector<StreamPoint> IssueOrder::not_before(std::span<const StreamPoint> points, int stream) const {
  const std::lock_guard lock(mutex_);
  std::vector<StreamPoint> others;
  for (const StreamPoint point : points) {
    if (!is_before(point, stream)) others.push_back(point);
  }
  return others;
}

}  // namespace tandem::cuda
