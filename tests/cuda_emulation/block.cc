#include "tests/cuda_emulation/block.h"

#include <ucontext.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/cuda_emulation/device_language.h"

// Each change by ucontext costs system calls, so that it is used for the first only. The compiler's own jumps do less
// than the C library's. Sanitizers follow no jumps.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TANDEM_EMULATION_JUMPS 0
#else
#define TANDEM_EMULATION_JUMPS 1
#endif

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace tandem::emulation {
namespace {

constexpr unsigned kWarp = 32, kMostThreads = 1024;
constexpr std::size_t kStackBytes = 64 << 10;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "emulated GPU: %s\n", what);
  std::abort();
}

// Where a piece of code was left.
class Place {
 public:
  ucontext_t& context() { return context_; }
  // Leaves this place for another; returns when this one is entered again.
  void leave_for(Place& other) {
#if TANDEM_EMULATION_JUMPS
    has_jumped_ = true;
    if (__builtin_setjmp(jump_) == 0) other.enter_again();
#else
    swapcontext(&context_, &other.context_);
#endif
  }

 private:
#if TANDEM_EMULATION_JUMPS
  // Not within leave_for(): a jump may not lead into the function that jumps.
  [[noreturn]] __attribute__((noinline)) void enter_again() {
    if (has_jumped_) __builtin_longjmp(jump_, 1);
    setcontext(&context_);
    std::abort();
  }

  void* jump_[5]{};
  bool has_jumped_ = false;
#endif
  ucontext_t context_{};
};

// Those who wait for each other, and how often all have come.
struct Meeting {
  unsigned arrived = 0, meetings = 0;
};

struct Fiber {
  Place place;
  std::unique_ptr<std::byte[]> stack{new std::byte[kStackBytes]};
  unsigned thread = 0;
  const Meeting* awaited = nullptr;  // null: none
  unsigned meetings = 0;             // until which it waits
  bool has_ended = true;
};

class Block {
 public:
  static Block& of_this_thread() {
    thread_local Block block;
    return block;
  }

  void run(unsigned threads, bool backwards, const std::function<void()>& body);
  void meet(Meeting& meeting, unsigned members);
  Meeting& whole() { return whole_; }
  Meeting& warp() { return warps_[fiber_->thread / kWarp]; }
  unsigned threads() const { return threads_; }
  unsigned thread() const { return fiber_->thread; }
  unsigned long long& slot(unsigned thread, bool second) { return slots_[thread][second ? 1 : 0]; }

 private:
  static void enter();
  void begin(Fiber& fiber);
  void resume(Fiber& fiber);
  void work_off();
  void set_thread(unsigned thread);
  bool pass_all_that_can();

  unsigned threads_ = 0, next_ = 0;
  bool backwards_ = false;
  const std::function<void()>* body_ = nullptr;
  Place scheduler_;
  std::vector<std::unique_ptr<Fiber>> fibers_;  // those before used_ are of this block
  std::size_t used_ = 0;
  Fiber* fiber_ = nullptr;  // that runs
  Meeting whole_;
  std::array<Meeting, kMostThreads / kWarp> warps_;
  std::array<std::array<unsigned long long, 2>, kMostThreads> slots_{};
};

void Block::set_thread(unsigned thread) {
  fiber_->thread = thread;
  threadIdx = {thread, 0, 0};
}

// As many threads as run without waiting take one fiber.
void Block::work_off() {
  while (next_ < threads_) {
    const unsigned thread = next_++;
    set_thread(backwards_ ? threads_ - 1 - thread : thread);
    (*body_)();
  }
  fiber_->has_ended = true;
}

void Block::enter() {
  Block& block = of_this_thread();
  for (;;) {
    block.work_off();
    block.fiber_->place.leave_for(block.scheduler_);
  }
}

void Block::begin(Fiber& fiber) {
  fiber.has_ended = false;
  fiber.awaited = nullptr;
}

void Block::resume(Fiber& fiber) {
  fiber_ = &fiber;
  threadIdx = {fiber.thread, 0, 0};
  scheduler_.leave_for(fiber.place);
}

bool Block::pass_all_that_can() {
  bool has_moved = false;
  for (std::size_t i = 0; i < used_; ++i) {
    Fiber& fiber = *fibers_[backwards_ ? used_ - 1 - i : i];
    if (fiber.has_ended || fiber.awaited->meetings < fiber.meetings) continue;
    resume(fiber);
    has_moved = true;
  }
  return has_moved;
}

void Block::run(unsigned threads, bool backwards, const std::function<void()>& body) {
  threads_ = threads;
  backwards_ = backwards;
  body_ = &body;
  next_ = 0;
  used_ = 0;
  whole_ = {};
  warps_ = {};
  while (next_ < threads_) {
    if (used_ == fibers_.size()) {
      Fiber& fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
      getcontext(&fiber.place.context());
      fiber.place.context().uc_stack = {.ss_sp = fiber.stack.get(), .ss_flags = 0, .ss_size = kStackBytes};
      makecontext(&fiber.place.context(), &Block::enter, 0);
    }
    Fiber& fiber = *fibers_[used_++];
    begin(fiber);
    resume(fiber);
  }
  while (pass_all_that_can()) {
  }
  for (std::size_t i = 0; i < used_; ++i) {
    if (!fibers_[i]->has_ended) fail("threads of a kernel wait for others that do not come");
  }
}

void Block::meet(Meeting& meeting, unsigned members) {
  if (++meeting.arrived == members) {
    meeting.arrived = 0;
    ++meeting.meetings;
    return;
  }
  fiber_->awaited = &meeting;
  fiber_->meetings = meeting.meetings + 1;
  fiber_->place.leave_for(scheduler_);
}

}  // namespace

void run_blocks(unsigned blocks, unsigned threads, const std::function<void()>& body) {
  if (threads > kMostThreads) fail("a block of too many threads");
  thread_local unsigned launches = 0;
  blockDim = {threads, 1, 1};
  gridDim = {blocks, 1, 1};
  for (unsigned block = 0; block < blocks; ++block) {
    blockIdx = {block, 0, 0};
    Block::of_this_thread().run(threads, (launches++ % 2) != 0, body);
  }
}

void synchronize_block() {
  Block& block = Block::of_this_thread();
  block.meet(block.whole(), block.threads());
}

void synchronize_warp() {
  Block& block = Block::of_this_thread();
  block.meet(block.warp(), kWarp);
}

// Two slots by turns: nobody comes to the next but one before all have read this one.
unsigned long long exchange(unsigned long long mine, unsigned mask) {
  Block& block = Block::of_this_thread();
  const bool second = block.warp().meetings % 2 != 0;
  block.slot(block.thread(), second) = mine;
  const unsigned partner = block.thread() ^ mask;
  synchronize_warp();
  return block.slot(partner, second);
}

}  // namespace tandem::emulation
