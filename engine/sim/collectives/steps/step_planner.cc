#include "engine/sim/collectives/steps/step_planner.h"

#include <algorithm>

#include "engine/sim/collectives/steps/lanes.h"
#include "engine/sim/collectives/steps/planned_call.h"
#include "engine/sim/collectives/steps/rehearsal.h"

namespace tandem::sim::steps {
namespace {

constexpr double kMicrosecond = 1e-6;

bool add_steps(const PlannedCall& planned, const Lanes& lanes, StepGraph& graph) {
  switch (planned.choice.algorithm) {
    case nccl::Algorithm::tree:
      return add_trees(planned, lanes, graph);
    case nccl::Algorithm::nvls:
    case nccl::Algorithm::nvls_tree:
      return add_nvls(planned, lanes, graph);
    default:
      return has_root(planned.call.kind) ? add_chain(planned, lanes, graph) : add_ring(planned, lanes, graph);
  }
}

StepPlan finished(std::shared_ptr<StepGraph> graph, bool is_complete) {
  if (!is_complete) return {.graph = nullptr, .problem = "it would take more than two million messages"};
  graph->finish();
  return {.graph = std::move(graph)};
}

}  // namespace

StepPlan plan_steps(const nccl::Communicator& communicator, const nccl::Call& call, int root, const nccl::Plan& plan) {
  if (call.kind == CollectiveKind::send_receive || call.bytes < 1) return {};  // one flow
  const auto graph = std::make_shared<StepGraph>();
  graph->gpus = communicator.facts().machine.total_gpus;
  PlannedCall planned{.communicator = communicator, .call = call, .root = root, .plan = plan};
  if (call.kind == CollectiveKind::all_to_all) {
    graph->lead_s = plan.fixed_s;
    return finished(graph, add_pairs(planned, *graph));
  }
  planned.choice = communicator.choose(call);
  if (planned.choice.algorithm == nccl::Algorithm::collnet_direct ||
      planned.choice.algorithm == nccl::Algorithm::collnet_chain) {
    return {.graph = nullptr, .problem = "the steps of CollNet are not modelled"};
  }
  const Lanes lanes(communicator, plan);
  if (!lanes.is_complete()) return {.graph = nullptr, .problem = "the plan has no way between two of its domains"};
  const nccl::Mechanism::Latencies latencies = communicator.mechanism().latencies(planned.choice);
  graph->lead_s = std::min(plan.fixed_s, latencies.launch_us * kMicrosecond);
  graph->inside_s = latencies.inside_us * kMicrosecond;
  graph->network_s = latencies.network_us * kMicrosecond;
  planned.steps_s = plan.fixed_s - graph->lead_s;
  StepPlan made = finished(graph, add_steps(planned, lanes, *graph));
  if (made.graph) fit_steps(*graph, planned.steps_s + plan.transfer_s);
  return made;
}

}  // namespace tandem::sim::steps
