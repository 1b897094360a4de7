// Which GPU each logical device of a job is on, and how groups of them communicate.
#include "engine/mpi/rank_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "engine/threads/remote_device.h"

namespace tandem::mpi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// A worker a process, with GPUs.
std::vector<WorkerSpec> workers_of(const std::vector<int>& devices) {
  std::vector<WorkerSpec> workers;
  for (const int count : devices) {
    workers.push_back(
        {.task = static_cast<int>(workers.size()), .device_type = DeviceType::gpu, .device_count = count});
  }
  return workers;
}

class Devices {
 public:
  Device* add(int worker, int index, DeviceType type = DeviceType::gpu) {
    const DeviceId id{.job = "worker", .task = worker, .type = type, .index = index};
    devices_.push_back(std::make_unique<threads::RemoteDevice>(id, static_cast<int>(devices_.size()), worker));
    return devices_.back().get();
  }

 private:
  std::vector<std::unique_ptr<threads::RemoteDevice>> devices_;
};

const std::vector<std::string> kFour{"a", "b", "c", "d"};

TEST(RankGpus, ProcessesOfAHostDivideWhatTheySee) {
  const RankGpus gpus({{"x", kFour}, {"x", kFour}, {"y", kFour}, {"x", kFour}}, workers_of({2, 1, 2, 2}), {0, 1, 2, 3});
  EXPECT_EQ(gpus.first_gpu(0), 0);
  EXPECT_EQ(gpus.first_gpu(1), 2);
  EXPECT_EQ(gpus.first_gpu(2), 0) << "another host";
  EXPECT_EQ(gpus.first_gpu(3), 3);
  EXPECT_THAT(gpus.notes(), ElementsAre("shared: 7 logical devices are on 6 GPUs, up to 2 on each; times are not those "
                                        "of 7 GPUs"));
}

// As a launcher does that gives each process a GPU of its own.
TEST(RankGpus, ProcessesThatSeeOthersBeginAtTheirFirst) {
  const RankGpus gpus({{"x", {"a"}}, {"x", {"b"}}}, workers_of({1, 1}), {0, 1});
  EXPECT_EQ(gpus.first_gpu(0), 0);
  EXPECT_EQ(gpus.first_gpu(1), 0);
  EXPECT_THAT(gpus.notes(), IsEmpty());
  Devices devices;
  const std::vector<Device*> group{devices.add(0, 0), devices.add(1, 0)};
  EXPECT_EQ(gpus.path_of(group), SpanningPath::devices);
  EXPECT_EQ(gpus.path_text(group), "NCCL on 2 GPUs of 2 processes");
}

TEST(RankGpus, WhoSharesAGpuCommunicatesThroughHostMemory) {
  const RankGpus gpus({{"x", {"a"}}, {"x", {"a"}}, {"y", {"a"}}}, workers_of({1, 1, 1}), {0, 1, 2});
  Devices devices;
  Device *first = devices.add(0, 0), *second = devices.add(1, 0), *elsewhere = devices.add(2, 0);
  EXPECT_EQ(gpus.path_of({first, second}), SpanningPath::staged);
  EXPECT_EQ(gpus.path_text({first, second, elsewhere}),
            "MPI through host memory (3 logical devices of 3 processes on 2 GPUs)");
  EXPECT_EQ(gpus.path_of({first, elsewhere}), SpanningPath::staged) << "another process is on the first one's GPU";
}

TEST(RankGpus, GpusOfTwoHostsMayHaveEqualNames) {
  const RankGpus gpus({{"x", {"a"}}, {"y", {"a"}}}, workers_of({1, 1}), {0, 1});
  Devices devices;
  EXPECT_EQ(gpus.path_of({devices.add(0, 0), devices.add(1, 0)}), SpanningPath::devices);
}

// Two of each group are on GPUs of their own, but nothing orders the kernels of two processes on one GPU.
TEST(RankGpus, GroupsOnGpusThatAnotherProcessUsesAsWellCommunicateThroughHostMemory) {
  const RankGpus gpus({{"x", {"a", "b"}}, {"x", {"a", "b"}}}, workers_of({2, 2}), {0, 1});
  Devices devices;
  EXPECT_EQ(gpus.path_of({devices.add(0, 0), devices.add(1, 1)}), SpanningPath::staged);
}

TEST(RankGpus, CpusCommunicateByMpiAndNotWithGpus) {
  const RankGpus gpus({{"x", kFour}, {"y", kFour}}, workers_of({2, 2}), {0, 1});
  Devices devices;
  Device *host = devices.add(0, 0, DeviceType::cpu), *other = devices.add(1, 0, DeviceType::cpu);
  EXPECT_EQ(gpus.path_of({host, other}), SpanningPath::host);
  EXPECT_THAT(([&, gpu = devices.add(1, 0)] {
                gpus.path_of({host, gpu});
              }),
              ThrowsMessage<Error>(HasSubstr("no communicator of CPUs and GPUs together: /job:worker")));
}

}  // namespace
}  // namespace tandem::mpi
