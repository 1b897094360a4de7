#include "engine/cuda/collectives/copied_collectives.h"

#include <vector>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/kernels/launch_turn.h"

namespace tandem::cuda {
namespace {

Arithmetic arithmetic_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return Arithmetic::add;
    case Reduction::maximum:
      return Arithmetic::maximum;
    case Reduction::minimum:
      return Arithmetic::minimum;
  }
  TANDEM_UNREACHABLE("a Reduction outside its enumerators");
}

// Memory and the GPU it is on.
struct Part {
  std::byte* at = nullptr;
  int gpu = 0;
};

// Blocks that are allocated and freed in a stream's order.
class StagedBlocks {
 public:
  explicit StagedBlocks(cudaStream_t stream) : stream_(stream) {}
  ~StagedBlocks() {
    for (void* block : blocks_) cudaFreeAsync(block, stream_);
  }
  StagedBlocks(const StagedBlocks&) = delete;
  StagedBlocks& operator=(const StagedBlocks&) = delete;

  std::byte* take(std::size_t bytes) {
    blocks_.reserve(blocks_.size() + 1);
    void* block = nullptr;
    check(cudaMallocAsync(&block, bytes, stream_), "cudaMallocAsync", "a collective");
    blocks_.push_back(block);
    return static_cast<std::byte*>(block);
  }

 private:
  const cudaStream_t stream_;
  std::vector<void*> blocks_;
};

// The part of a call that one rank's stream executes.
class Share {
 public:
  Share(const threads::CollectiveCall& call, int rank)
      : call_(call), rank_(rank), gpu_(place_of(call.output(rank))), use_(gpu_), stream_(stream_of(call, rank)) {}

  static cudaStream_t stream_of(const threads::CollectiveCall& call, int rank) {
    return static_cast<CudaStream&>(call.stream(rank)).gpu_stream();
  }

  void issue() {
    const CollectiveSpec& spec = call_.spec();
    const std::int64_t begin = spec.count * rank_ / call_.ranks(), end = spec.count * (rank_ + 1) / call_.ranks();
    switch (spec.kind) {
      case CollectiveKind::all_reduce:
        return reduce_from(rank_, begin, begin, end - begin, every_rank());
      case CollectiveKind::reduce:
        return reduce_from(spec.root, begin, begin, end - begin, {spec.root});
      case CollectiveKind::reduce_scatter:
        return reduce_from(rank_, spec.count * rank_, 0, spec.count, {rank_});
      case CollectiveKind::all_gather:
        for (int rank = 0; rank < call_.ranks(); ++rank) {
          copy(output(rank, spec.count * rank_), input(rank_, 0), spec.count);
        }
        return;
      case CollectiveKind::all_to_all:
        for (int rank = 0; rank < call_.ranks(); ++rank) {
          copy(output(rank, spec.count * rank_), input(rank_, spec.count * rank), spec.count);
        }
        return;
      case CollectiveKind::broadcast:
        return copy(output(rank_, 0), input(spec.root, 0), spec.count);
      case CollectiveKind::send_receive:
        if (rank_ == 1) copy(output(1, 0), input(0, 0), spec.count);
        return;
    }
  }

 private:
  std::vector<int> every_rank() const {
    std::vector<int> ranks;
    for (int step = 0; step < call_.ranks(); ++step) ranks.push_back((rank_ + step) % call_.ranks());
    return ranks;
  }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * size_of(call_.spec().dtype); }
  Part input(int rank, std::int64_t first) const { return part(call_.input(rank), first); }
  Part output(int rank, std::int64_t first) const { return part(call_.output(rank), first); }
  Part part(const Tensor& tensor, std::int64_t first) const {
    return {static_cast<std::byte*>(tensor.data()) + bytes(first), place_of(tensor)};
  }

  void copy(Part to, Part from, std::int64_t count) const {
    if (to.at == from.at || count == 0) return;
    copy_memory(to.at, to.gpu, from.at, from.gpu, bytes(count), stream_, "a collective");
  }

  // Adds the contributions at `in_first` of the inputs, in ring order from `owner`, and stores the result at
  // `out_first` of the outputs of `to_ranks`. Operands on other GPUs are staged in memory of this one.
  void reduce_from(int owner, std::int64_t in_first, std::int64_t out_first, std::int64_t count,
                   const std::vector<int>& to_ranks) const {
    if (count == 0) return;
    StagedBlocks staged(stream_);
    const auto stage = [&] { return Part{staged.take(bytes(count)), gpu_}; };
    std::vector<const void*> inputs;
    for (int step = 0; step < call_.ranks(); ++step) {
      Part from = input((owner + step) % call_.ranks(), in_first);
      if (from.gpu != gpu_) {
        const Part here = stage();
        copy(here, from, count);
        from = here;
      }
      inputs.push_back(from.at);
    }
    std::vector<Part> here, elsewhere;
    for (const int rank : to_ranks) {
      const Part to = output(rank, out_first);
      (to.gpu == gpu_ && here.size() < kMaxReducedRanks ? here : elsewhere).push_back(to);
    }
    if (here.empty()) here.push_back(stage());
    reduce(inputs, here, count);
    for (const Part to : elsewhere) copy(to, here.front(), count);
  }

  // Launches the kernel with as many inputs as it accepts, until all are added. The first result holds the sum so far
  // and may be the first input's memory; the last launch writes all results.
  void reduce(const std::vector<const void*>& inputs, const std::vector<Part>& results, std::int64_t count) const {
    std::size_t next = 0;
    while (next < inputs.size()) {
      ReduceArguments arguments{};
      if (next > 0) arguments.inputs[arguments.ranks++] = results.front().at;
      while (next < inputs.size() && arguments.ranks < kMaxReducedRanks) {
        arguments.inputs[arguments.ranks++] = inputs[next++];
      }
      const std::size_t copies = next == inputs.size() ? results.size() : 1;
      for (std::size_t i = 0; i < copies; ++i) arguments.outputs[arguments.copies++] = results[i].at;
      launch_reduce(stream_, call_.spec().dtype, arithmetic_of(call_.spec().reduction), arguments, count);
      check(cudaGetLastError(), "a kernel's launch", "a collective");
    }
  }

  const threads::CollectiveCall& call_;
  const int rank_;
  const int gpu_;
  const UseGpu use_;
  const cudaStream_t stream_;
};

// Makes the later work of every rank wait for the work of all ranks so far.
void meet(const threads::CollectiveCall& call) {
  cudaStream_t lead = Share::stream_of(call, 0);
  const auto events = [&](int rank) -> EventPool& {
    return static_cast<CudaDevice&>(call.device(rank)).gpu().events();
  };
  for (int rank = 1; rank < call.ranks(); ++rank) {
    const auto ready = events(rank).record(Share::stream_of(call, rank), Timing::none);
    check(cudaStreamWaitEvent(lead, ready->handle(), 0), "cudaStreamWaitEvent", "a collective");
  }
  const auto all = events(0).record(lead, Timing::none);
  for (int rank = 1; rank < call.ranks(); ++rank) {
    check(cudaStreamWaitEvent(Share::stream_of(call, rank), all->handle(), 0), "cudaStreamWaitEvent", "a collective");
  }
}

}  // namespace

void CopiedCollectives::execute(const threads::CollectiveCall& call) {
  const LaunchTurn turn;  // for the staged blocks, and the kernels of a GPU that loads them
  meet(call);
  for (int rank = 0; rank < call.ranks(); ++rank) Share(call, rank).issue();
  meet(call);
}

}  // namespace tandem::cuda
