#include "scenarios/calibration/slower_devices.h"

namespace tandem {
namespace {

void scale(Figure& figure, double factor, const std::string& source) {
  if (figure.value <= 0) return;
  figure = {.value = figure.value * factor, .provenance = Provenance::measured, .source = source, .date = ""};
}

DeviceModel slower(DeviceModel model, double factor, const std::string& source) {
  for (auto& [dtype, peak] : model.peak_flops_per_s) scale(peak, 1 / factor, source);
  scale(model.memory_bandwidth_bytes_per_s, 1 / factor, source);
  scale(model.boost_clock_hz, 1 / factor, source);
  scale(model.memory_latency_s, factor, source);
  scale(model.op_overhead_s, factor, source);
  for (InUseRates& rates : model.in_use) {
    rates.memory_bytes_per_s /= factor;
    rates.copy_many_bytes_per_s /= factor;
  }
  for (DeviceRates& rates : model.rates) {
    rates.op_overhead_s *= factor;
    for (GemmSample& sample : rates.gemm) sample.flops_per_s /= factor;
    for (RateSample& sample : rates.memory) sample.bytes_per_s /= factor;
    for (RateSample& sample : rates.copy) sample.bytes_per_s /= factor;
    for (auto& [name, samples] : rates.kernels) {
      for (RateSample& sample : samples) sample.bytes_per_s /= factor;
    }
  }
  return model;
}

}  // namespace

DeviceType fitted_type(const Topology& topology) {
  for (NodeIndex i = 0; i < topology.node_count(); ++i) {
    if (topology.node(i).kind == NodeKind::gpu) return DeviceType::gpu;
  }
  return DeviceType::cpu;
}

Topology with_slower_devices(const Topology& topology, double factor, const std::string& source) {
  Topology result = topology;
  const NodeKind kind = fitted_type(topology) == DeviceType::gpu ? NodeKind::gpu : NodeKind::cpu;
  result.replace_devices([&](NodeKind of, const DeviceModel& model) {
    return of == kind ? std::make_shared<const DeviceModel>(slower(model, factor, source)) : nullptr;
  });
  return result;
}

}  // namespace tandem
