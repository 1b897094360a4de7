// Targets that run what was read or drawn, because what readers accept can crash behind them.
#pragma once

#include <string_view>

namespace tandem::fuzz {

// Each throws tandem::Error for a job that is refused, and aborts where something does not hold (run_checks.h).
//
// The bytes make choices.
void run_drawn_scenario(std::string_view bytes);
void run_drawn_collective(std::string_view bytes);
void run_drawn_sweep(std::string_view bytes);

// The bytes are a file. What it describes is run if it is small.
void run_scenario_text(std::string_view bytes);
void run_topology_text(std::string_view bytes);  // one collective and one step on the machines that it describes
void run_trace_file(std::string_view bytes);     // on one machine

}  // namespace tandem::fuzz
