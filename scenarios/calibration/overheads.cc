// Measures what an op costs besides its work, on the host and on the device.
#include <array>
#include <cmath>

#include "scenarios/calibration/program.h"
#include "scenarios/calibration/stages.h"

namespace tandem::calibration {
namespace {

constexpr double kWarmUpS = 0.3;              // all devices work this long before anything counts
constexpr std::int64_t kMostWorkSide = 2048;  // of products that only keep the device busy
constexpr double kBlockS = 0.01;              // long enough to issue kQueuedOps in the meantime
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

namespace {

// Products on the compute stream of one device.
class Products {
 public:
  Products(Worker& worker, Device& device, const Plan& plan)
      : stream_(device.compute_stream()),
        side_(std::min(kMostWorkSide, largest(plan.gemm_sides))),
        operands_(worker, device, DType::f32, 12 * side_ * side_, 0) {}

  void launch(int count) {
    for (int i = 0; i < count; ++i) {
      launch_unmeasured(stream_, op::gemm(operands_.take_matrix(side_, side_), operands_.take_matrix(side_, side_),
                                          operands_.take_matrix(side_, side_)));
    }
  }

 private:
  Stream& stream_;
  const std::int64_t side_;
  Pool operands_;
};

std::vector<Products> products_of(Worker& worker, const Plan& plan) {
  std::vector<Products> products;
  for (Device* device : worker.devices()) products.emplace_back(worker, *device, plan);
  return products;
}

}  // namespace

void warm_up(Worker& worker, const Plan& plan) {
  constexpr int kAtOnce = 8;
  if (plan.warm_up_s <= 0) return;
  std::vector<Products> products = products_of(worker, plan);
  const Nanoseconds begin = worker.now();
  while (seconds_between(begin, worker.now()) < plan.warm_up_s) {
    for (Products& each : products) each.launch(kAtOnce);
    synchronize_all(worker);
  }
}

Blocker::Blocker(Worker& worker, const Plan& plan)
    : worker_(worker),
      pools_(pools_of(worker, DType::f32, largest(plan.memory_bytes), plan.pool_bytes)),
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

void Blocker::launch(std::size_t device, std::string_view label, int stream, std::int64_t count) {
  Op op = op::scale_add(pools_[device].take(count), pools_[device].take(count), 0.5, 0.5);
  op.name = label;
  worker_.devices()[device]->stream(stream).launch(std::move(op));
}

void Blocker::launch_for(std::size_t device, double seconds) {
  constexpr double kMost = 1000;
  const int count = static_cast<int>(std::clamp(std::ceil(seconds / one_s_), 1.0, kMost));
  for (int i = 0; i < count; ++i) launch_one(device, kBlockerLabel);
}

namespace {

// Allocates the result of each op, as layers do, and issues a step's worth of them at a time, after the device has used
// the caches.
void measure_launches(Worker& worker, const Plan& plan, Blocker& blocker, std::size_t index,
                      std::vector<double>& launch_s) {
  Device& device = *worker.devices()[index];
  constexpr int kOfAStep = 40;
  const Tensor one = device.allocate(DType::f32, {1});
  Stream& stream = device.compute_stream();
  for (int i = 0; i < 3 * plan.repetitions; ++i) {
    blocker.launch_one(index, kBlockerLabel);
    device.synchronize();
    launch_tiny(stream, one, kTinyOpLabel, 1);
    const Nanoseconds begin = worker.now();
    for (int n = 0; n < kOfAStep; ++n) launch_tiny(stream, device.allocate(DType::f32, {1}), kTinyOpLabel, 1);
    launch_s.push_back(seconds_between(begin, worker.now()) / kOfAStep);
    device.synchronize();
  }
}

// Issues the ops of each device in a task of its own, as replicas do.
void measure_tiny_ops(Worker& worker, const Plan& plan, Blocker& blocker, Findings& findings) {
  std::vector<std::vector<double>> launch_s(worker.devices().size());
  worker.tasks().run_concurrently(static_cast<int>(launch_s.size()), [&](int d) {
    const auto index = static_cast<std::size_t>(d);
    Device& device = *worker.devices()[index];
    Stream& stream = device.compute_stream();
    const Tensor one = device.allocate(DType::f32, {1});
    const bool is_cpu = device.id().type == DeviceType::cpu;
    if (is_cpu) measure_launches(worker, plan, blocker, index, launch_s[index]);
    for (int i = 0; i < plan.repetitions; ++i) {
      const Nanoseconds begin = worker.now();
      launch_tiny(stream, one, kTinyOpLabel, kTinyOps);
      if (!is_cpu) launch_s[index].push_back(seconds_between(begin, worker.now()) / kTinyOps);
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
void measure_synchronize(Worker& worker, const Plan& plan, Blocker& blocker) {
  Stream& stream = worker.devices().front()->compute_stream();
  for (int i = 0; i < 3 * plan.repetitions; ++i) {
    plan.begin_round();
    blocker.launch_one(0, kSynchronizeLabel);
    stream.synchronize();
    worker.begin_step(kSynchronizedStep);
    worker.end_step();
  }
}

// Launches an op on a stream that has slept while another stream of the device worked, and a core was idle: the longer
// it was, the longer it takes to wake up.
void measure_waking(Worker& worker, const Plan& plan, Blocker& blocker, Findings& findings) {
  Device& device = *worker.devices().front();
  const Tensor one = device.allocate(DType::f32, {1});
  for (int i = 0; i < 3 * plan.repetitions * static_cast<int>(kIdleOps.size()); ++i) {
    plan.begin_round();
    blocker.launch_short(0, kIdleLabel, kCommunicationStream, kIdleOps[static_cast<std::size_t>(i) % kIdleOps.size()]);
    device.synchronize();
    worker.begin_step(kWakingStep);
    const Nanoseconds begin = worker.now();
    launch_tiny(device.compute_stream(), one, kWakingOpLabel, 1);
    findings.wake_call_s.push_back(seconds_between(begin, worker.now()));
    device.synchronize();
    worker.end_step();
  }
}

// Lets two streams of a device wait for each other's ops in turn, each of which takes long enough for the other stream
// to fall asleep.
void measure_hand_over(Worker& worker, const Plan& plan, Blocker& blocker) {
  constexpr int kTurns = 8;
  Device& device = *worker.devices().front();
  Stream& other = device.stream(kCommunicationStream);
  for (int i = 0; i < plan.repetitions; ++i) {
    for (int turn = 0; turn < kTurns; ++turn) {
      blocker.launch_short(0, kHandOverLabel, kComputeStream, 1);
      other.wait(device.compute_stream().record());
      blocker.launch_short(0, kHandOverLabel, kCommunicationStream, 1);
      device.compute_stream().wait(other.record());
    }
    device.synchronize();
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
  measure_synchronize(worker, plan, blocker);
  if (worker.devices().front()->id().type != DeviceType::cpu) return;
  measure_waking(worker, plan, blocker, findings);
  measure_hand_over(worker, plan, blocker);
  measure_input(worker, plan, findings);
}

namespace {

// Calls issue(device) for each device in a task of its own, all together. Returns how long each took with its work.
std::vector<double> times_of_all(Worker& worker, const std::function<void(std::size_t device)>& issue) {
  std::vector<double> times(worker.devices().size());
  worker.tasks().run_concurrently(static_cast<int>(times.size()), [&](int d) {
    const auto index = static_cast<std::size_t>(d);
    const Nanoseconds begin = worker.now();
    issue(index);
    worker.devices()[index]->synchronize();
    times[index] = seconds_between(begin, worker.now());
  });
  return times;
}

// Times are differences, which cancel the wait and the earlier work. If places have unequal numbers of devices, those
// of the first place count, which has the most. `launch` issues so many ops to a device.
void measure_unrecorded(Worker& worker, const Plan& plan, Blocker& blocker, int count,
                        const std::function<void(std::size_t device, int count)>& launch, std::vector<TinyOp>& ops) {
  constexpr int kUnmeasured = 2;  // rounds after which graphs are captured
  const auto places = static_cast<std::size_t>(places_of(worker.capabilities(), worker.devices().front()->id().type));
  const std::size_t devices = worker.devices().size();
  std::vector<double> issue_s(devices);
  const auto issue = [&](std::size_t d, int times) {
    const Nanoseconds begin = worker.now();
    launch(d, times * count);
    issue_s[d] = seconds_between(begin, worker.now()) / (times * count);
  };
  for (int round = 0; round < kUnmeasured + plan.repetitions; ++round) {
    const auto once = times_of_all(worker, [&](std::size_t d) { issue(d, 1); });
    const auto twice = times_of_all(worker, [&](std::size_t d) { issue(d, 2); });
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): what follows launches, and so writes issue_s.
    const std::vector<double> issued = issue_s;
    const auto block = times_of_all(worker, [&](std::size_t d) { blocker.launch_for(d, kBlockS); });
    const auto both = times_of_all(worker, [&](std::size_t d) {
      blocker.launch_for(d, kBlockS);
      issue(d, 1);
    });
    for (std::size_t d = 0; d < devices && round >= kUnmeasured; d += places) {
      ops.push_back({.issue_s = issued[d],
                     .idle_s = std::max(0.0, twice[d] - once[d]) / count,
                     .queued_s = std::max(0.0, both[d] - block[d]) / count});
    }
  }
}

}  // namespace

void run_unrecorded_program(Worker& worker, const Plan& plan, std::vector<TinyOp>& ops) {
  constexpr int kOps = 1000;
  Blocker blocker(worker, plan);
  std::vector<Tensor> ones;
  for (Device* device : worker.devices()) ones.push_back(device->allocate(DType::f32, {1}));
  const auto launch = [&](std::size_t d, int count) {
    launch_tiny(worker.devices()[d]->compute_stream(), ones[d], kTinyOpLabel, count);
  };
  measure_unrecorded(worker, plan, blocker, kOps, launch, ops);
}

void run_products_program(Worker& worker, const Plan& plan, std::map<DType, std::vector<TinyOp>>& products) {
  constexpr int kProducts = 400;
  constexpr std::array<std::int64_t, 3> kSides{32, 64, 128};
  constexpr std::int64_t kKept = 16, kLargest = kSides.back();
  const auto side = [&kSides](int i) { return kSides[static_cast<std::size_t>(i) % kSides.size()]; };
  Blocker blocker(worker, plan);
  for (const DType dtype : plan.gemm_dtypes) {
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    std::vector<Pool> pools = pools_of(worker, storage_of(dtype), kKept * size * kLargest * kLargest, 0);
    const auto launch = [&](std::size_t d, int count) {
      for (int i = 0; i < count; ++i) {
        const std::int64_t m = side(i), n = side(i / 3), k = side(i / 9);  // as in a step, others than before
        Op op = op::gemm(pools[d].take_matrix(m, n), pools[d].take_matrix(m, k), pools[d].take_matrix(k, n));
        op.cost.dtype = dtype;
        worker.devices()[d]->compute_stream().launch(std::move(op));
      }
    };
    measure_unrecorded(worker, plan, blocker, kProducts, launch, products[dtype]);
  }
}

// Runs products on one stream and copies from the host on another for about the same time, each alone and both
// together.
void measure_overlap(Worker& worker, const Plan& plan, Findings& findings) {
  constexpr int kCopiesAtOnce = 8;
  Device& device = *worker.devices().front();
  const std::int64_t count = largest(plan.copy_bytes) / 4;
  Products products(worker, device, plan);
  const Tensor here = worker.cpu().allocate(DType::f32, {count}), there = device.allocate(DType::f32, {count});
  worker.cpu().compute_stream().launch(op::fill(here, 1));
  worker.cpu().synchronize();
  const auto copies = [&] {
    for (int i = 0; i < kCopiesAtOnce; ++i) device.stream(kInputStream).copy(there, here);
  };
  products.launch(1);
  copies();
  synchronize_all(worker);
  const double copies_s = time_of(worker, copies);
  const double one_s = time_of(worker, [&] { products.launch(1); });
  const int n = static_cast<int>(std::clamp(copies_s / one_s, 1.0, 1000.0));
  const double products_s = time_of(worker, [&] { products.launch(n); });
  const double both_s = time_of(worker, [&] {
    products.launch(n);
    copies();
  });
  findings.overlap = (copies_s + products_s - both_s) / std::min(copies_s, products_s);
}

// Measures products alone, and during all-reduces that take longer than the products.
void measure_slowdown(Worker& worker, const Plan& plan, Findings& findings) {
  constexpr double kProductsS = 0.02, kLonger = 2;
  constexpr double kMostCalls = 1000;
  std::vector<Products> products = products_of(worker, plan);
  std::vector<Tensor> buffers;
  std::vector<Stream*> streams;
  std::vector<DeviceId> ids;
  for (Device* device : worker.devices()) {
    buffers.push_back(device->allocate(DType::f32, {largest(plan.collective_bytes) / 4}));
    device->compute_stream().launch(op::fill(buffers.back(), 0));
    streams.push_back(&device->stream(kCommunicationStream));
    ids.push_back(device->id());
  }
  synchronize_all(worker);
  Communicator& group = worker.communicator(ids);
  const auto reduce = [&](int calls) {
    for (int i = 0; i < calls; ++i) group.all_reduce(buffers, Reduction::sum, streams);
  };
  const auto multiply = [&](int count) {
    const Nanoseconds begin = worker.now();
    for (Products& each : products) each.launch(count);
    for (Device* device : worker.devices()) device->compute_stream().synchronize();
    return seconds_between(begin, worker.now());
  };
  time_of(worker, [&] { reduce(1); });
  const double call_s = time_of(worker, [&] { reduce(1); });
  multiply(1);
  const int count = static_cast<int>(std::clamp(kProductsS / multiply(1), 1.0, 1000.0));
  for (int i = 0; i < plan.repetitions; ++i) {
    const double alone_s = multiply(count);
    reduce(static_cast<int>(std::clamp(kLonger * alone_s / call_s, 1.0, kMostCalls)));
    findings.slowdowns.push_back(multiply(count) / alone_s);
    synchronize_all(worker);
  }
}

}  // namespace tandem::calibration
