#include "engine/cuda/kernels/row_groups.cuh"

namespace tandem::cuda {
namespace {

// The loss and the correct rows of those that one group of threads has taken, in their order.
struct PartOfLoss {
  double loss;
  long long correct;
};

// Shifting by the largest logit keeps every exponential within [0, 1]. The gradient may share the logits' memory: each
// lane writes only where it alone reads, after the label's logit is known.
template <typename T, typename Group>
__device__ PartOfLoss row_loss(const T* logits, T* gradient, std::int64_t classes, std::int64_t label, double scale) {
  using W = Wide<T>;
  Largest<W> largest{load(logits), 0};
  for (std::int64_t c = Group::lane(); c < classes; c += Group::kThreads) {
    if (const W x = load(logits + c); x > largest.logit) largest = {x, c};
  }
  largest = Group::largest_of(largest);
  const W shift = largest.logit, label_logit = load(logits + label);
  double sum = 0;
  for (std::int64_t c = Group::lane(); c < classes; c += Group::kThreads) sum += exp(load(logits + c) - shift);
  sum = Group::sum_of(sum);
  Group::meet();
  if (gradient != nullptr) {
    const W factor = static_cast<W>(scale / sum);
    for (std::int64_t c = Group::lane(); c < classes; c += Group::kThreads) {
      const W softmax = exp(load(logits + c) - shift) * factor;
      store(gradient + c, c == label ? softmax - static_cast<W>(scale) : softmax);
    }
  }
  return {log(sum) - static_cast<double>(label_logit - shift), largest.at == label ? 1 : 0};
}

// Each group takes every `groups`-th row, so that equal inputs give equal sums.
template <typename T, typename Group>
__global__ void __launch_bounds__(kRowThreads, 1)
    loss_of_rows(LossArguments arguments, PartOfLoss* parts, Fault* fault) {
  PartOfLoss part{0, 0};
  for (std::int64_t row = first_row<Group>(); row < arguments.rows; row += row_step<Group>()) {
    const std::int64_t label = arguments.labels[row];
    if (label < 0 || label >= arguments.classes) {
      if (Group::lane() == 0) report(fault, Fault::label, row, label, arguments.classes);
      continue;
    }
    const std::int64_t first = row * arguments.classes;
    T* gradient = arguments.gradient == nullptr ? nullptr : static_cast<T*>(arguments.gradient) + first;
    const PartOfLoss one = row_loss<T, Group>(static_cast<const T*>(arguments.logits) + first, gradient,
                                              arguments.classes, label, arguments.gradient_scale);
    part.loss += one.loss;
    part.correct += one.correct;
    Group::meet();
  }
  if (Group::lane() == 0) parts[first_row<Group>()] = part;
}

// One block, which adds the parts in their order.
template <typename T, typename Count>
__global__ void __launch_bounds__(kThreads)
    add_parts(LossArguments arguments, const PartOfLoss* parts, std::int64_t count) {
  __shared__ PartOfLoss sums[kThreads];
  PartOfLoss sum{0, 0};
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    sum.loss += parts[i].loss;
    sum.correct += parts[i].correct;
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sums[threadIdx.x].loss += sums[threadIdx.x + half].loss;
      sums[threadIdx.x].correct += sums[threadIdx.x + half].correct;
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  store(static_cast<T*>(arguments.loss), static_cast<Wide<T>>(arguments.loss_scale * sums[0].loss));
  if (arguments.correct != nullptr) {
    store(static_cast<Count*>(arguments.correct), static_cast<Wide<Count>>(sums[0].correct));
  }
}

template <typename T>
void launch_for(cudaStream_t stream, const Scratch& scratch, const LossArguments& arguments, Fault* fault) {
  constexpr std::int64_t kMostBlocks = 1024;
  if (scratch.at == nullptr) throw RunError("softmax_cross_entropy: no memory for the parts of its sum");
  auto* parts = static_cast<PartOfLoss*>(scratch.at);
  const auto room = static_cast<std::int64_t>(scratch.bytes / sizeof(PartOfLoss)) / kWarpsOfBlock;
  const bool is_long = arguments.classes > kLongRow;
  const std::int64_t groups_of_block = is_long ? 1 : kWarpsOfBlock;
  std::int64_t blocks = (arguments.rows + groups_of_block - 1) / groups_of_block;
  if (blocks > kMostBlocks) blocks = kMostBlocks;
  if (blocks > room) blocks = room;
  if (blocks < 1) blocks = 1;  // also of no rows, whose loss is 0
  if (is_long) {
    start(loss_of_rows<T, BlockOfRow>, static_cast<unsigned>(blocks), kRowThreads, stream, arguments, parts, fault);
  } else {
    start(loss_of_rows<T, WarpOfRow>, static_cast<unsigned>(blocks), kWarpsOfBlock * kWarp, stream, arguments, parts,
          fault);
  }
  with_type(arguments.correct_dtype, [&]<typename Count>() {
    start(add_parts<T, Count>, 1, kThreads, stream, arguments, parts, blocks * groups_of_block);
  });
}

}  // namespace

void launch_loss(cudaStream_t stream, const Scratch& scratch, const LossArguments& arguments, Fault* fault) {
  switch (arguments.dtype) {
    case DType::f64:
      return launch_for<double>(stream, scratch, arguments, fault);
    case DType::f32:
      return launch_for<float>(stream, scratch, arguments, fault);
    case DType::f16:
      return launch_for<__half>(stream, scratch, arguments, fault);
    case DType::bf16:
      return launch_for<__nv_bfloat16>(stream, scratch, arguments, fault);
    default:
      throw RunError("softmax_cross_entropy of integers");
  }
}

}  // namespace tandem::cuda
