// Devices along axes, and their collectives.
#include "strategies/parallel/layout/device_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "strategies/base/errors.h"
#include "strategies/parallel/layout/group_collectives.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/parallel/layout/range.h"
#include "strategies/types/multi_worker_mirrored.h"

namespace tandem {
namespace {

void on_workers(int workers, int devices, const Program& program) {
  EngineOptions options;
  options.workers.clear();
  for (int task = 0; task < workers; ++task) options.workers.push_back({.task = task, .device_count = devices});
  open_engine("cpu", std::move(options))->run(program);
}

const std::vector<MeshAxis> kTwoByThree = {{.name = "data", .size = 2}, {.name = "tensor", .size = 3}};

TEST(DeviceMesh, NeighboursOfAWorkerAreNeighboursAlongTheLastAxis) {
  on_workers(1, 6, [](Worker& worker) {
    const DeviceMesh mesh(worker, devices_in_sync(worker), kTwoByThree);
    EXPECT_EQ(mesh.group(4, "tensor"), (std::vector<int>{3, 4, 5}));
    EXPECT_EQ(mesh.group(4, "data"), (std::vector<int>{1, 4}));
    EXPECT_EQ(mesh.coordinate(4, "data"), 1);
    EXPECT_EQ(mesh.coordinate(4, "tensor"), 1);
    EXPECT_EQ(mesh.size("pipeline"), 1) << "an axis that the mesh lacks";
    EXPECT_EQ(mesh.group(4, "pipeline"), (std::vector<int>{4}));
    EXPECT_EQ(mesh.local_ranks().size(), 6u);
    EXPECT_EQ(mesh.communicator(4, "data").size(), 2);
  });
}

TEST(DeviceMesh, SpansWorkers) {
  on_workers(2, 3, [](Worker& worker) {
    const DeviceMesh mesh(worker, devices_in_sync(worker), kTwoByThree);
    EXPECT_EQ(mesh.local_ranks().front(), worker.index() * 3);
    EXPECT_EQ(mesh.communicator(worker.index() * 3, "tensor").local_devices().size(), 3u);
    EXPECT_EQ(mesh.communicator(worker.index() * 3, "data").local_devices().size(), 1u);
  });
}

TEST(DeviceMesh, RefusesWhatIsNoArrangement) {
  on_workers(1, 4, [](Worker& worker) {
    const std::vector<DeviceId> devices = devices_in_sync(worker);
    EXPECT_THROW(DeviceMesh(worker, devices, kTwoByThree), ValueError);
    EXPECT_THROW(DeviceMesh(worker, devices, {{.name = "a", .size = 2}, {.name = "a", .size = 2}}), ValueError);
    EXPECT_THROW(DeviceMesh(worker, devices, {{.name = "a", .size = 0}, {.name = "b", .size = 4}}), ValueError);
  });
}

TEST(GroupCollectives, TheLastDeviceToArriveIssuesTheCallOfAll) {
  on_workers(1, 4, [](Worker& worker) {
    GroupCollectives group(worker, worker.communicator(devices_in_sync(worker)));
    std::vector<Tensor> sums(4), gathered(4);
    worker.tasks().run_concurrently(4, [&](int i) {
      Device& device = *worker.devices()[static_cast<std::size_t>(i)];
      Stream& stream = device.compute_stream();
      const auto index = static_cast<std::size_t>(i);
      sums[index] = device.allocate(DType::f32, {1});
      gathered[index] = device.allocate(DType::f32, {4});
      stream.launch(op::fill(sums[index], i + 1));
      for (int call = 0; call < 3; ++call) group.all_reduce(sums[index], stream);
      group.all_gather(gathered[index], sums[index], stream);
      group.reduce_scatter(sums[index], gathered[index], stream);
      stream.synchronize();
    });
    for (const Tensor& sum : sums) EXPECT_EQ(sum.values<float>()[0], 10 * 4 * 4 * 4);
  });
}

TEST(PartOf, CoversEverythingOnce) {
  EXPECT_EQ(part_of(10, 4, 0), (Range{0, 3}));
  EXPECT_EQ(part_of(10, 4, 1), (Range{3, 3}));
  EXPECT_EQ(part_of(10, 4, 3), (Range{8, 2}));
  EXPECT_EQ(part_of(2, 4, 3), (Range{2, 0}));
}

// Two parts of a layer, two of a sequence, three stages, two replicas.
TEST(MeshRanks, CountAlongTheAxesInTheirOrder) {
  ParallelOptions options{.data = 2, .tensor = 2, .pipeline = 3, .context = 2};
  for (const auto& [name, order] : axis_orders()) {
    options.axis_order = order;
    for (int rank = 0; rank < 24; ++rank) {
      EXPECT_EQ(options.rank_of(options.place_of_rank(rank), options.stage_of_rank(rank), rank % 2), rank) << name;
    }
    EXPECT_EQ(options.rank_of(1, 0, 0), 2) << name << ": sequences are always next to layers";
  }
  options.axis_order = AxisOrder::tensor_data_pipeline;
  EXPECT_EQ(options.rank_of(2, 0, 0), 4) << "the second replica";
  EXPECT_EQ(options.rank_of(0, 1, 0), 8) << "the second stage";
  EXPECT_EQ(options.span_of_places(4), 8);
  options.axis_order = AxisOrder::tensor_pipeline_data;
  EXPECT_EQ(options.rank_of(0, 1, 0), 4);
  EXPECT_EQ(options.rank_of(2, 0, 0), 12);
  EXPECT_EQ(options.span_of_places(2), 4);
  EXPECT_EQ(options.span_of_places(4), 24);
}

}  // namespace
}  // namespace tandem
