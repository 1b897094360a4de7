// The keys of the figures in topology files, by which Timeline::consulted names what decided a time.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "topologies/topology.h"

namespace tandem {

inline constexpr std::array<std::pair<std::string_view, Figure DeviceModel::*>, 17> kDeviceFigures{{
    {"memory_bandwidth", &DeviceModel::memory_bandwidth_bytes_per_s},
    {"memory", &DeviceModel::memory_bytes},
    {"boost_clock", &DeviceModel::boost_clock_hz},
    {"memory_latency", &DeviceModel::memory_latency_s},
    {"launch_overhead", &DeviceModel::launch_overhead_s},
    {"op_overhead", &DeviceModel::op_overhead_s},
    {"synchronize", &DeviceModel::synchronize_s},
    {"graph_launch_overhead", &DeviceModel::graph_launch_overhead_s},
    {"graph_op_overhead", &DeviceModel::graph_op_overhead_s},
    {"wake_up", &DeviceModel::wake_up_s},
    {"wake_call", &DeviceModel::wake_call_s},
    {"hand_over", &DeviceModel::hand_over_s},
    {"input_element", &DeviceModel::input_element_s},
    {"collective_slowdown", &DeviceModel::collective_slowdown},
    {"gemm_efficiency", &DeviceModel::gemm_efficiency},
    {"sustained", &DeviceModel::sustained},
    {"sustained_quantised", &DeviceModel::sustained_quantised},
}};

inline constexpr std::array<std::pair<std::string_view, Figure LinkModel::*>, 6> kLinkFigures{{
    {"bandwidth", &LinkModel::bandwidth_bytes_per_s},
    {"latency", &LinkModel::latency_s},
    {"hop_latency", &LinkModel::hop_latency_s},
    {"advertised_latency", &LinkModel::advertised_latency_s},
    {"remote_call", &LinkModel::remote_call_s},
    {"remote_call_bandwidth", &LinkModel::remote_call_bytes_per_s},
}};

// The end of such a name where it decided only times before the first step.
inline constexpr std::string_view kBeforeSteps = ", before the first step";

// The id of the models of links between the switches of a generated fabric.
inline constexpr std::string_view kUplink = "uplink";

// Returns whether `key` is a figure or property of a device or link model: "latency", "peak_flops.bf16".
inline bool is_figure_key(std::string_view key) {
  const auto is_named = [key](const auto& entry) { return entry.first == key; };
  static constexpr std::array<std::string_view, 8> kOthers{"architecture",    "copy_engines", "cores",     "in_use",
                                                           "multiprocessors", "rates",        "transport", "wake_ups"};
  return std::any_of(kDeviceFigures.begin(), kDeviceFigures.end(), is_named) ||
         std::any_of(kLinkFigures.begin(), kLinkFigures.end(), is_named) || key.starts_with("peak_flops.") ||
         std::find(kOthers.begin(), kOthers.end(), key) != kOthers.end();
}

}  // namespace tandem
