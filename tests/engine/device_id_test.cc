#include <gtest/gtest.h>

#include "engine/device.h"

namespace tandem {
namespace {

const DeviceId kDefaults{"worker", 3, DeviceType::cpu, 2};

TEST(DeviceId, PrintsTensorFlowsName) {
  EXPECT_EQ((DeviceId{"ps", 1, DeviceType::gpu, 7}.text()), "/job:ps/replica:0/task:1/device:GPU:7");
  EXPECT_EQ(DeviceId{}.text(), "/job:localhost/replica:0/task:0/device:CPU:0");
}

TEST(DeviceId, ParsesWhatItPrints) {
  const DeviceId id{"chief_2", 11, DeviceType::gpu, 15};
  EXPECT_EQ(DeviceId::parse(id.text(), kDefaults), id);
}

TEST(DeviceId, TakesWhatIsMissingFromTheDefaults) {
  EXPECT_EQ(DeviceId::parse("/job:ps/task:1", kDefaults), (DeviceId{"ps", 1, DeviceType::cpu, 2}));
  EXPECT_EQ(DeviceId::parse("/device:GPU:0", kDefaults), (DeviceId{"worker", 3, DeviceType::gpu, 0}));
  EXPECT_EQ(DeviceId::parse("/gpu:5", kDefaults), (DeviceId{"worker", 3, DeviceType::gpu, 5}));
  EXPECT_EQ(DeviceId::parse("GPU:0", kDefaults), (DeviceId{"worker", 3, DeviceType::gpu, 0}));
  EXPECT_EQ(DeviceId::parse("/task:8/cpu:1", kDefaults), (DeviceId{"worker", 8, DeviceType::cpu, 1}));
}

class NoDevice : public testing::TestWithParam<const char*> {};

TEST_P(NoDevice, IsNoName) {
  EXPECT_EQ(DeviceId::parse(GetParam(), kDefaults), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Texts, NoDevice,
                         testing::Values("", "/", "//", "gpu", "GPU:", "GPU:-1", "GPU:+1", "GPU: 1", "GPU:1x",
                                         "GPU:99999999999", "TPU:0", "/device:0", "/device:GPU", "/device:GPU:0:1",
                                         "/job:/task:0", "/job:9/task:0", "/job:a b", "/job:ps/job:ps", "/task:x",
                                         "/task:1/task:1", "/replica:1", "/gpu:0/", "/gpu:0/cpu:0", "/gpu:0//task:1",
                                         "job:ps,task:1"));

TEST(DeviceId, OrdersByJobTaskTypeIndex) {
  EXPECT_LT((DeviceId{"a", 5, DeviceType::gpu, 5}), (DeviceId{"b", 0, DeviceType::cpu, 0}));
  EXPECT_LT((DeviceId{"a", 0, DeviceType::cpu, 9}), (DeviceId{"a", 0, DeviceType::gpu, 0}));
}

}  // namespace
}  // namespace tandem
