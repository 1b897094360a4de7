// A call as MPI executes it: the operands of this process's ranks, in host memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/threads/collective_call.h"
#include "engine/threads/process_devices.h"

namespace tandem::mpi {

class HostCall {
 public:
  // Reads the operands of the ranks `here`, by means of `staging` where they are not in host memory.
  HostCall(const threads::CollectiveCall& call, const std::vector<int>& here, threads::HostStaging* staging)
      : call_(call), spec_(call.spec()), staging_(staging) {
    if (staging_ != nullptr) {
      operands_ = staging_->load(call, here);
      spec_.dtype = operands_.dtype;
      return;
    }
    const auto ranks = static_cast<std::size_t>(call.ranks());
    operands_.inputs.resize(ranks);
    operands_.outputs.resize(ranks);
    for (const int rank : here) {
      operands_.inputs[static_cast<std::size_t>(rank)] = static_cast<std::byte*>(call.input(rank).data());
      operands_.outputs[static_cast<std::size_t>(rank)] = static_cast<std::byte*>(call.output(rank).data());
    }
  }

  // Writes the outputs to where they belong.
  void store() {
    if (staging_ != nullptr) staging_->store(call_, operands_);
  }

  const CollectiveSpec& spec() const { return spec_; }  // of the operands in host memory
  const std::byte* input(int rank, std::size_t offset_bytes = 0) const {
    return operands_.inputs[static_cast<std::size_t>(rank)] + offset_bytes;
  }
  // For MPI, which takes what it only reads as writable.
  std::byte* input_to_send(int rank) const { return operands_.inputs[static_cast<std::size_t>(rank)]; }
  std::byte* output(int rank, std::size_t offset_bytes = 0) const {
    return operands_.outputs[static_cast<std::size_t>(rank)] + offset_bytes;
  }

 private:
  const threads::CollectiveCall& call_;
  CollectiveSpec spec_;
  threads::HostStaging* const staging_;
  threads::HostOperands operands_;
};

inline void copy_unless_same(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace tandem::mpi
