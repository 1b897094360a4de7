// What a device must hold at the same time, by what it is for: a prediction, in bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tandem {

struct MemoryNeed {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;    // moments, and copies of the parameters in another precision
  std::int64_t activations = 0;  // what forward passes keep for backward passes that have not been run yet
  std::int64_t buckets = 0;      // parameters, gradients and activations under way between devices
  std::int64_t input = 0;
  std::int64_t workspace = 0;  // the largest layer's input, output and their gradients
  std::int64_t available = 0;  // what the device has; 0: not known

  std::int64_t total() const;
  // Frameworks do with less here and there than the sum of the parts: published steps of up to 2 % more have run.
  static constexpr double kUncertainty = 0.1;
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

// "needs 96.3 GB of 80.0 GB: parameters 12.0 GB, gradients 12.0 GB, ..."; parts of 0 are left out.
std::string memory_text(const MemoryNeed& need);

}  // namespace tandem
