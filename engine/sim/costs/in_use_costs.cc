// How much longer ops take on what was used a step ago.
#include <algorithm>
#include <iterator>

#include "engine/kernel_operands.h"
#include "engine/sim/costs/device_costs.h"
#include "topologies/base/portable_math.h"

namespace tandem::sim {

// Products of more were measured on operands that no cache holds: it is half of the memory through which theirs rotate.
double DeviceCosts::small_operand_bytes(const Op& op) {
  constexpr double kMost = 4 << 20;
  const auto* gemm = std::get_if<kernel::Gemm>(&op.kernel);
  if (gemm == nullptr) return 0;
  const double elements = static_cast<double>(gemm->m + gemm->n) * static_cast<double>(gemm->k);
  const double bytes = elements * static_cast<double>(size_of(gemm->a.dtype()));
  return bytes <= kMost ? bytes : 0;
}

// Returns how much longer an op takes because what it reads was used a step ago: updates of variables, copies of many
// tensors, and small products, whose operands are variables. Other ops work on what one before them has just made.
double DeviceCosts::late_s(const Op& op, double usual_s, double in_use_bytes) const {
  if (op.cost.bytes <= 0 || is_function(op.kernel)) return 0;
  if (std::holds_alternative<kernel::CopyMany>(op.kernel)) {
    return op.cost.bytes / in_use_rate(&InUseRates::copy_many_bytes_per_s, in_use_bytes) - usual_s;
  }
  const double rate = in_use_rate(&InUseRates::memory_bytes_per_s, in_use_bytes);
  if (const double operands = small_operand_bytes(op); operands > 0) {
    return operands / rate - memory_s(operands, op.cost.dtype);
  }
  return op.category == Category::update ? op.cost.bytes / rate - usual_s : 0;
}

// The logarithm of the bytes in use is interpolated; beyond the samples, the last one holds.
double DeviceCosts::in_use_rate(double InUseRates::*rate, double in_use_bytes) const {
  use(&model_->in_use);
  const auto next = std::find_if(in_use_.begin(), in_use_.end(),
                                 [&](const InUseRates& one) { return one.in_use_bytes >= in_use_bytes; });
  if (next == in_use_.begin()) return in_use_.front().*rate;
  if (next == in_use_.end()) return in_use_.back().*rate;
  const InUseRates& before = *std::prev(next);
  const double share =
      portable::log(in_use_bytes / before.in_use_bytes) / portable::log(next->in_use_bytes / before.in_use_bytes);
  return before.*rate + share * ((*next).*rate - before.*rate);
}

}  // namespace tandem::sim
