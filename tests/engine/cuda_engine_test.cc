// The cuda engine as far as it goes without a GPU.
#include "engine/cuda/cuda_engine.h"

#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/threads/block_pool.h"

namespace tandem::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(CudaEngine, IsUnavailableWithoutAGpuAndSaysWhy) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT([] { open_engine("cuda", {}); },
              ThrowsMessage<UnavailableError>(
                  AllOf(HasSubstr("engine 'cuda' finds no GPU to run on: "), HasSubstr("cudaGetDeviceCount: "))));
}

// Numbers its blocks, and has room for two.
class TwoBlocks final : public threads::BlockSource {
 public:
  explicit TwoBlocks(std::set<void*>& in_use) : in_use_(in_use) {}
  std::size_t alignment_bytes() const override { return 256; }
  void* allocate(std::size_t /*size_bytes*/) override {
    if (in_use_.size() == 2) return nullptr;
    void* block = &memory_[next_++];
    in_use_.insert(block);
    return block;
  }
  void release(void* block, std::size_t /*size_bytes*/) noexcept override { in_use_.erase(block); }

 private:
  std::set<void*>& in_use_;
  std::size_t next_ = 0;
  char memory_[16] = {};
};

TEST(CudaBlockPool, KeepsBlocksOfASizeAndGivesThemUpForOthers) {
  std::set<void*> in_use;
  {
    threads::BlockPool pool(std::make_unique<TwoBlocks>(in_use));
    void* first = pool.take(1000);
    pool.give_back(first, 1000);
    EXPECT_EQ(pool.take(1024), first) << "of one size class";
    void* second = pool.take(5000);
    EXPECT_NE(second, nullptr);
    EXPECT_EQ(pool.take(1), nullptr) << "both are in use";
    pool.give_back(second, 5000);
    EXPECT_NE(pool.take(1), nullptr) << "the block kept makes room";
    EXPECT_EQ(in_use.count(second), 0U);
    pool.give_back(first, 1024);
  }
  EXPECT_EQ(in_use.size(), 1U) << "the one never given back";
}

}  // namespace
}  // namespace tandem::cuda
