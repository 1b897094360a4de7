// Predicts how many bytes a device must hold at the same time, by their purpose.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tandem {

struct MemoryNeed {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;    // moments, and copies of parameters in another precision
  std::int64_t activations = 0;  // what forward passes keep for backward passes that have not been run yet
  std::int64_t buckets = 0;      // parameters, gradients and activations on their way between devices
  std::int64_t input = 0;
  std::int64_t workspace = 0;  // a layer's input, output and their gradients, and buffers of its kernels
  std::int64_t reserved = 0;   // by contexts and allocators, as the scenario states it
  std::int64_t cached = 0;     // beside all these: blocks that tensors have left and the allocator keeps
  std::int64_t available = 0;  // memory of the device; 0: unknown
  std::string moment{};        // at which that is most: "the backward pass of micro-batch 3, head"; empty: not known

  std::int64_t total() const;
  // Frameworks sometimes need less than the sum of the parts: published steps have run on devices for which it is up to
  // 2 % too large.
  static constexpr double kUncertainty = 0.1;
  bool is_within() const { return available == 0 || total() <= available; }
  bool fits() const {
    return available == 0 || static_cast<double>(total()) <= (1 + kUncertainty) * static_cast<double>(available);
  }

  bool operator==(const MemoryNeed&) const = default;
};

// A figure of MemoryNeed and its name in documents.
struct MemoryPart {
  const char* name;
  std::int64_t MemoryNeed::*bytes;
};
std::span<const MemoryPart> memory_parts();  // those that add up to the total, in their order

// Returns "12.15 GB".
std::string memory_size_text(std::int64_t bytes);
// Returns "needs 96.3 GB of 80.0 GB: parameters 12.0 GB, gradients 12.0 GB, ...", without parts of 0.
std::string memory_text(const MemoryNeed& need);

}  // namespace tandem
