// The figures of a machine that decided a time and may be others than those that its file has.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

struct AssumedFigure {
  std::string key{};           // "hop_latency"
  std::string id{};            // of the model that has it
  std::string what{};          // "hop_latency of network efa"
  Figure figure{};             // as it is
  double least = 0, most = 0;  // what it may be
  std::string value{};         // as text, and so are these
  std::string from{}, to{};
};

// stated: figures with a range of their own (Figure::low, high), whatever they rest on. of_catalog: also those that are
// assumed, over what they are on any machine of the catalog: of GPUs of the same maker, of processors, and of links of
// the same kind; of networks of the same transport, too.
enum class FigureRanges : std::uint8_t { stated, of_catalog };

// Returns those among kDeviceFigures and kLinkFigures (peak rates and measured curves are none) that are consulted
// (Timeline::consulted), and whether GPUs reach each other over PCIe (1 or 0) where that is consulted and not stated.
// Reads the whole catalog for of_catalog.
std::vector<AssumedFigure> assumed_figures(const Topology& topology, const std::set<std::string>& consulted,
                                           FigureRanges ranges);

// Returns the machine with another value of the figure, in all models of its id.
std::shared_ptr<const Topology> with_figure(const Topology& topology, const AssumedFigure& figure, double value);

}  // namespace tandem
