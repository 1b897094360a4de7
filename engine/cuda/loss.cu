#include "engine/cuda/device_types.cuh"

namespace tandem::cuda {
namespace {

constexpr unsigned kWarp = 32, kWarps = 16, kAllLanes = 0xffffffff;

template <typename W>
struct Largest {
  W logit;
  std::int64_t at;
};

// Ties go to the first class.
template <typename W>
__device__ Largest<W> largest_of(Largest<W> mine) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    const Largest<W> other{__shfl_xor_sync(kAllLanes, mine.logit, distance),
                           __shfl_xor_sync(kAllLanes, mine.at, distance)};
    if (other.logit > mine.logit || (other.logit == mine.logit && other.at < mine.at)) mine = other;
  }
  return mine;
}

__device__ double sum_of(double mine) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(kAllLanes, mine, distance);
  }
  return mine;
}

struct RowLoss {
  double loss;
  bool is_correct;
};

// Shifting by the largest logit keeps every exponential within [0, 1]. The gradient may share the logits' memory: each
// lane writes only where it alone reads, after the label's logit is known.
template <typename T>
__device__ RowLoss row_loss(const T* logits, T* gradient, std::int64_t classes, std::int64_t label, double scale) {
  using W = Wide<T>;
  const unsigned lane = threadIdx.x % kWarp;
  Largest<W> largest{load(logits), 0};
  for (std::int64_t c = lane; c < classes; c += kWarp) {
    if (const W x = load(logits + c); x > largest.logit) largest = {x, c};
  }
  largest = largest_of(largest);
  const W shift = largest.logit, label_logit = load(logits + label);
  double sum = 0;
  for (std::int64_t c = lane; c < classes; c += kWarp) sum += exp(load(logits + c) - shift);
  sum = sum_of(sum);
  __syncwarp();
  if (gradient != nullptr) {
    const W factor = static_cast<W>(scale / sum);
    for (std::int64_t c = lane; c < classes; c += kWarp) {
      const W softmax = exp(load(logits + c) - shift) * factor;
      store(gradient + c, c == label ? softmax - static_cast<W>(scale) : softmax);
    }
  }
  return {log(sum) - static_cast<double>(label_logit - shift), largest.at == label};
}

// One block, so that the sum over rows has one order; a warp a row.
template <typename T, typename Count>
__global__ void loss_of_rows(LossArguments arguments, Fault* fault) {
  __shared__ double losses[kWarps];
  __shared__ long long hits[kWarps];
  const unsigned warp = threadIdx.x / kWarp;
  double loss = 0;
  long long correct = 0;
  for (std::int64_t row = warp; row < arguments.rows; row += kWarps) {
    const std::int64_t label = arguments.labels[row];
    if (label < 0 || label >= arguments.classes) {
      if (threadIdx.x % kWarp == 0) report(fault, Fault::label, row, label, arguments.classes);
      continue;
    }
    const std::int64_t first = row * arguments.classes;
    T* gradient = arguments.gradient == nullptr ? nullptr : static_cast<T*>(arguments.gradient) + first;
    const RowLoss result = row_loss(static_cast<const T*>(arguments.logits) + first, gradient, arguments.classes, label,
                                    arguments.gradient_scale);
    loss += result.loss;
    correct += result.is_correct ? 1 : 0;
  }
  if (threadIdx.x % kWarp == 0) {
    losses[warp] = loss;
    hits[warp] = correct;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i < kWarps; ++i) {
    losses[0] += losses[i];
    hits[0] += hits[i];
  }
  store(static_cast<T*>(arguments.loss), static_cast<Wide<T>>(arguments.loss_scale * losses[0]));
  if (arguments.correct != nullptr) store(static_cast<Count*>(arguments.correct), static_cast<Wide<Count>>(hits[0]));
}

template <typename T>
void launch_for(cudaStream_t stream, const LossArguments& arguments, Fault* fault) {
  with_type(arguments.correct_dtype,
            [&]<typename Count>() { start(loss_of_rows<T, Count>, 1, kWarps * kWarp, stream, arguments, fault); });
}

}  // namespace

void launch_loss(cudaStream_t stream, const LossArguments& arguments, Fault* fault) {
  switch (arguments.dtype) {
    case DType::f64:
      return launch_for<double>(stream, arguments, fault);
    case DType::f32:
      return launch_for<float>(stream, arguments, fault);
    case DType::f16:
      return launch_for<__half>(stream, arguments, fault);
    case DType::bf16:
      return launch_for<__nv_bfloat16>(stream, arguments, fault);
    default:
      throw RunError("softmax_cross_entropy of integers");
  }
}

}  // namespace tandem::cuda
