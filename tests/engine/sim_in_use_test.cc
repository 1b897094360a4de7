// Work on what was used a step ago takes longer the more memory a node's devices have in use, against closed forms.
#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

constexpr std::int64_t kTensorElements = 25'000;  // of each tensor: 0.1 MB

// 10 GB/s for what has just been used.
DeviceModel processor() {
  DeviceModel model;
  model.name = "processor";
  model.cores = 2;
  model.peak_flops_per_s[DType::f32] = vendor(1e12);
  model.memory_bandwidth_bytes_per_s = vendor(10e9);
  for (const int devices : {1, 2}) {
    for (const double bytes : {1e6, 4e6}) {
      model.in_use.push_back({.devices = devices,
                              .in_use_bytes = bytes,
                              .memory_bytes_per_s = (bytes > 2e6 ? 2.5e9 : 5e9) / devices,
                              .copy_many_bytes_per_s = (bytes > 2e6 ? 2e9 : 4e9) / devices});
    }
  }
  return model;
}

std::shared_ptr<const Topology> machine() {
  Topology topology("machine");
  topology.add_node({.name = "w0.cpu0",
                     .kind = NodeKind::cpu,
                     .worker = 0,
                     .device = std::make_shared<const DeviceModel>(processor())});
  return std::make_shared<const Topology>(std::move(topology));
}

// The time of an op on a device of `devices`, after this one has allocated so many bytes besides the op's tensors.
Nanoseconds time_of(Op (*make)(const Tensor& to, const Tensor& from), std::int64_t bytes, int devices = 1) {
  EngineOptions options;
  options.topology = machine();
  options.workers = {WorkerSpec{.job = "localhost", .device_type = DeviceType::cpu, .device_count = devices}};
  const Timeline timeline = simulate(options, [&](Worker& worker) {
    Device& device = *worker.devices()[0];
    const Tensor to = device.allocate(DType::f32, {kTensorElements}),
                 from = device.allocate(DType::f32, {kTensorElements});
    Tensor rest;
    if (bytes > 0) rest = device.allocate(DType::f32, {bytes / 4 - 2 * kTensorElements});
    device.compute_stream().launch(make(to, from));
    device.synchronize();
  });
  return duration_ns(records_of(timeline, RecordKind::op).front());
}

Op update(const Tensor& to, const Tensor& from) {
  Op op = op::scale_add(to, from, 0.5, 0.5);  // 0.3 MB
  op.category = Category::update;
  return op;
}

TEST(SimInUse, UpdatesTakeLongerWithTheMemoryInUse) {
  EXPECT_EQ(time_of(update, 0), 30'000) << "less than the first sample";
  EXPECT_EQ(time_of(update, 1'000'000), 60'000);
  EXPECT_EQ(time_of(update, 2'000'000), 80'000) << "the logarithm of the bytes is interpolated: 3.75 GB/s";
  EXPECT_EQ(time_of(update, 4'000'000), 120'000);
  EXPECT_EQ(time_of(update, 40'000'000), 120'000) << "beyond the samples, the last one holds";
}

TEST(SimInUse, CopiesOfManyTensorsHaveARateOfTheirOwn) {
  const auto pack = [](const Tensor& to, const Tensor& from) { return op::copy_many({to}, {from}); };  // 0.2 MB
  EXPECT_EQ(time_of(pack, 0), 20'000);
  EXPECT_EQ(time_of(pack, 4'000'000), 100'000);
}

TEST(SimInUse, OtherWorkIsOnWhatHasJustBeenMade) {
  const auto relu = [](const Tensor& to, const Tensor& from) { return op::relu(to, from); };
  EXPECT_EQ(time_of(relu, 4'000'000), time_of(relu, 0));
}

// The operands are 20 KB and 0.1 MB.
TEST(SimInUse, SmallProductsReadTheirOperandsLater) {
  const auto product = [](const Tensor& to, const Tensor& from) {
    return op::gemm(to.flat_slice(0, 12'500).reshape({50, 250}), to.flat_slice(0, 5'000).reshape({50, 100}),
                    from.reshape({100, 250}));
  };
  const Nanoseconds soon = time_of(product, 0);
  EXPECT_EQ(time_of(product, 4'000'000) - soon, 120e3 / 2.5 - 120e3 / 10);
}

TEST(SimInUse, TheRatesAreThoseOfTheNearestNumberOfDevices) {
  EXPECT_EQ(time_of(update, 4'000'000, 2), 240'000);
  EXPECT_EQ(time_of(update, 4'000'000, 4), 240'000);
}

}  // namespace
}  // namespace tandem
