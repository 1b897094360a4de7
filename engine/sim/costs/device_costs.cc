#include "engine/sim/costs/device_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "engine/kernel_operands.h"
#include "engine/sim/costs/kernel_constants.h"
#include "engine/sim/costs/kernel_errors.h"
#include "engine/sim/costs/matrix_units.h"
#include "engine/sim/costs/measured_kernels.h"
#include "topologies/base/portable_math.h"
#include "topologies/figures.h"

namespace tandem::sim {
namespace {

// Returns whether `candidate` was measured with a number of devices nearer to `concurrency`. If two are equally near,
// the larger number counts as nearer.
bool is_nearer(const DeviceRates& candidate, const DeviceRates& chosen, int concurrency) {
  const int distance = std::abs(candidate.concurrency - concurrency);
  const int best = std::abs(chosen.concurrency - concurrency);
  return distance < best || (distance == best && candidate.concurrency > chosen.concurrency);
}

constexpr int kLeastImages = 64;

std::optional<KernelCosts> kernel_costs_of(const DeviceModel& model) {
  const double bandwidth = model.memory_bandwidth_bytes_per_s.value;
  if (model.architecture.empty() || model.multiprocessors <= 0 || bandwidth <= 0 || !model.rates.empty()) return {};
  return KernelCosts({.multiprocessors = model.multiprocessors,
                      .clock_hz = model.boost_clock_hz.value,
                      .memory_bandwidth = bandwidth,
                      .memory_latency_s = model.memory_latency_s.value});
}

// Nothing for what is no product of matrices.
std::optional<ProductShape> product_of(const Kernel& kernel) {
  if (const auto* one = std::get_if<kernel::Gemm>(&kernel)) return ProductShape{.m = one->m, .n = one->n, .k = one->k};
  if (const auto* many = std::get_if<kernel::BatchedGemm>(&kernel)) {
    return ProductShape{.m = many->m, .n = many->n, .k = many->k, .count = many->count};
  }
  return {};
}

}  // namespace

DeviceCosts::DeviceCosts(std::shared_ptr<const DeviceModel> model, const NodeUse& node_use, Notes& notes)
    : model_(std::move(model)),
      wake_ups_(model_->wake_ups),
      kernels_(kernel_costs_of(*model_)),
      waiting_(node_use.waiting),
      is_gpu_(node_use.is_gpu),
      notes_(notes) {
  const int concurrency = node_use.concurrency;
  const auto is_later = [](const WakeUp& sample) { return sample.idle_s > kWakeUpIdleS; };
  wake_ups_.insert(std::find_if(wake_ups_.begin(), wake_ups_.end(), is_later),
                   {.idle_s = kWakeUpIdleS, .time_s = model_->wake_up_s.value});
  if (!model_->rates.empty() && concurrency > model_->cores) {
    NodeUse alone = node_use;
    alone.concurrency = model_->cores;
    alone.waiting = 1;
    alone_ = std::make_unique<DeviceCosts>(model_, alone, notes);
  }
  int devices = 0;  // the nearest number of them
  for (const InUseRates& one : model_->in_use) {
    const int distance = std::abs(one.devices - concurrency), best = std::abs(devices - concurrency);
    if (devices == 0 || distance < best || (distance == best && one.devices > devices)) devices = one.devices;
  }
  std::ranges::copy_if(model_->in_use, std::back_inserter(in_use_),
                       [devices](const InUseRates& one) { return one.devices == devices; });
  std::map<DType, const DeviceRates*> nearest;
  for (const DeviceRates& rates : model_->rates) {
    const DeviceRates*& chosen = nearest[rates.dtype];
    if (chosen == nullptr || is_nearer(rates, *chosen, concurrency)) chosen = &rates;
  }
  for (const auto& [dtype, rates] : nearest) {
    Curves& curves = curves_[dtype];
    curves = {GemmSurface(rates->gemm), RateCurve(rates->memory), RateCurve(rates->copy),
              rates->gemm_launch_overhead_s};
    for (const auto& [name, samples] : rates->kernels) {
      if (!samples.empty()) curves.kernels.emplace(name, RateCurve(samples));
    }
    op_overhead_s_ = std::max(op_overhead_s_, rates->op_overhead_s);
    launch_overhead_s_ = std::max(launch_overhead_s_, rates->launch_overhead_s);
    if (node_use.records) record_overhead_s_ = std::max(record_overhead_s_, rates->record_overhead_s);
    graph_op_overhead_s_ = std::max(graph_op_overhead_s_, rates->graph_op_overhead_s);
    graph_launch_overhead_s_ = std::max(graph_launch_overhead_s_, rates->graph_launch_overhead_s);
  }
  const bool has_measured = graph_op_overhead_s_ > 0 || graph_launch_overhead_s_ > 0;
  const bool has_figures = model_->graph_op_overhead_s.value > 0 || model_->graph_launch_overhead_s.value > 0;
  has_graphs_ = node_use.graphs && (has_measured || has_figures);
  if (node_use.graphs && !has_graphs_) {
    notes_.add(fmt::format("graphs: '{}' does not say what ops of graphs cost, so they cost what single ones do",
                           model_->name));
  }
}

double DeviceCosts::op_s(const Op& op, double in_use_bytes) const {
  const double usual_s = usual_op_s(op);
  if (in_use_.empty() || in_use_bytes < in_use_.front().in_use_bytes) return usual_s;
  return usual_s + std::max(0.0, late_s(op, usual_s, in_use_bytes));
}

double DeviceCosts::usual_op_s(const Op& op) const {
  if (kernels_ && std::holds_alternative<kernel::Custom>(op.kernel) && op.cost.flops > 0) {
    return std::max(kernel_s(op), flops_s(op.cost));
  }
  if (kernels_ && !std::holds_alternative<kernel::HostFunction>(op.kernel)) return kernel_s(op);
  if (const std::optional<ProductShape> product = product_of(op.kernel)) return gemm_s(*product, op.cost);
  if (const RateCurve* own = own_curve(op)) return curve_s(*own, measured_bytes(op), "element-wise work");
  const double memory = memory_s(op.cost.bytes, op.cost.dtype);
  if (op.cost.flops <= 0) return memory;
  // Element-wise ops are bound by memory on every device that has a rate for their type; those of types without a rate
  // (counters, labels) cost their bytes, too.
  const bool is_free_form = is_function(op.kernel);
  if (!is_free_form && (curves(op.cost.dtype) != nullptr || !model_->peak_flops_per_s.contains(op.cost.dtype))) {
    return memory;
  }
  return std::max(flops_s(op.cost), memory);
}

const RateCurve* DeviceCosts::own_curve(const Op& op) const {
  const Curves* measured = curves(op.cost.dtype);
  if (measured == nullptr || measured->kernels.empty()) return nullptr;
  const auto found = measured->kernels.find(measured_name(op.kernel));
  return found == measured->kernels.end() ? nullptr : &found->second;
}

// The logarithm of the idle time is interpolated; beyond the samples, the nearest one holds.
double DeviceCosts::wake_up_s(double idle_s) const {
  use(&model_->wake_ups);
  const auto next = std::find_if(wake_ups_.begin(), wake_ups_.end(),
                                 [idle_s](const WakeUp& sample) { return sample.idle_s >= idle_s; });
  if (next == wake_ups_.begin()) return wake_ups_.front().time_s;
  if (next == wake_ups_.end()) return wake_ups_.back().time_s;
  const WakeUp& before = *std::prev(next);
  const double share = portable::log(idle_s / before.idle_s) / portable::log(next->idle_s / before.idle_s);
  return before.time_s + share * (next->time_s - before.time_s);
}

double DeviceCosts::input_s(std::int64_t elements, double bytes) const {
  use(&model_->input_element_s);
  if (model_->input_element_s.value <= 0) return 0;
  return static_cast<double>(elements) * model_->input_element_s.value + copy_s(bytes);
}

double DeviceCosts::kernel_s(const Op& op) const {
  use(&waiting_);
  return waiting_ * undisturbed_kernel_s(op);
}

// Returns the time of a kernel, including the part of its start that the device's own overhead does not cover.
double DeviceCosts::undisturbed_kernel_s(const Op& op) const {
  known(model_->memory_bandwidth_bytes_per_s, "memory bandwidth");
  use(&model_->memory_latency_s);
  use(&model_->multiprocessors);
  const KernelShape& shape = op.cost.shape;
  if (std::holds_alternative<ConvolutionShape>(shape) || std::holds_alternative<AttentionShape>(shape)) {
    return shaped_kernel_s({op.cost.shape, op.cost.bytes, op.cost.dtype});
  }
  if (const std::optional<ProductShape> product = product_of(op.kernel)) {
    const double kernels = op.cost.kernels;
    const KernelShape of_one = std::holds_alternative<ProductShape>(shape) ? shape : KernelShape(*product);
    return kernels * shaped_kernel_s({of_one, op.cost.bytes / kernels, op.cost.dtype}) +
           (kernels - 1) * op_overhead_s();
  }
  if (op.cost.bytes <= 0) return 0;
  const auto element_bytes = static_cast<double>(size_of(op.cost.dtype));
  const bool is_wide = op.cost.has_wide_loads && has_wide_loads(model_->architecture, op.cost.dtype);
  const double load_bytes = is_wide ? std::max(element_bytes, kernel_constants::kWideLoadBytes) : element_bytes;
  return kernels_->memory_s(op.cost.bytes, op.cost.kernels, load_bytes, op_overhead_s());
}

std::size_t DeviceCosts::HashOfKernel::operator()(const ShapedKernel& kernel) const {
  std::uint64_t hash = static_cast<std::uint64_t>(kernel.bytes) + static_cast<std::uint64_t>(kernel.dtype);
  const auto mix = [&hash](std::int64_t value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15;
  };
  if (const auto* product = std::get_if<ProductShape>(&kernel.shape)) {
    for (const std::int64_t value : {product->m, product->n, product->k, product->count}) mix(value);
  } else if (const auto* convolution = std::get_if<ConvolutionShape>(&kernel.shape)) {
    mix(static_cast<std::int64_t>(convolution->pass));
    for (const std::int64_t value :
         {convolution->images, convolution->height, convolution->in_channels, convolution->out_channels,
          convolution->kernel, convolution->stride, convolution->image_depth}) {
      mix(value);
    }
  } else if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape)) {
    for (const std::int64_t value : {attention->count, attention->queries, attention->keys, attention->head_size,
                                     std::int64_t{attention->makes_scores}}) {
      mix(value);
    }
  }
  return hash ^ (hash >> 32);
}

// A step launches the same kernels on every device, and the next step does so again.
double DeviceCosts::shaped_kernel_s(const ShapedKernel& kernel) const {
  const auto known_s = shaped_kernels_.find(kernel);
  if (known_s != shaped_kernels_.end()) return known_s->second;
  KernelRate rate = kernel_rate(kernel.dtype);
  use(&model_->boost_clock_hz);
  double seconds = 0;
  if (const auto* convolution = std::get_if<ConvolutionShape>(&kernel.shape)) {
    if (convolution->images < kLeastImages) note_small();
    depends_on_layout_ = depends_on_layout_ || rate.is_matrix_unit;
    seconds = kernels_->convolution_s(*convolution, rate, op_overhead_s());
  } else if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape)) {
    seconds = kernels_->attention_s(*attention, kernel.bytes, rate, op_overhead_s());
  } else {
    const auto& product = std::get<ProductShape>(kernel.shape);
    rate.product_share = product_share(model_->architecture, kernel.dtype, product.scales_blocks);
    if (rate.is_matrix_unit) rate.product_share *= sustained(kernel.dtype);
    seconds = kernels_->product_s(product, kernel.bytes, rate, op_overhead_s());
  }
  shaped_kernels_.emplace(kernel, seconds);
  return seconds;
}

double DeviceCosts::sustained(DType dtype) const {
  if (dtype == DType::fp8 || dtype == DType::fp4) {
    use(&model_->sustained_quantised);
    const Figure& quantised = model_->sustained_quantised;
    if (quantised.value > 0) return known(quantised, "sustained rate of quantised products");
  }
  use(&model_->sustained);
  return model_->sustained.value > 0 ? known(model_->sustained, "sustained rate") : 1;
}

// The efficiency that a device model states is that of its largest products on tensor cores.
KernelRate DeviceCosts::kernel_rate(DType dtype) const {
  use(&model_->architecture);
  const bool is_matrix_unit = has_matrix_units(model_->architecture, dtype);
  const double efficiency =
      is_matrix_unit ? known(model_->gemm_efficiency, "GEMM efficiency") : kernel_constants::kMultiplyAddEfficiency;
  note_model();
  return {.flops_per_s = known(peak_rate(dtype), "peak rate") * efficiency,
          .element_bytes = operand_bytes(dtype),
          .is_matrix_unit = is_matrix_unit,
          .has_wide_loads = has_wide_loads(model_->architecture, dtype),
          .product_share = product_share(model_->architecture, dtype)};
}

bool DeviceCosts::goes_in_graph(const Op& op) const {
  return has_graphs_ && !is_function(op.kernel);
}

double DeviceCosts::launch_overhead_of(const Op& op) const {
  if (!goes_in_graph(op)) {
    const Curves* measured = product_of(op.kernel) ? curves(op.cost.dtype) : nullptr;
    const bool has_own = measured != nullptr && measured->gemm_launch_s > 0;
    return has_own ? measured->gemm_launch_s : launch_overhead_s();
  }
  use(&has_graphs_);
  return shared(graph_launch_overhead_s_, model_->graph_launch_overhead_s, "launch overhead in graphs");
}

double DeviceCosts::op_overhead_of(const Op& op) const {
  if (!goes_in_graph(op)) return op_overhead_s();
  return shared(graph_op_overhead_s_, model_->graph_op_overhead_s, "op overhead in graphs");
}

double DeviceCosts::slowdown_by_collectives() const {
  if (model_->collective_slowdown.value > 0) return known(model_->collective_slowdown, "slow-down beside collectives");
  return kernels_ ? kernel_constants::kSlowdownByCollectives : 1;
}

double DeviceCosts::copy_s(double bytes) const {
  for (const auto& [dtype, measured] : curves_) {
    if (!measured.copy.empty()) return curve_s(measured.copy, bytes, "copies");
  }
  // Every byte is read once and written once.
  return bytes <= 0 ? 0 : 2 * bytes / memory_bandwidth();
}

double DeviceCosts::memory_s(double bytes) const {
  return memory_s(bytes, DType::f32);
}

double DeviceCosts::gemm_s(const ProductShape& product, const OpCost& cost) const {
  const Curves* measured = curves(cost.dtype);
  if (measured == nullptr || measured->gemm.empty()) {
    return std::max(peak_flops_s(cost), memory_s(cost.bytes, cost.dtype));
  }
  // A measured rate already includes the memory traffic of the op.
  const std::int64_t rows = is_gpu_ ? product.m * product.count : product.m;
  const RateAt rate =
      measured->gemm.at(static_cast<double>(rows), static_cast<double>(product.n), static_cast<double>(product.k));
  if (rate.is_extrapolated) note_beyond("matrix multiplications");
  return cost.flops / rate.per_s;
}

double DeviceCosts::flops_s(const OpCost& cost) const {
  const Curves* measured = curves(cost.dtype);
  if (measured != nullptr && !measured->gemm.empty()) return cost.flops / measured->gemm.largest_per_s();
  return peak_flops_s(cost);
}

double DeviceCosts::peak_flops_s(const OpCost& cost) const {
  const double peak = known(peak_rate(cost.dtype), "peak rate") * known(model_->gemm_efficiency, "GEMM efficiency");
  const bool is_quantised = cost.dtype == DType::fp8 || cost.dtype == DType::fp4;
  if (!is_quantised) return cost.flops / peak;
  const auto* product = std::get_if<ProductShape>(&cost.shape);
  const bool scales_blocks = product != nullptr && product->scales_blocks;
  return cost.flops / (peak * product_share(model_->architecture, cost.dtype, scales_blocks));
}

const Figure& DeviceCosts::peak_rate(DType dtype) const {
  const auto peak = model_->peak_flops_per_s.find(dtype);
  if (peak == model_->peak_flops_per_s.end() || peak->second.value <= 0) {
    const bool is_quantised = dtype == DType::fp8 || dtype == DType::fp4;
    throw ImpossibleError(fmt::format("device model '{}' has no {} rate: give it peak_flops for {} or calibrate it{}",
                                      model_->name, name_of(dtype), name_of(dtype),
                                      is_quantised ? "; without `precision`, products keep the workload's dtype" : ""));
  }
  return peak->second;
}

double DeviceCosts::memory_s(double bytes, DType dtype) const {
  if (bytes <= 0) return 0;
  const auto has_memory = [](const Curves* measured) { return measured != nullptr && !measured->memory.empty(); };
  const Curves* measured = curves(dtype);
  for (auto other = curves_.begin(); !has_memory(measured) && other != curves_.end(); ++other) {
    measured = &other->second;  // any type's will do: only bytes count
  }
  if (has_memory(measured)) return curve_s(measured->memory, bytes, "element-wise work");
  return bytes / memory_bandwidth();
}

double DeviceCosts::memory_bandwidth() const {
  const double bandwidth = known(model_->memory_bandwidth_bytes_per_s, "memory bandwidth");
  if (bandwidth > 0) return bandwidth;
  throw ImpossibleError(
      fmt::format("device model '{}' has no memory bandwidth: give it memory_bandwidth or calibrate it", model_->name));
}

double DeviceCosts::curve_s(const RateCurve& curve, double bytes, const char* what) const {
  if (bytes <= 0) return 0;
  const RateAt rate = curve.at(bytes);
  if (rate.is_extrapolated) note_beyond(what);
  return bytes / rate.per_s;
}

double DeviceCosts::known(const Figure& figure, const char* what) const {
  use(&figure);
  if (figure.provenance == Provenance::assumed && noted_.insert(&figure).second) {
    notes_.add(fmt::format("assumed: {} of '{}'", what, model_->name));
  }
  return figure.value;
}

void DeviceCosts::add_consulted(std::set<std::string>& inputs) const {
  const auto is_used = [this](const void* member) {
    return std::find(used_.begin(), used_.end(), member) != used_.end();
  };
  const auto add = [&](std::string_view key, const void* member) {
    if (is_used(member)) inputs.insert(fmt::format("{}.{}", model_->id, key));
  };
  for (const auto& [key, figure] : kDeviceFigures) add(key, &(model_.get()->*figure));
  for (const auto& [dtype, peak] : model_->peak_flops_per_s) add(fmt::format("peak_flops.{}", name_of(dtype)), &peak);
  add("copy_engines", &model_->copy_engines);
  add("multiprocessors", &model_->multiprocessors);
  add("architecture", &model_->architecture);
  add("rates", &curves_);
  add("in_use", &model_->in_use);
  if (is_used(&waiting_)) inputs.insert("work_spread");
  if (is_used(&has_graphs_)) inputs.insert("graphs");
  if (depends_on_layout_) inputs.insert("channels_last");
  if (alone_) alone_->add_consulted(inputs);
}

const DeviceCosts::Curves* DeviceCosts::curves(DType dtype) const {
  if (!curves_.empty()) use(&curves_);
  const auto found = curves_.find(dtype);
  return found == curves_.end() ? nullptr : &found->second;
}

void DeviceCosts::note_beyond(const char* what) const {
  notes_.add(fmt::format("extrapolated: {} on '{}' outside the measured sizes", what, model_->name));
}

void DeviceCosts::note_model() const {
  if (std::exchange(is_model_noted_, true)) return;
  notes_.add(fmt::format("modelled: kernel times of '{}' follow from its figures; {}", model_->name,
                         kernel_errors_text(model_->name)));
}

void DeviceCosts::note_small() const {
  if (std::exchange(is_small_noted_, true)) return;
  notes_.add(fmt::format("small: convolutions of fewer than {} images on a GPU are predicted too fast", kLeastImages));
}

}  // namespace tandem::sim
