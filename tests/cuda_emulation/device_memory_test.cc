// Memory comes back in the order of issue: what a program takes, and where, does not depend on when the GPU is done.
#include <set>
#include <thread>

#include "tests/cuda_emulation/on_gpus.h"

namespace tandem {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kCount = 1000;
constexpr std::size_t kBlockBytes = 4096;  // of so many float32

class DeviceMemory : public testing::Test {
 protected:
  void SetUp() override { emulation::start({.gpus = 1, .delay_seed = 7}); }
  void TearDown() override { emulation::start(emulation::machine_of_environment()); }
};

Tensor allocate(Device& device) {
  return device.allocate(DType::f32, {kCount});
}

// Blocks that the device has before the GPU hangs, since new ones take an answer of it.
void reserve(Device& gpu, int blocks) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < blocks; ++i) tensors.push_back(allocate(gpu));
}

float first_of(Worker& worker, const Tensor& tensor) {
  const Tensor here = worker.cpu().allocate(DType::f32, {kCount});
  tensor.device().compute_stream().copy(here, tensor);
  tensor.device().compute_stream().synchronize();
  return here.values<float>()[0];
}

TEST_F(DeviceMemory, OfTemporariesIsUsedAgainBeforeTheGpuIsDone) {
  run_on_gpus(1, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream& stream = gpu.compute_stream();
    const Tensor sum = allocate(gpu);
    stream.launch(op::fill(sum, 0));
    stream.synchronize();
    reserve(gpu, 4);
    const std::size_t before = emulation::bytes_in_use(0);
    emulation::hang_gpu(0);
    std::set<const void*> places;
    for (int i = 0; i < 300; ++i) {
      const Tensor one = allocate(gpu), two = allocate(gpu);
      stream.launch(op::fill(one, 1));
      stream.launch(op::scale_add(two, one, 2, 0));
      stream.launch(op::elementwise(kernel::Binary::add, sum, sum, two));
      places.insert({one.data(), two.data()});
    }
    EXPECT_EQ(places.size(), 2U);
    EXPECT_EQ(emulation::bytes_in_use(0), before);
    emulation::release_gpus();
    EXPECT_EQ(first_of(worker, sum), 600);
  });
}

TEST_F(DeviceMemory, OfAnotherStreamIsUsedAgainWhenThatIsWaitedFor) {
  run_on_gpus(1, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream &compute = gpu.compute_stream(), &other = gpu.stream(kCommunicationStream);
    const Tensor to = allocate(gpu);
    const void* place = nullptr;
    {
      const Tensor from = allocate(gpu);
      compute.launch(op::fill(from, 3));
      other.wait(compute.record());
      other.launch(op::scale_add(to, from, 1, 0));
      place = from.data();
    }
    {
      const Tensor not_yet = allocate(gpu);
      EXPECT_NE(not_yet.data(), place);
      compute.launch(op::fill(not_yet, 4));
    }
    compute.wait(other.record());
    const Tensor next = allocate(gpu), after = allocate(gpu);
    EXPECT_TRUE(next.data() == place || after.data() == place);
    compute.launch(op::fill(next, 5));
    compute.launch(op::fill(after, 6));
    EXPECT_EQ(first_of(worker, to), 3);
  });
}

// The compute stream's block would be free for the compute stream only.
TEST_F(DeviceMemory, ChangesItsPlaceForAFirstUseOnAnotherStream) {
  run_on_gpus(1, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream &compute = gpu.compute_stream(), &input = gpu.stream(kInputStream);
    const Tensor kept = allocate(gpu), batch = worker.cpu().allocate(DType::f32, {kCount});
    std::fill(batch.values<float>().begin(), batch.values<float>().end(), 9.0F);
    const void* place = nullptr;
    reserve(gpu, 3);
    emulation::hang_gpu(0);
    {
      const Tensor temporary = allocate(gpu);
      compute.launch(op::fill(temporary, 3));
      compute.launch(op::scale_add(kept, temporary, 1, 0));
      place = temporary.data();
    }
    const Tensor next = allocate(gpu);
    EXPECT_EQ(next.data(), place);
    input.copy(next, batch);
    EXPECT_NE(next.data(), place) << "the copy may run before the compute stream has read what was there";
    emulation::release_gpus();
    EXPECT_EQ(first_of(worker, kept), 3);
    compute.wait(input.record());
    EXPECT_EQ(first_of(worker, next), 9);
  });
}

// The first use is on the compute stream, whose block it is; another stream writes the rest, and is not ordered.
TEST_F(DeviceMemory, IsWaitedForByEachStreamThatUsesIt) {
  run_on_gpus(1, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Stream &compute = gpu.compute_stream(), &other = gpu.stream(kInputStream);
    const Tensor kept = allocate(gpu);
    reserve(gpu, 1);
    for (int i = 0; i < 50; ++i) {
      emulation::hang_gpu(0);
      const void* place = nullptr;
      {
        const Tensor former = allocate(gpu);
        compute.launch(op::fill(former, i));
        compute.launch(op::scale_add(kept, former, 1, 0));
        place = former.data();
      }
      const Tensor parts = allocate(gpu);
      EXPECT_EQ(parts.data(), place);
      compute.launch(op::fill(parts.flat_slice(0, 500), 1));
      other.launch(op::fill(parts.flat_slice(500, 500), 2));
      emulation::release_gpus();
      const Tensor here = worker.cpu().allocate(DType::f32, {kCount});
      compute.copy(here, kept);
      compute.synchronize();
      EXPECT_EQ(here.values<float>()[999], i);
      gpu.synchronize();
    }
  });
}

TEST_F(DeviceMemory, SeenToBeDoneIsFreeForEveryStream) {
  run_on_gpus(1, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const void* place = nullptr;
    {
      const Tensor temporary = allocate(gpu);
      gpu.compute_stream().launch(op::fill(temporary, 3));
      place = temporary.data();
    }
    gpu.synchronize();
    const Tensor next = allocate(gpu);
    gpu.stream(kInputStream).launch(op::fill(next, 1));
    EXPECT_EQ(next.data(), place);
  });
}

// Without any order between the streams, blocks of work that is done serve again all the same.
TEST_F(DeviceMemory, OfStreamsWithoutAnyOrderIsBounded) {
  run_on_gpus(1, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const std::size_t before = emulation::bytes_in_use(0);
    for (int i = 0; i < 2000; ++i) {
      const Tensor tensor = allocate(gpu);
      gpu.stream(kInputStream).launch(op::fill(tensor, i));
      if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_LT(emulation::bytes_in_use(0) - before, 1500 * kBlockBytes);
  });
}

// The work of the other logical device ends piece by piece, over longer than nothing may happen for.
TEST_F(DeviceMemory, IsWaitedForAsLongAsAnyUserOfTheGpuGetsOn) {
  emulation::start({.gpus = 1, .memory_bytes = 2 << 20});
  const auto run = [](Worker& worker) {
    Device &first = *worker.devices()[0], &second = *worker.devices()[1];
    for (int i = 0; i < 4; ++i) {
      first.compute_stream().launch(
          op::host_function("pause", {}, [] { std::this_thread::sleep_for(std::chrono::milliseconds(400)); }));
      const Tensor tensor = first.allocate(DType::u8, {1'500'000});
      first.compute_stream().launch(op::fill(tensor, 1));
    }
    second.compute_stream().launch(op::fill(second.allocate(DType::u8, {1'400'000}), 2));
    second.synchronize();
  };
  EXPECT_NO_THROW(run_on_gpus(2, run));
}

TEST_F(DeviceMemory, OfATensorThatOutlivesItsRunComesBack) {
  Tensor kept;
  {
    const auto engine = open_gpus(1);
    engine->run([&](Worker& worker) {
      kept = allocate(*worker.devices()[0]);
      worker.devices()[0]->compute_stream().launch(op::fill(kept, 1));
    });
  }
  kept = {};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (emulation::bytes_in_use(0) > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(emulation::bytes_in_use(0), 0U);
}

// A step with temporaries, collectives among them, whatever the delays: one graph, at the same addresses.
TEST_F(DeviceMemory, LetsStepsWithTemporariesBeTheSameGraph) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    emulation::start({.gpus = 2, .delay_seed = seed});
    EngineOptions options;
    options.workers.front() = {.device_type = DeviceType::gpu, .device_count = 2};
    options.graphs = true;
    const Timeline timeline = open_engine("cuda", std::move(options))->run([](Worker& worker) {
      const std::vector<Tensor> sums = filled(worker, kCount, 0);
      for (Device* device : worker.devices()) device->synchronize();
      for (int step = 0; step < 10; ++step) {
        std::vector<Tensor> gradients;
        std::vector<Stream*> streams;
        for (Device* device : worker.devices()) {
          const Tensor one = allocate(*device);
          gradients.push_back(allocate(*device));
          device->compute_stream().launch(op::fill(one, 1));
          device->compute_stream().launch(op::scale_add(gradients.back(), one, 2, 0));
          streams.push_back(&device->stream(kCommunicationStream));
          streams.back()->wait(device->compute_stream().record());
        }
        worker.communicator(ids_of(worker)).all_reduce(gradients, Reduction::sum, streams);
        for (std::size_t d = 0; d < 2; ++d) {
          Stream& compute = worker.devices()[d]->compute_stream();
          compute.wait(streams[d]->record());
          compute.launch(op::elementwise(kernel::Binary::add, sums[d], sums[d], gradients[d]));
          compute.launch(op::scale_add(sums[d], gradients[d], 0, 1));
        }
      }
      EXPECT_EQ(first_of(worker, sums[1]), 40);
    });
    EXPECT_THAT(timeline.settings.at("graph_launches"), HasSubstr("4 captured, 0 updated"))
        << "two on each GPU, with the seed " << seed;
  }
}

}  // namespace
}  // namespace tandem
