#include "scenarios/calibration/cluster_program.h"

#include <fmt/format.h>

#include "scenarios/calibration/stages.h"

namespace tandem::calibration {
namespace {

constexpr std::size_t kMostPaths = 56;  // between eight workers
constexpr int kCopies = 45;             // of a traffic, at least, because their spread is wanted

std::vector<DeviceId> devices_of(Worker& worker, const GroupShape& shape) {
  std::vector<DeviceId> ids;
  for (int other = 0; other < shape.workers; ++other) {
    const WorkerSpec& spec = worker.cluster()[static_cast<std::size_t>(other)];
    for (int device = 0; device < shape.devices; ++device) {
      ids.push_back({spec.job, spec.task, spec.device_type, device});
    }
  }
  return ids;
}

Device& first_device(Worker& worker, int other) {
  const WorkerSpec& spec = worker.cluster()[static_cast<std::size_t>(other)];
  return worker.device({spec.job, spec.task, spec.device_type, 0});
}

// Copies between the first devices of this worker and another one.
class Copies {
 public:
  Copies(Worker& worker, const Path& path, std::int64_t bytes)
      : sources_(worker, first_device(worker, path.from), DType::f32, bytes),
        targets_(worker, first_device(worker, path.to), DType::f32, bytes),
        stream_(worker.devices().front()->stream(kInputStream)) {}

  void issue(std::int64_t bytes) { stream_.copy(targets_.take(bytes / 4), sources_.take(bytes / 4)); }
  void synchronize() { stream_.synchronize(); }

 private:
  Pool sources_, targets_;
  Stream& stream_;
};

struct Size {
  std::int64_t bytes = 0;
  int per_round = 1;  // copies, one after the other
};

// Returns the sizes that are copied within `most_s`, but two in any case.
std::vector<Size> sizes_within(Worker& worker, Copies& copies, const std::vector<std::int64_t>& all, double most_s) {
  std::vector<Size> sizes;
  for (const std::int64_t bytes : all) {
    const Nanoseconds begin = worker.now();
    copies.issue(bytes);
    copies.synchronize();
    const double time_s = seconds_between(begin, worker.now());
    if (sizes.size() >= 2 && time_s > most_s) break;
    sizes.push_back({bytes, time_s > most_s / 10 ? 1 : kPerRound});
  }
  return sizes;
}

}  // namespace

Meeting::Meeting(Worker& worker)
    : group_(worker.communicator(devices_of(worker, {.workers = worker.count(), .devices = 1}))),
      token_(worker.devices().front()->allocate(DType::f32, {1})),
      stream_(worker.devices().front()->stream(kCommunicationStream)) {
  stream_.launch(op::fill(token_, 0));
}

void Meeting::wait() {
  const std::vector<Tensor> tokens = {token_};
  Stream* const streams[] = {&stream_};
  group_.all_reduce(tokens, Reduction::sum, streams);
  stream_.synchronize();
}

std::vector<Path> paths_between(int workers) {
  std::vector<Path> paths;
  const bool all = static_cast<std::size_t>(workers) * static_cast<std::size_t>(workers - 1) <= kMostPaths;
  for (int from = 0; from < workers; ++from) {
    for (int to = 0; to < workers; ++to) {
      const int ahead = (to - from + workers) % workers;
      if (ahead != 0 && (all || ahead == 1 || ahead == workers / 2)) paths.push_back({from, to});
    }
  }
  return paths;
}

std::vector<Traffic> traffic_between(int workers) {
  std::vector<Traffic> traffic = {{"two workers to each other", {{0, 1}, {1, 0}}}};
  if (workers >= 3) traffic.push_back({std::string(kThroughOne), {{0, 1}, {2, 0}}});
  if (workers >= 4) traffic.push_back({"two pairs together", {{0, 1}, {2, 3}}});
  if (workers >= 3) {
    Traffic all{fmt::format("{} workers to one", workers - 1), {}};
    for (int from = 1; from < workers; ++from) all.paths.push_back({from, 0});
    traffic.push_back(std::move(all));
  }
  return traffic;
}

void measure_paths(Worker& worker, const Plan& plan, std::span<const Path> paths, double most_s) {
  Meeting meeting(worker);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    meeting.wait();
    if (paths[i].to != worker.index()) continue;
    Copies copies(worker, paths[i], std::max(plan.pool_bytes, largest(plan.copy_bytes)));
    const std::vector<Size> sizes = sizes_within(worker, copies, plan.copy_bytes, most_s);
    worker.begin_step(static_cast<int>(i) + 1);
    for (int round = 0; round < plan.repetitions; ++round) {
      for (const Size& size : sizes) {
        for (int j = 0; j < size.per_round; ++j) copies.issue(size.bytes);
      }
      copies.synchronize();
    }
    worker.end_step();
  }
  meeting.wait();
}

// A receiver may have several senders, so that here the senders issue.
void measure_traffic(Worker& worker, const Plan& plan, std::span<const Traffic> traffic, std::int64_t bytes) {
  Meeting meeting(worker);
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    std::vector<Copies> copies;
    for (const Path& path : traffic[i].paths) {
      if (path.from == worker.index()) copies.emplace_back(worker, path, 2 * bytes);
    }
    for (Copies& each : copies) each.issue(bytes);
    for (Copies& each : copies) each.synchronize();
    meeting.wait();
    worker.begin_step(static_cast<int>(i) + 1);
    const int rounds = std::max(plan.repetitions, kCopies / static_cast<int>(traffic[i].paths.size()));
    for (int round = 0; round < rounds; ++round) {
      for (Copies& each : copies) each.issue(bytes);
    }
    for (Copies& each : copies) each.synchronize();
    worker.end_step();
    meeting.wait();
  }
}

void measure_collectives_between(Worker& worker, const Plan& plan, const GroupShape& shape) {
  Meeting meeting(worker);
  meeting.wait();
  if (worker.index() < shape.workers) {
    worker.begin_step(kCollectivesStep);
    measure_collectives(worker, plan, devices_of(worker, shape));
    worker.end_step();
  }
  meeting.wait();
}

}  // namespace tandem::calibration
