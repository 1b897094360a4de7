#include "engine/cpu/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace tandem::cpu {
namespace {

constexpr std::size_t kAlignmentBytes = 64;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

class HostSource final : public threads::BlockSource {
 public:
  std::size_t alignment_bytes() const override { return kAlignmentBytes; }

  // Huge pages cause fewer page faults and TLB misses in long sweeps.
  void* allocate(std::size_t size_bytes) override {
    if (size_bytes < kHugePageBytes) return std::aligned_alloc(kAlignmentBytes, size_bytes);
    const std::size_t rounded = (size_bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    void* block = std::aligned_alloc(kHugePageBytes, rounded);
    if (block != nullptr) madvise(block, size_bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
    return block;
  }
  void release(void* block, std::size_t /*size_bytes*/) noexcept override { std::free(block); }
};

}  // namespace

std::shared_ptr<threads::BlockPool> make_host_memory(std::size_t limit_bytes) {
  return std::make_shared<threads::BlockPool>(std::make_unique<HostSource>(), limit_bytes);
}

std::size_t physical_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace tandem::cpu
