// The program of a calibration. It uses only the engine contract, on all compute devices of a worker at the same time.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "scenarios/calibration/findings.h"

namespace tandem::calibration {

// Returns the number of physical devices of a type, its places. Logical device i is on place i mod places.
int places_of(const Capabilities& capabilities, DeviceType type);

// Runs the program. Calls `stage` with the name of each stage that begins.
void run_program(Worker& worker, const Plan& plan, const Parts& parts, Findings& findings,
                 const std::function<void(std::string_view stage)>& stage);

// Runs the program of a run without records, which measures what ops cost besides their work.
void run_unrecorded_program(Worker& worker, const Plan& plan, std::vector<TinyOp>& ops);
// Measures, in a run without records, what it costs the host to issue a matrix product of each of the plan's types.
void run_products_program(Worker& worker, const Plan& plan, std::map<DType, std::vector<TinyOp>>& products);

}  // namespace tandem::calibration
