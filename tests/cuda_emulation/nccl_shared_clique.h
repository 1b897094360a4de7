// An emulated NCCL communicator whose ranks are in several processes of this machine. They count their calls in a file
// that all of them have mapped, and hand their values over in files.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda_emulation/nccl_clique.h"

namespace tandem::emulation {

class SharedClique final : public Clique {
 public:
  static constexpr int kMostRanks = 16;

  // All files begin with `path`, whose folder exists.
  SharedClique(std::string path, int ranks);
  ~SharedClique() override;
  SharedClique(const SharedClique&) = delete;
  SharedClique& operator=(const SharedClique&) = delete;

  int ranks() const override { return ranks_; }
  void join(int rank, int gpu) override;
  ncclResult_t wait_for_all(const std::atomic<bool>& is_aborted, std::string& message) override;
  void abort() override;
  bool has_ended() override;
  bool meet(int rank, const Contribution& mine) override;
  bool exchange(int rank, const std::vector<Message>& mine) override;

 private:
  struct Counts;

  std::string file_of_call(int rank, std::uint64_t number) const;
  std::string file_of_message(int from, int to, std::uint64_t number) const;
  std::size_t input_bytes(const Contribution& contribution, int rank) const;
  std::size_t output_bytes(const Contribution& contribution) const;
  void complete(int rank, const Contribution& mine, std::uint64_t number) const;

  const std::string path_;
  const int ranks_;
  Counts* counts_ = nullptr;          // shared
  std::vector<std::uint64_t> calls_;  // of each rank here so far
};

}  // namespace tandem::emulation
