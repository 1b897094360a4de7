// Formats a report for people, at most about 96 columns wide.
#pragma once

#include <string>
#include <string_view>

#include "reports/run/report.h"

namespace tandem {

// Shows only the first of many collectives, unless `all` is set.
std::string report_text(const Report& report, bool all = false);

// Returns "64 per step"; per step of each worker where workers have their own steps.
std::string units_per_step_text(const Report& report);
// "digits: 2 replicas, mirrored, nccl_all_reduce"
std::string title_of(const Report& report);
// "task:1 GPU:0" for "/job:worker/replica:0/task:1/device:GPU:0"
std::string short_device_name(const std::string& device);
// "measured on engine cpu, topology this machine (figures: measured)"
std::string origin_text(const Report& report);
// "network model CM02, ...", wrapped; "" without settings. Every line ends in a newline.
std::string settings_text(const std::string& label, const Report& report);
// Returns "486.0 MB" for a metric whose name ends in "_bytes", "465.9 M" for another large one, "0.977716" otherwise.
std::string metric_value_text(std::string_view name, double value);
// Whether the metric is the memory that the program itself took, while a device in real training needs Report::memory.
bool is_of_program_only(std::string_view metric, const Report& report);
// The name of a metric without its unit.
std::string_view metric_label(std::string_view name);
// "3.1 % of the processor time that the run asked for went elsewhere"
std::string lost_text(const MachineUse& use);
std::string cores_text(const SharedCores& cores);  // "4 devices on 2 cores"
// Returns "12 of 48 steps take 347 ms (every 4th), the others 106 ms" for uneven steps, "" for others.
std::string long_steps_text(const StepTime& time);
// One wrapped bullet for each note.
std::string notes_text(const Report& report);
// Returns "WITH FAULTS ...", or nothing for a run without them.
std::string faults_text(const Report& report);

}  // namespace tandem
