// Where logical devices go and how they communicate: decided without a GPU.
#include <gtest/gtest.h>

#include <vector>

#include "engine/cuda/collectives/collective_path.h"

namespace tandem::cuda {
namespace {

TEST(CudaPlacement, LogicalDevicesGoRoundTheGpus) {
  std::vector<int> places;
  for (int device = 0; device < 5; ++device) places.push_back(gpu_of(device, 2));
  EXPECT_EQ(places, (std::vector<int>{0, 1, 0, 1, 0}));
  EXPECT_EQ(gpu_of(7, 1), 0);
}

TEST(CudaCollectivePath, IsNcclWhereEveryRankHasAGpuOfItsOwn) {
  EXPECT_EQ(path_for(std::vector{0}), CollectivePath::nccl);
  EXPECT_EQ(path_for(std::vector{2, 0, 1}), CollectivePath::nccl);
  EXPECT_EQ(path_text(std::vector{2, 0, 1}), "NCCL on GPUs 0, 1, 2");
  EXPECT_EQ(path_text(std::vector{0}), "NCCL on GPU 0");
}

TEST(CudaCollectivePath, IsCopiesWhereRanksShareAGpu) {
  EXPECT_EQ(path_for(std::vector{0, 0}), CollectivePath::copies);
  EXPECT_EQ(path_for(std::vector{0, 1, 0}), CollectivePath::copies);
  EXPECT_EQ(path_text(std::vector{0, 0, 0, 0}), "copies and add kernels (4 logical devices on GPU 0)");
  EXPECT_EQ(path_text(std::vector{0, 1, 0}), "copies and add kernels (3 logical devices on GPUs 0, 1)");
}

}  // namespace
}  // namespace tandem::cuda
