#include "scenarios/calibration_program.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
// Operands rotate through this much memory, so that a measured op finds them where a training step's op would:
// in a shared cache rather than in the innermost one.
constexpr std::int64_t kPoolBytes = 8 * kMiB;
constexpr int kPerRound = 3;
constexpr double kAssumedFlopsPerS = 3e10;  // only to divide the time budget into repetitions

// One device's share of a measurement: memory carved out of one block.
class Pool {
 public:
  Pool(Device& device, std::int64_t bytes) : block_(device.allocate(DType::f32, {bytes / 4})) {
    device.compute_stream().launch(op::fill(block_, 1));
  }
  // The next `count` elements, wrapping around.
  Tensor take(std::int64_t count) {
    if (next_ + count > block_.element_count()) next_ = 0;
    Tensor part = block_.flat_slice(next_, count);
    next_ += count;
    return part;
  }

 private:
  Tensor block_;
  std::int64_t next_ = 0;
};

std::vector<Stream*> streams_of(Worker& worker, int index) {
  std::vector<Stream*> streams;
  for (Device* device : worker.devices()) streams.push_back(&device->stream(index));
  return streams;
}

void synchronize_all(Worker& worker) {
  for (Device* device : worker.devices()) device->synchronize();
}

int gemm_repetitions_per_round(const CalibrationPlan& plan, std::int64_t multiplications) {
  const double expected_s = 2.0 * static_cast<double>(multiplications) / kAssumedFlopsPerS;
  return std::clamp(static_cast<int>(plan.gemm_budget_s / plan.repetitions / expected_s), 1, 8);
}

std::int64_t largest(const std::vector<std::int64_t>& values) {
  return *std::max_element(values.begin(), values.end());
}

// Rounds over all shapes, rather than all repetitions of a shape at once: a disturbance of the machine then falls on
// one sample of many shapes instead of on every sample of one.
void measure_gemm(Worker& worker, const CalibrationPlan& plan) {
  const std::int64_t side = largest(plan.gemm_sides);
  std::vector<Pool> pools;
  for (Device* device : worker.devices()) pools.emplace_back(*device, std::max(kPoolBytes, 3 * 4 * side * side));
  for (int round = 0; round < plan.repetitions; ++round) {
    for (const auto& [m, n, k] : plan.gemm_shapes()) {
      for (int i = 0; i < gemm_repetitions_per_round(plan, m * n * k); ++i) {
        for (std::size_t d = 0; d < pools.size(); ++d) {
          Op op = op::gemm(pools[d].take(m * n).reshape({m, n}), pools[d].take(m * k).reshape({m, k}),
                           pools[d].take(k * n).reshape({k, n}));
          op.name = gemm_label(m, n, k);
          worker.devices()[d]->compute_stream().launch(std::move(op));
        }
      }
      synchronize_all(worker);
    }
  }
}

void measure_memory(Worker& worker, const CalibrationPlan& plan) {
  std::vector<Pool> pools;
  for (Device* device : worker.devices()) {
    pools.emplace_back(*device, std::max(kPoolBytes, largest(plan.memory_bytes)));
  }
  for (int round = 0; round < plan.repetitions; ++round) {
    for (const std::int64_t bytes : plan.memory_bytes) {
      const std::int64_t count = bytes / 12;  // `to` is read and written, `a` is read
      for (int i = 0; i < kPerRound; ++i) {
        for (std::size_t d = 0; d < pools.size(); ++d) {
          Op op = op::scale_add(pools[d].take(count), pools[d].take(count), 0.5, 0.5);
          op.name = memory_label(bytes);
          worker.devices()[d]->compute_stream().launch(std::move(op));
        }
      }
      synchronize_all(worker);
    }
  }
}

// Device i copies from device i + 1; with one device, within it.
void measure_copy(Worker& worker, const CalibrationPlan& plan) {
  std::vector<Pool> pools;
  for (Device* device : worker.devices()) {
    pools.emplace_back(*device, std::max(kPoolBytes, 2 * largest(plan.copy_bytes)));
  }
  for (int round = 0; round < plan.repetitions; ++round) {
    for (const std::int64_t bytes : plan.copy_bytes) {
      for (int i = 0; i < kPerRound; ++i) {
        for (std::size_t d = 0; d < pools.size(); ++d) {
          const std::size_t peer = (d + 1) % pools.size();
          const Tensor from = pools[peer].take(bytes / 4);
          worker.devices()[d]->compute_stream().copy(pools[d].take(bytes / 4), from);
        }
      }
      synchronize_all(worker);
    }
  }
}

void measure_tiny_ops(Worker& worker, const CalibrationPlan& plan, HostSamples& host) {
  constexpr int kOps = 400;
  for (Device* device : worker.devices()) {
    const Tensor one = device->allocate(DType::f32, {1});
    for (int i = 0; i < plan.repetitions; ++i) {
      const Nanoseconds begin = worker.now();
      for (int j = 0; j < kOps; ++j) {
        Op op = op::fill(one, 0);
        op.name = kTinyOpLabel;
        device->compute_stream().launch(std::move(op));
      }
      host.launch_s.push_back(static_cast<double>(worker.now() - begin) * 1e-9 / kOps);
      device->synchronize();
    }
  }
}

// An op long enough for the caller to fall asleep, then the time until it is back.
void measure_synchronize(Worker& worker, const CalibrationPlan& plan, HostSamples& host) {
  Device& device = *worker.devices().front();
  const Tensor block = device.allocate(DType::f32, {kMiB});
  device.compute_stream().launch(op::fill(block, 1));
  device.synchronize();
  for (int i = 0; i < 3 * plan.repetitions; ++i) {
    Op op = op::scale_add(block, block, 0.5, 0.5);
    op.name = kSynchronizeLabel;
    device.compute_stream().launch(std::move(op));
    device.compute_stream().synchronize();
    host.synchronize_return_ns.push_back(worker.now());
  }
}

void issue_collective(Communicator& group, std::string_view operation, std::span<const Tensor> whole,
                      std::span<const Tensor> parts, std::span<Stream* const> streams) {
  if (operation == "all_reduce") group.all_reduce(whole, Reduction::sum, streams);
  if (operation == "reduce") group.reduce(whole, Reduction::sum, 0, streams);
  if (operation == "broadcast") group.broadcast(whole, 0, streams);
  if (operation == "all_gather") group.all_gather(whole, parts, streams);
  if (operation == "reduce_scatter") group.reduce_scatter(parts, whole, Reduction::sum, streams);
}

void measure_collectives(Worker& worker, const CalibrationPlan& plan) {
  const auto n = static_cast<std::int64_t>(worker.devices().size());
  std::vector<DeviceId> ids;
  std::vector<Pool> pools;
  for (Device* device : worker.devices()) {
    ids.push_back(device->id());
    pools.emplace_back(*device, std::max(kPoolBytes, 2 * largest(plan.collective_bytes)));
  }
  Communicator& group = worker.communicator(ids);
  const std::vector<Stream*> streams = streams_of(worker, kCommunicationStream);
  synchronize_all(worker);
  for (int round = 0; round < plan.repetitions; ++round) {
    for (const std::string_view operation : calibrated_collectives()) {
      for (const std::int64_t bytes : plan.collective_bytes) {
        const std::int64_t part = std::max<std::int64_t>(1, bytes / 4 / n);
        for (int i = 0; i < kPerRound; ++i) {
          std::vector<Tensor> whole, parts;
          for (Pool& pool : pools) {
            whole.push_back(pool.take(part * n));
            parts.push_back(pool.take(part));
          }
          issue_collective(group, operation, whole, parts, streams);
          if (i == 0) synchronize_all(worker);  // the first finds its streams idle, the others busy
        }
        synchronize_all(worker);
      }
    }
  }
}

}  // namespace

CalibrationPlan CalibrationPlan::quick() {
  return {.gemm_sides = {8, 32, 128, 512, 1024},
          .memory_bytes = {12, 1200, 12 * kKiB, 96 * kKiB, 768 * kKiB, 6 * kMiB, 48 * kMiB},
          .copy_bytes = {4, 512, 4 * kKiB, 64 * kKiB, kMiB, 4 * kMiB, 32 * kMiB},
          .collective_bytes = {256, 4 * kKiB, 64 * kKiB, 512 * kKiB, 2 * kMiB, 8 * kMiB, 32 * kMiB},
          .repetitions = 5,
          .gemm_budget_s = 0.02};
}

CalibrationPlan CalibrationPlan::full() {
  CalibrationPlan plan = quick();
  plan.gemm_sides = {8, 16, 32, 64, 128, 256, 512, 1024};
  plan.collective_bytes = {256, kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB};
  plan.repetitions = 11;
  plan.gemm_budget_s = 0.06;
  return plan;
}

std::vector<std::array<std::int64_t, 3>> CalibrationPlan::gemm_shapes() const {
  std::vector<std::array<std::int64_t, 3>> shapes;
  for (const std::int64_t m : gemm_sides) {
    for (const std::int64_t n : gemm_sides) {
      for (const std::int64_t k : gemm_sides) shapes.push_back({m, n, k});
    }
  }
  return shapes;
}

std::vector<std::string_view> calibrated_collectives() {
  return {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"};
}

std::string gemm_label(std::int64_t m, std::int64_t n, std::int64_t k) {
  return fmt::format("gemm {}x{}x{}", m, n, k);
}
std::string memory_label(std::int64_t bytes) {
  return fmt::format("memory {}", bytes);
}

void run_calibration(Worker& worker, const CalibrationPlan& plan, HostSamples& host,
                     const std::function<void(std::string_view stage)>& stage) {
  stage("launching");
  measure_tiny_ops(worker, plan, host);
  measure_synchronize(worker, plan, host);
  stage("GEMM");
  measure_gemm(worker, plan);
  stage("memory");
  measure_memory(worker, plan);
  stage("copies");
  measure_copy(worker, plan);
  if (worker.devices().size() > 1) {
    stage("collectives");
    measure_collectives(worker, plan);
  }
}

}  // namespace tandem
