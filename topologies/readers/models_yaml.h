// Reads device and link models, the part of the format that topologies, overrides and the catalog share. For the
// readers of this folder.
#pragma once

#include <string>

#include "topologies/base/strict_yaml.h"
#include "topologies/topology.h"

namespace tandem {

// What a figure in the short form, `bandwidth: 25GB/s`, inherits from the model or file around it.
struct FigureOrigin {
  Provenance provenance = Provenance::assumed;
  std::string source{};
  std::string date{};
};

// Reads provenance, source and date of a model or file. A source or date is inherited only together with the
// provenance.
FigureOrigin read_origin(const YamlReader& map, const FigureOrigin& inherited);

// Replace the figures of `model` that `map` gives and keep the others, for new models and overrides alike.
void read_device_figures(const YamlReader& map, const FigureOrigin& origin, DeviceModel& model);
void read_link_figures(const YamlReader& map, const FigureOrigin& origin, LinkModel& model);

// Reads the word for a network's software: "infiniband", "efa", ...
std::string read_transport(const YamlReader& value);

DeviceModel read_device_model(const YamlReader& map, const std::string& id, const FigureOrigin& inherited);
LinkModel read_link_model(const YamlReader& map, const std::string& id, const FigureOrigin& inherited);

void read_figure(const YamlReader& value, Dimension dimension, const FigureOrigin& origin, bool zero_allowed,
                 Figure& figure);

}  // namespace tandem
