// The emulation of NCCL itself: groups, ranks of several threads, messages, and how waiting ends.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "tests/cuda_emulation/emulation.h"

namespace tandem::emulation {
namespace {

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    start({.gpus = 2, .delay_seed = 5});
    for (const int gpu : {0, 1}) {
      cudaSetDevice(gpu);
      ASSERT_EQ(cudaStreamCreateWithFlags(&streams_[gpu], cudaStreamNonBlocking), cudaSuccess);
      void* block = nullptr;
      ASSERT_EQ(cudaMallocAsync(&block, kInts * sizeof(int), streams_[gpu]), cudaSuccess);
      blocks_[gpu] = static_cast<int*>(block);
      write(gpu, gpu + 1);
    }
  }
  void TearDown() override {
    start(machine_of_environment());
    cudaSetDevice(0);
  }
  void write(int gpu, int value) {
    const std::array<int, kInts> values{value, value, value, value};
    ASSERT_EQ(cudaMemcpyAsync(blocks_[gpu], values.data(), sizeof(values), cudaMemcpyDefault, streams_[gpu]),
              cudaSuccess);
  }
  std::array<int, 4> read(int gpu) {
    std::array<int, kInts> values{};
    EXPECT_EQ(cudaMemcpyAsync(values.data(), blocks_[gpu], sizeof(values), cudaMemcpyDefault, streams_[gpu]),
              cudaSuccess);
    return values;
  }
  void open() {
    const std::array<int, 2> gpus{0, 1};
    ASSERT_EQ(ncclCommInitAll(communicators_.data(), 2, gpus.data()), ncclSuccess);
  }
  ncclResult_t all_reduce(int rank) {
    return ncclAllReduce(blocks_[rank], blocks_[rank], kInts, ncclInt32, ncclSum, communicators_[rank], streams_[rank]);
  }

  static constexpr std::size_t kInts = 4;
  std::array<cudaStream_t, 2> streams_{};
  std::array<int*, 2> blocks_{};
  std::array<ncclComm_t, 2> communicators_{};
};

TEST_F(Nccl, SumsOverTheRanksOfAGroup) {
  open();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (const int rank : {0, 1}) ASSERT_EQ(all_reduce(rank), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(read(0), (std::array{3, 3, 3, 3}));
  EXPECT_EQ(read(1), (std::array{3, 3, 3, 3}));
  for (ncclComm_t communicator : communicators_) EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
}

TEST_F(Nccl, TakesAGpuOnceOnly) {
  const std::array<int, 2> gpus{1, 1};
  EXPECT_EQ(ncclCommInitAll(communicators_.data(), 2, gpus.data()), ncclInvalidUsage);
  EXPECT_STREQ(ncclGetLastError(nullptr), "Duplicate GPU detected");
}

TEST_F(Nccl, JoinsRanksOfSeveralThreadsByAnId) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> ranks;
  for (const int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      cudaSetDevice(rank);
      EXPECT_EQ(ncclCommInitRank(&communicators_[rank], 2, id, rank), ncclSuccess);
      EXPECT_EQ(all_reduce(rank), ncclSuccess);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(read(0), read(1));
  EXPECT_EQ(read(0)[0], 3);
  for (ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
}

TEST_F(Nccl, ExchangesMessagesWithinAGroup) {
  open();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (const int rank : {0, 1}) {
    ASSERT_EQ(ncclSend(blocks_[rank], 2, ncclInt32, 1 - rank, communicators_[rank], streams_[rank]), ncclSuccess);
    ASSERT_EQ(ncclRecv(blocks_[rank] + 2, 2, ncclInt32, 1 - rank, communicators_[rank], streams_[rank]), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(read(0), (std::array{1, 1, 2, 2}));
  EXPECT_EQ(read(1), (std::array{2, 2, 1, 1}));
  for (ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
}

TEST_F(Nccl, WaitsForAllRanksUntilItIsAborted) {
  open();
  ASSERT_EQ(all_reduce(0), ncclSuccess);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cudaStreamQuery(streams_[0]), cudaErrorNotReady);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (ncclComm_t communicator : communicators_) EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
  EXPECT_EQ(read(0)[0], 1) << "without a result";
}

TEST_F(Nccl, DoesNothingOfAGroupWithAMistake) {
  open();
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(all_reduce(0), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(blocks_[1], blocks_[1], kInts, ncclInt32, 2, communicators_[1], streams_[1]),
            ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
  EXPECT_EQ(read(0)[0], 1);
  for (ncclComm_t communicator : communicators_) ncclCommDestroy(communicator);
}

}  // namespace
}  // namespace tandem::emulation
