// Computes how long work takes on one kind of device: from its measured curves where it has any; otherwise on a GPU of
// known architecture from the model of its kernels (kernel_costs.h), and on any other device from the roofline of
// Williams et al. (Communications of the ACM 52(4), 2009) over the figures of its model.
//
// All times are seconds of one undivided core (CPU) or of the whole device (GPU), without op_overhead_s.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/op.h"
#include "engine/sim/base/notes.h"
#include "engine/sim/costs/kernel_costs.h"
#include "engine/sim/costs/rate_curves.h"

namespace tandem::sim {

// How a run uses a node.
struct NodeUse {
  int concurrency = 1;  // logical devices on the node; selects the curves measured with the nearest number
  double waiting = 1;   // how much longer kernels take as devices wait for one another in every step (slowest_device.h)
  bool is_gpu = false;  // computes the products of a batch together, as one product with as many rows
  bool graphs = false;  // kernels go as CUDA graphs, where the model says what that costs
  bool records = true;  // each op that goes by itself leaves a record
};

class DeviceCosts {
 public:
  DeviceCosts(std::shared_ptr<const DeviceModel> model, const NodeUse& node_use, Notes& notes);

  // Each throws an ImpossibleError that names the model if it has no rate for the work, for example for the op's
  // element type.
  // `in_use_bytes`: the memory that the node's devices have in use together; 0: not known.
  double op_s(const Op& op, double in_use_bytes = 0) const;
  // The bytes that a product reads, if they are few enough to be kept in a cache; else 0.
  static double small_operand_bytes(const Op& op);
  double copy_s(double bytes) const;  // inside the device's memory
  // The least time that an op with its overhead, or a copy, takes even with the node to itself; 0: no such bound.
  // Curves measured with more devices than cores describe the whole node, which a single device may not be able to use
  // up; the bound comes from the curves for as many devices as cores.
  double op_alone_s(const Op& op, double in_use_bytes = 0) const {
    return alone_ ? alone_->op_overhead_of(op) + alone_->op_s(op, in_use_bytes) : 0;
  }
  double copy_alone_s(double bytes) const { return alone_ ? alone_->copy_s(bytes) : 0; }
  // The time of a copy that has the node to itself.
  double undisturbed_copy_s(double bytes) const {
    return copies_occupy() ? std::max(copy_s(bytes), copy_alone_s(bytes)) : copy_s(bytes);
  }
  // The time of work that reads and writes `bytes` in total, such as the reduction inside a collective.
  double memory_s(double bytes) const;

  // The factor by which ops take longer while a collective runs on the device.
  double slowdown_by_collectives() const;

  double launch_overhead_s() const { return shared(launch_overhead_s_, model_->launch_overhead_s, "launch overhead"); }
  double op_overhead_s() const { return shared(op_overhead_s_, model_->op_overhead_s, "op overhead"); }
  // The overheads of this op, in a graph or by itself.
  double launch_overhead_of(const Op& op) const;
  double op_overhead_of(const Op& op) const;
  double record_overhead_of(const Op& op) const { return goes_in_graph(op) ? 0 : record_overhead_s_; }
  // The time until a thread that sleeps begins with work that is given to it.
  double wake_up_s() const {
    use(&model_->wake_up_s);
    return model_->wake_up_s.value;
  }
  // The same for a thread that takes over the core of one that blocks, and on a core that has been idle for so long.
  double wake_call_s() const {
    use(&model_->wake_call_s);
    return model_->wake_call_s.value;
  }
  double hand_over_s() const {
    use(&model_->hand_over_s);
    return model_->hand_over_s.value > 0 ? model_->hand_over_s.value : synchronize_s();
  }
  double wake_up_s(double idle_s) const;
  // The host time to take elements of so many bytes from a dataset; 0 where the model does not say what an element
  // costs.
  double input_s(std::int64_t elements, double bytes) const;
  double memory_bytes() const {
    use(&model_->memory_bytes);
    return model_->memory_bytes.value;
  }
  double synchronize_s() const { return known(model_->synchronize_s, "synchronisation time"); }
  const DeviceModel& model() const { return *model_; }
  bool copies_occupy() const {
    use(&model_->copy_engines);
    return model_->copy_engines == 0;
  }

  // Adds what has decided a time so far, as Timeline::consulted names it, since the last forget_consulted().
  void add_consulted(std::set<std::string>& inputs) const;
  // All but the size of the memory, which is a limit at any time.
  void forget_consulted() const {
    std::erase_if(used_, [this](const void* member) { return member != &model_->memory_bytes; });
  }

 private:
  struct Curves {
    GemmSurface gemm;
    RateCurve memory;
    RateCurve copy;
    double gemm_launch_s = 0;
    std::map<std::string, RateCurve, std::less<>> kernels{};
  };
  // What decides the time of a product, a convolution or a part of attention.
  struct ShapedKernel {
    KernelShape shape;
    double bytes = 0;
    DType dtype = DType::f32;
    bool operator==(const ShapedKernel&) const = default;
  };
  struct HashOfKernel {
    std::size_t operator()(const ShapedKernel& kernel) const;
  };
  double kernel_s(const Op& op) const;
  double undisturbed_kernel_s(const Op& op) const;
  double shaped_kernel_s(const ShapedKernel& kernel) const;
  KernelRate kernel_rate(DType dtype) const;
  double sustained(DType dtype) const;  // the share of the rate of products that lasts
  double gemm_s(const ProductShape& product, const OpCost& cost) const;
  double usual_op_s(const Op& op) const;
  double late_s(const Op& op, double usual_s, double in_use_bytes) const;
  double in_use_rate(double InUseRates::*rate, double in_use_bytes) const;
  // The curve of the op's kernel, where it was measured by itself; null otherwise.
  const RateCurve* own_curve(const Op& op) const;
  double flops_s(const OpCost& cost) const;
  double peak_flops_s(const OpCost& cost) const;
  const Figure& peak_rate(DType dtype) const;
  double curve_s(const RateCurve& curve, double bytes, const char* what) const;
  double memory_s(double bytes, DType dtype) const;
  double memory_bandwidth() const;
  double known(const Figure& figure, const char* what) const;
  double shared(double measured, const Figure& alone, const char* what) const {
    return measured > 0 ? measured : known(alone, what);
  }
  const Curves* curves(DType dtype) const;
  void note_beyond(const char* what) const;
  void note_model() const;
  void note_small() const;
  bool goes_in_graph(const Op& op) const;
  // Remembers that this member of the model, or of this object, has decided a time.
  void use(const void* member) const {
    if (std::find(used_.begin(), used_.end(), member) == used_.end()) used_.push_back(member);
  }

  std::shared_ptr<const DeviceModel> model_;
  std::vector<WakeUp> wake_ups_;        // in rising order of idle times; never empty
  std::vector<InUseRates> in_use_;      // for the nearest number of devices, by rising bytes
  std::unique_ptr<DeviceCosts> alone_;  // with as many devices as cores; null where that makes no difference
  std::map<DType, Curves> curves_;
  std::optional<KernelCosts> kernels_;  // of a GPU of known architecture, without measured curves
  double waiting_;
  bool is_gpu_;
  double op_overhead_s_ = 0;  // at this concurrency; 0: not measured
  double launch_overhead_s_ = 0;
  double record_overhead_s_ = 0;
  double graph_op_overhead_s_ = 0, graph_launch_overhead_s_ = 0;
  bool has_graphs_ = false;  // and the model knows what they cost
  Notes& notes_;
  mutable std::set<const Figure*> noted_;                                          // the assumed figures used so far
  mutable std::vector<const void*> used_;                                          // members: see use()
  mutable std::unordered_map<ShapedKernel, double, HashOfKernel> shaped_kernels_;  // seconds; never iterated
  mutable bool is_model_noted_ = false, is_small_noted_ = false, depends_on_layout_ = false;
};

}  // namespace tandem::sim
