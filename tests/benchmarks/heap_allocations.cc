// Counts allocations of exact_counters.h. In a file of its own, because GCC warns where it inlines these into
// containers.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tandem {
namespace {

constinit thread_local std::int64_t allocations_of_thread = 0;

void* counted(void* memory) {
  ++allocations_of_thread;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

std::int64_t heap_allocations() {
  return allocations_of_thread;
}

}  // namespace tandem

// Those for arrays and those that do not throw call these.
void* operator new(std::size_t size) {
  return tandem::counted(std::malloc(std::max<std::size_t>(size, 1)));
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return tandem::counted(std::aligned_alloc(unit, std::max<std::size_t>((size + unit - 1) / unit, 1) * unit));
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
