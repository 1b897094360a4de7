#include "scenarios/fitting/device_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "topologies/base/units.h"

namespace tandem::calibration {
namespace {

constexpr double kAcceptedShare = 1.05;
// Winograd's F(4x4, 3x3) multiplies 36 numbers where the definition multiplies 144. Libraries use it on ordinary
// multiply-add units.
constexpr double kWinogradShare = 0.25;
// Operands of smaller ops may stay in a cache: the largest of a GPU, that of an MI300X, has 256 MiB.
constexpr double kLargestCache_bytes = 256.0 * 1024 * 1024;

}  // namespace

LeastWork least_work_of(const WorkloadSettings& workload, const Timeline& timeline, int step) {
  LeastWork work;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::op || record.step != step) continue;
    work.flops += record.flops / workload.batch;
    if (record.bytes > kLargestCache_bytes) work.bytes += record.bytes / workload.batch;
  }
  const auto* layers = std::get_if<LayersSettings>(&workload.kind);
  if (layers == nullptr) return work;
  work.dtype = layers->quantised == Quantised::none ? layers->dtype : layers->quantised_rate();
  const auto is_convolution = [](const Layer& layer) { return layer.convolution.has_value(); };
  const bool convolves = std::any_of(layers->model.layers.begin(), layers->model.layers.end(), is_convolution);
  if (convolves && size_of(work.dtype) >= 4 && work.dtype != DType::tf32) work.flops *= kWinogradShare;
  return work;
}

std::optional<std::string> contradiction_of(const LeastWork& work, double per_second, const DeviceModel& device) {
  const auto peak = device.peak_flops_per_s.find(work.dtype);
  const double flops = work.flops * per_second;
  if (peak != device.peak_flops_per_s.end() && peak->second.value > 0 && flops > kAcceptedShare * peak->second.value) {
    return fmt::format("would need {} in {}, and the peak of '{}' is {}",
                       format_quantity(flops, Dimension::flops_per_second), name_of(work.dtype), device.name,
                       format_quantity(peak->second.value, Dimension::flops_per_second));
  }
  const double bytes = work.bytes * per_second;
  const double bandwidth = device.memory_bandwidth_bytes_per_s.value;
  if (bandwidth <= 0 || bytes <= kAcceptedShare * bandwidth) return {};
  return fmt::format("would need {} of memory, and that of '{}' has {}",
                     format_quantity(bytes, Dimension::bytes_per_second), device.name,
                     format_quantity(bandwidth, Dimension::bytes_per_second));
}

}  // namespace tandem::calibration
