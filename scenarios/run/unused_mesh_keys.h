// Why a key that says how devices divide a model has no effect on a job; empty where it has one.
#pragma once

#include <string>

#include "scenarios/job/job.h"

namespace tandem {

std::string why_mesh_scatter_gather(const Job& job);
// For the keys that divide the state of the optimizer.
std::string why_mesh_optimizer(const Job& job);
std::string why_mesh_dispatch(const Job& job);
std::string why_mesh_expert_tensor(const Job& job);
std::string why_mesh_context_exchange(const Job& job);
// The mesh must be known.
std::string why_mesh_axis_order(const Job& job);

}  // namespace tandem
