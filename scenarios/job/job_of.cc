#include "scenarios/job/alike.h"
#include "scenarios/job/job.h"
#include "scenarios/job/parallel_settings.h"
#include "strategies/strategies.h"

namespace tandem {

Job job_of(const Scenario& scenario) {
  Job job{.scenario = scenario,
          .engine = engine_info(scenario.engine.name),
          .strategy = strategy_info(scenario.strategy.name),
          .tasks = tasks_of(scenario),
          .workers = training_workers(scenario),
          .servers = parameter_servers(scenario),
          .devices = training_devices(scenario),
          .devices_in_step = tandem::devices_in_step(scenario),
          .devices_of_replica = devices_of_one_replica(scenario),
          .mlp = std::get_if<MlpSettings>(&scenario.workload.kind),
          .layers = std::get_if<LayersSettings>(&scenario.workload.kind),
          .trace = std::get_if<TraceSettings>(&scenario.workload.kind)};
  job.models_machine = job.engine.needs_topology;
  job.divides_model = job.strategy.division && job.trace == nullptr;
  if (job.strategy.division) job.mesh = parallel_options(scenario);
  if (job.engine.symmetry) {
    job.alike = alike_workers(job);
    job.alike_devices = alike_devices(job);
  }
  return job;
}

}  // namespace tandem
