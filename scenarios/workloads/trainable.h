// Makes what a workload trains, for strategies that divide it and for those that replicate it.
#pragma once

#include <memory>

#include "engine/worker.h"
#include "scenarios/scenario/scenario.h"
#include "strategies/parallel/stages/trainable_model.h"

namespace tandem {

// The model of a workload that is no trace, on one worker.
std::unique_ptr<TrainableModel> trainable_model(const WorkloadSettings& workload, Worker& worker);

}  // namespace tandem
