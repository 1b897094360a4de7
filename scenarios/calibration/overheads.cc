// Measures what an op costs besides its work, on the host and on the device.
#include <cmath>

#include "scenarios/calibration/stages.h"

namespace tandem::calibration {
namespace {

constexpr double kWarmUpS = 0.3;  // all devices work this long before anything counts
constexpr double kBlockS = 0.01;  // long enough to issue kQueuedOps in the meantime
constexpr int kTinyOps = 400;
constexpr int kQueuedOps = 200;

void launch_tiny(Stream& stream, const Tensor& one, std::string_view label, int count) {
  for (int i = 0; i < count; ++i) {
    Op op = op::fill(one, 0);
    op.name = label;
    stream.launch(std::move(op));
  }
}

}  // namespace

Blocker::Blocker(Worker& worker, const Plan& plan)
    : worker_(worker),
      pools_(pools_of(worker, DType::f32, largest(plan.memory_bytes))),
      count_(largest(plan.memory_bytes) / 12) {
  const Nanoseconds begin = worker.now();
  while (seconds_between(begin, worker.now()) < kWarmUpS) {
    for (std::size_t d = 0; d < pools_.size(); ++d) launch_one(d, kBlockerLabel);
    synchronize_all(worker);
  }
  constexpr int kTimed = 4;
  const Nanoseconds timed = worker.now();
  for (int i = 0; i < kTimed; ++i) launch_one(0, kBlockerLabel);
  synchronize_all(worker);
  one_s_ = seconds_between(timed, worker.now()) / kTimed;
}

void Blocker::launch_one(std::size_t device, std::string_view label) {
  Op op = op::scale_add(pools_[device].take(count_), pools_[device].take(count_), 0.5, 0.5);
  op.name = label;
  worker_.devices()[device]->compute_stream().launch(std::move(op));
}

void Blocker::launch_for(std::size_t device, double seconds) {
  constexpr double kMost = 1000;
  const int count = static_cast<int>(std::clamp(std::ceil(seconds / one_s_), 1.0, kMost));
  for (int i = 0; i < count; ++i) launch_one(device, kBlockerLabel);
}

namespace {

// Issues the ops of each device in a task of its own, as replicas do.
void measure_tiny_ops(Worker& worker, const Plan& plan, Blocker& blocker, Findings& findings) {
  std::vector<std::vector<double>> launch_s(worker.devices().size());
  worker.run_concurrently(static_cast<int>(launch_s.size()), [&](int d) {
    const auto index = static_cast<std::size_t>(d);
    Device& device = *worker.devices()[index];
    Stream& stream = device.compute_stream();
    const Tensor one = device.allocate(DType::f32, {1});
    for (int i = 0; i < plan.repetitions; ++i) {
      const Nanoseconds begin = worker.now();
      launch_tiny(stream, one, kTinyOpLabel, kTinyOps);
      launch_s[index].push_back(seconds_between(begin, worker.now()) / kTinyOps);
      device.synchronize();
      blocker.launch_for(index, kBlockS);
      launch_tiny(stream, one, kQueuedOpLabel, kQueuedOps);
      device.synchronize();
    }
  });
  for (const auto& samples : launch_s)
    findings.launch_s.insert(findings.launch_s.end(), samples.begin(), samples.end());
}

// Launches an op that is long enough for the caller to fall asleep, and measures how long it takes to return.
void measure_synchronize(Worker& worker, const Plan& plan, Blocker& blocker, Findings& findings) {
  Stream& stream = worker.devices().front()->compute_stream();
  for (int i = 0; i < 3 * plan.repetitions; ++i) {
    blocker.launch_one(0, kSynchronizeLabel);
    stream.synchronize();
    findings.synchronize_return_ns.push_back(worker.now());
  }
}

double time_of(Worker& worker, const std::function<void()>& issue) {
  const Nanoseconds begin = worker.now();
  issue();
  synchronize_all(worker);
  return seconds_between(begin, worker.now());
}

}  // namespace

void measure_overheads(Worker& worker, const Plan& plan, Blocker& blocker, Findings& findings) {
  measure_tiny_ops(worker, plan, blocker, findings);
  measure_synchronize(worker, plan, blocker, findings);
}

// Runs products on one stream and copies on another for about the same time, each alone and both together.
void measure_overlap(Worker& worker, const Plan& plan, Findings& findings) {
  constexpr std::int64_t kMostSide = 2048;
  constexpr int kCopies = 8;
  Device& device = *worker.devices().front();
  const std::int64_t side = std::min(kMostSide, largest(plan.gemm_sides));
  const std::int64_t count = largest(plan.copy_bytes) / 4;
  Pool operands(worker, device, DType::f32, 12 * side * side), copied(worker, device, DType::f32, 8 * count);
  const auto products = [&](int n) {
    for (int i = 0; i < n; ++i) {
      Op op = op::gemm(operands.take_matrix(side, side), operands.take_matrix(side, side),
                       operands.take_matrix(side, side));
      op.name = kBlockerLabel;
      device.compute_stream().launch(std::move(op));
    }
  };
  const auto copies = [&] {
    for (int i = 0; i < kCopies; ++i) device.stream(kInputStream).copy(copied.take(count), copied.take(count));
  };
  products(1);
  copies();
  synchronize_all(worker);
  const double copies_s = time_of(worker, copies);
  const double one_s = time_of(worker, [&] { products(1); });
  const int n = static_cast<int>(std::clamp(copies_s / one_s, 1.0, 1000.0));
  const double products_s = time_of(worker, [&] { products(n); });
  const double both_s = time_of(worker, [&] {
    products(n);
    copies();
  });
  findings.overlap = (copies_s + products_s - both_s) / std::min(copies_s, products_s);
}

}  // namespace tandem::calibration
