// A perceptron as a table of layers, which strategies that divide models can divide.
#pragma once

#include "scenarios/scenario/scenario.h"

namespace tandem {

// Layers alternate between a split by columns and one by rows, so that each device already has the part of one layer's
// output that the next one needs. The last layer is split by rows, which gives every device the whole output; with an
// odd number of layers the first one is split by rows as well, and each device takes its features of the input. Each
// layer's gradients are reduced by themselves. Needs the data set.
LayersSettings layers_of(const MlpSettings& mlp);

// Returns the table of a workload that is no trace.
LayersSettings layers_of(const WorkloadSettings& workload);

}  // namespace tandem
