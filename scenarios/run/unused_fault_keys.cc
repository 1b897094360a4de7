#include "scenarios/run/unused_fault_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/faults/recovery_policy.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

// The samples that a course consists of have no faults left in them, but their document has.
bool states(const Job& job, std::string_view key) {
  return job.scenario.document && node_at(job.scenario.document->root(), key) != nullptr;
}

bool loses_workers(const Job& job) {
  if (!states(job, "faults")) return false;
  return std::ranges::any_of(node_at(job.scenario.document->root(), "faults")->items, [](const YamlNode* fault) {
    return node_at(*fault, "fail") != nullptr || node_at(*fault, "trace") != nullptr;
  });
}

bool saves(const Job& job) {
  return states(job, "recovery.checkpoint.directory");
}

}  // namespace

std::string why_recovery(const Job& job) {
  if (!job.models_machine) return fmt::format("engine '{}' brings no lost worker back", job.engine.name);
  return loses_workers(job) ? "" : "no worker is lost (faults)";
}

// On a real engine, a job goes on without a lost worker, or it restarts from its checkpoints.
std::string why_policy(const Job& job) {
  const bool goes_on = job.scenario.faults && recovery_policy(job.scenario) == RecoveryPolicy::continue_;
  const bool restarts = saves(job) && loses_workers(job);
  return !job.models_machine && (goes_on || restarts) ? "" : why_recovery(job);
}

std::string why_every(const Job& job) {
  if (job.models_machine || saves(job)) return "";
  return fmt::format("engine '{}' saves none without a directory (checkpoint.directory)", job.engine.name);
}

std::string why_directory(const Job& job) {
  return job.models_machine ? fmt::format("engine '{}' saves none, and only lets the time pass", job.engine.name) : "";
}

std::string why_checkpoint_time(const Job& job) {
  if (const std::string why = why_every(job); !why.empty()) return why;
  if (!job.models_machine) return fmt::format("engine '{}' saves checkpoints, and takes its time", job.engine.name);
  return states(job, "recovery.checkpoint.every") ? "" : "nothing says how often (checkpoint.every)";
}

std::string why_overlapped(const Job& job) {
  if (const std::string why = why_checkpoint_time(job); !why.empty()) return why;
  return states(job, "recovery.checkpoint.time") ? "" : "nothing says how long one takes (checkpoint.time)";
}

}  // namespace tandem
