#include "engine/sim/collectives/nccl_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/collectives/measured_times.h"
#include "engine/sim/collectives/steps/step_planner.h"
#include "engine/sim/collectives/steps/step_player.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim {
namespace {

constexpr std::size_t kMostKeptFlows = 1 << 18;  // in plans, about 20 MB
constexpr std::size_t kStepsOfAFlow = 8;         // steps count less, because making them anew takes long
constexpr double kSmallBytes = 64 * nccl::kMiB;  // below, a network's latency decides

// Returns whether the call would go another way, or take another time, with these communicators.
bool is_changed(const nccl::Plan& plan, nccl::Communicators& others, const std::vector<NodeIndex>& gpus,
                const nccl::Call& call, int root) {
  try {
    const nccl::Plan other = others.of(gpus).plan(call, root, nccl::Flows::first_of_a_kind);
    return other.algorithm != plan.algorithm || other.fixed_s != plan.fixed_s || other.transfer_s != plan.transfer_s;
  } catch (const Error&) {
    return true;  // refused
  }
}

std::string note_of(const LinkModel& cable) {
  const auto us = [](double seconds) { return fmt::format("{:.4g} us", seconds * 1e6); };
  const Figure& hop = cable.hop_latency_s;
  return fmt::format("assumed: what the network's software ({}) adds to a message, hop_latency {} of {} to {}",
                     cable.transport, us(hop.value), us(hop.low), us(hop.high));
}

}  // namespace

struct NcclGroups::Group {
  bool executes = false;
  std::vector<NodeIndex> gpus;                       // by position
  std::vector<int> positions;                        // by rank
  const nccl::Communicator* communicator = nullptr;  // until the first call
  std::map<Key, std::shared_ptr<const Playable>> plans;
  // If workers represent others: the flows that are started for plans of one form, by the form and the flows' colours.
  std::map<std::vector<int>, symmetry::CallFlows> forms;
  int machines = 0;
  std::map<std::pair<CollectiveKind, bool>, std::optional<CollectiveFit>> fits;  // by whether switches reduce the type
  bool was_called = false;                                                       // since forget_consulted()
};

NcclGroups::NcclGroups(const Topology& topology, const std::map<std::string, std::string>& variables,
                       nccl::Communicators& communicators)
    : topology_(topology), variables_(variables), communicators_(communicators) {
  forget_consulted();
}

NcclGroups::~NcclGroups() = default;

std::string NcclGroups::text() const {
  const int version = communicators_.settings().version;
  std::string text = fmt::format("model of {}.{}.{}, from links and public constants", version / 10000,
                                 version / 100 % 100, version % 100);
  for (const auto& [name, value] : variables_) {
    if (name != "version") text += fmt::format("; {}={}", name, value);
  }
  return text;
}

NcclGroups::Group& NcclGroups::group_of(const CollectiveGroup& group) {
  std::unique_ptr<Group>& known = groups_[&group];
  if (known) return *known;
  known = std::make_unique<Group>();
  known->positions.resize(group.devices().size());
  for (const int rank : group.ring_order()) {
    known->positions[static_cast<std::size_t>(rank)] = static_cast<int>(known->gpus.size());
    known->gpus.push_back(group.devices()[static_cast<std::size_t>(rank)]->node());
  }
  known->machines = group.worker_count();
  const std::set<NodeIndex> different(known->gpus.begin(), known->gpus.end());
  known->executes = different.size() > 1 && different.size() == known->gpus.size() &&
                    std::all_of(different.begin(), different.end(), [this](NodeIndex index) {
                      const auto& device = topology_.device(index);
                      return topology_.kind(index) == NodeKind::gpu && device && !device->architecture.empty();
                    });
  return *known;
}

bool NcclGroups::executes(const CollectiveGroup& group) {
  return group_of(group).executes;
}

std::shared_ptr<steps::StepPlayer> NcclGroups::begin_part(SimRun& run, const CollectiveCall& call, int rank,
                                                          double date_s, std::shared_ptr<steps::StepPlayer> begun) {
  if (!executes(call.group()) || run.fidelity() != CollectiveFidelity::message) return nullptr;
  Group& group = group_of(call.group());
  if (!begun) {
    const auto plan = plan_of(run, group, call);
    if (!plan->steps) return nullptr;
    begun = std::make_shared<steps::StepPlayer>(run.simulation(), run.network(), plan->steps);
  }
  begun->come(group.positions[static_cast<std::size_t>(rank)], date_s);
  return begun;
}

std::string NcclGroups::start(SimRun& run, const CollectiveCall& call, Simulation::Then then) {
  Group& group = group_of(call.group());
  const auto plan = plan_of(run, group, call);
  was_used_ = has_calls_ = group.was_called = true;
  crosses_machines_ |= group.communicator->facts().machine.domains > 1;
  if (const auto steps = call.steps()) {
    steps->finish_with(std::move(then));
    return plan->algorithm;
  }
  run.simulation().at(Simulation::now_s() + plan->fixed_s, [&run, plan, then = std::move(then)] {
    guarded(run.scheduler(), [&] { play(run, *plan, then); });
  });
  return plan->algorithm;
}

std::shared_ptr<const NcclGroups::Playable> NcclGroups::plan_of(SimRun& run, Group& group, const CollectiveCall& call) {
  const bool plays_steps = run.fidelity() == CollectiveFidelity::message;  // asked even if the plan is known
  const CollectiveSpec& spec = call.spec();
  const int root = has_root(spec.kind) ? group.positions[static_cast<std::size_t>(spec.root)] : 0;
  const bool reduces = size_of(spec.dtype) > 1;  // NVLS knows no type of one byte
  const Key key{spec.kind, call.bytes(), root, reduces};
  if (const auto known = group.plans.find(key); known != group.plans.end()) return known->second;
  const nccl::Communicator& communicator = communicator_of(group);
  const nccl::Survey& facts = communicator.facts();
  if (!facts.hop_is_known && call.bytes() < kSmallBytes) {
    run.notes().add("what the network's software adds to a message is not known (hop_latency of the network): " +
                    std::string(name_of(spec.kind)) + " below 64 MiB between machines may be predicted too fast");
  }
  if (facts.assumed_hop != nullptr && call.bytes() < kSmallBytes) run.notes().add(note_of(*facts.assumed_hop));
  if (facts.without_nvlink >= 0) {
    const NodeIndex gpu = group.gpus[static_cast<std::size_t>(facts.without_nvlink)];
    run.notes().add(
        fmt::format("'{}' has no NVLink, as other GPUs of its domain have: collectives among them take none",
                    topology_.node(gpu).name));
  }
  if (communicators_.settings().has_collnet && facts.machine.domains > 1 && facts.machine.lacks_sharp) {
    run.notes().add(fmt::format("NCCL_COLLNET_ENABLE has no effect: only switches of InfiniBand reduce (SHARP), and {}",
                                facts.transport.empty() ? "the topology does not state the network's transport"
                                                        : "the network is '" + facts.transport + "'"));
    without_.erase("NCCL_COLLNET_ENABLE");
  }
  const nccl::Flows flows = run.symmetry() != nullptr ? nccl::Flows::first_of_a_kind : nccl::Flows::all;
  nccl::Plan plan = communicator.plan({spec.kind, call.bytes(), reduces}, root, flows);
  heeds_plug_in_ |= communicator.heeds_plug_in({spec.kind, call.bytes(), reduces});
  if (!without_.empty()) see_variables(run, group, {spec.kind, call.bytes(), reduces}, root, plan);
  fit_to_measured(run, group, call, reduces, plan);
  auto made = std::make_shared<Playable>(playable(run, call, group, plan, key));
  if (plays_steps) made->steps = steps_of(run, group, {spec.kind, call.bytes(), reduces}, root, plan);
  const std::size_t weight =
      made->flows.size() + (made->steps ? made->steps->graph->transfers().size() / kStepsOfAFlow : 0);
  if (kept_flows_ + weight > kMostKeptFlows) {
    for (auto& [known, other] : groups_) other->plans.clear();
    kept_flows_ = 0;
  }
  kept_flows_ += weight;
  return group.plans.emplace(key, std::move(made)).first->second;
}

void NcclGroups::see_variables(SimRun& run, const Group& group, const nccl::Call& call, int root,
                               const nccl::Plan& plan) {
  for (auto at = without_.begin(); at != without_.end();) {
    auto& [name, others] = *at;
    if (!others) {
      std::map<std::string, std::string> rest = variables_;
      rest.erase(name);
      others = std::make_unique<nccl::Communicators>(topology_, run.simulation().platform().router(),
                                                     nccl::settings_of(rest));
    }
    at = is_changed(plan, *others, group.gpus, call, root) ? without_.erase(at) : std::next(at);
  }
}

void NcclGroups::add_consulted(std::set<std::string>& inputs) const {
  if (!has_calls_) return;
  inputs.insert("nccl");
  for (const auto& [name, value] : variables_) {
    if (!without_.contains(name)) inputs.insert("nccl." + name);
  }
  // Where some link has a latency that its kind usually does not have, those on the way of a step decide. Else steps
  // inside a machine go over NVLink where there is any, or over PCIe and the processors.
  std::set<const LinkModel*> on_the_way;
  for (const auto& [key, group] : groups_) {
    if (!group->was_called) continue;
    const std::vector<const LinkModel*>& models = group->communicator->facts().with_latency;
    on_the_way.insert(models.begin(), models.end());
    const nccl::Machine& machine = group->communicator->facts().machine;
    const bool is_over_pcie = machine.intra == nccl::Intra::pcie || machine.intra == nccl::Intra::staged;
    if (is_over_pcie && machine.gpus > 1) inputs.insert("machine.p2p");
  }
  for (const LinkModel* model : on_the_way) inputs.insert(model->id + ".latency");
  bool has_nvlink = false;
  for (LinkIndex index = 0; index < topology_.link_count() && !has_nvlink; ++index) {
    has_nvlink = topology_.link_model(index).kind == LinkKind::nvlink;
  }
  std::set<const LinkModel*> seen;
  for (LinkIndex index = 0; index < topology_.link_count(); ++index) {
    const LinkModel& model = topology_.link_model(index);
    if (!seen.insert(&model).second) continue;
    if (model.kind == LinkKind::nvlink) inputs.insert(model.id + ".bandwidth");
    const bool may_decide = model.kind == LinkKind::nvlink || crosses_machines_ || !has_nvlink;
    if (on_the_way.empty() && may_decide) inputs.insert(model.id + ".latency");
    if (model.kind != LinkKind::network || !crosses_machines_ || !is_of_nic(index)) continue;
    for (const char* key : {"hop_latency", "transport"}) inputs.insert(fmt::format("{}.{}", model.id, key));
    if (heeds_plug_in_) inputs.insert(model.id + ".advertised_latency");
  }
}

void NcclGroups::forget_consulted() {
  for (const auto& [key, group] : groups_) group->was_called = false;
  has_calls_ = crosses_machines_ = false;
  if (variables_.empty()) return;
  for (const auto& [name, value] : variables_) without_.try_emplace(name);
  for (auto& [known, group] : groups_) group->plans.clear();  // which are compared when they are made
}

bool NcclGroups::is_of_nic(LinkIndex index) const {
  const Link link = topology_.link(index);
  return topology_.kind(link.from) == NodeKind::nic || topology_.kind(link.to) == NodeKind::nic;
}

const nccl::Communicator& NcclGroups::communicator_of(Group& group) {
  if (group.communicator == nullptr) group.communicator = &communicators_.of(group.gpus);
  return *group.communicator;
}

const nccl::Communicator* NcclGroups::communicator_of(int devices, int nodes) {
  const auto [known, is_new] = measured_.try_emplace({devices, nodes});
  if (!is_new || nodes > topology_.worker_count() || devices % nodes != 0) return known->second;
  std::vector<NodeIndex> gpus;
  for (int worker = 0; worker < nodes; ++worker) {
    const std::vector<NodeIndex> all = topology_.nodes_of(worker, NodeKind::gpu);
    const auto count = static_cast<std::size_t>(devices / nodes);
    if (all.size() < count) return nullptr;
    gpus.insert(gpus.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  }
  known->second = &communicators_.of(gpus);
  return known->second;
}

const CollectiveFit* NcclGroups::fit_of(SimRun& run, Group& group, CollectiveKind kind, bool reduces) {
  std::vector<CollectivePoint> points = run.measured_times().points(kind);
  if (points.empty()) return nullptr;
  const auto [known, is_new] = group.fits.try_emplace({kind, reduces});
  if (!is_new) return &*known->second;
  for (CollectivePoint& point : points) {
    const bool is_of_group = point.devices == static_cast<int>(group.gpus.size()) && point.nodes == group.machines;
    const nccl::Communicator* model =
        is_of_group ? &communicator_of(group) : communicator_of(point.devices, point.nodes);
    if (model == nullptr) continue;
    const nccl::Plan plan = model->plan({kind, point.bytes, reduces});
    point.model_s = plan.fixed_s + plan.transfer_s;
  }
  return &known->second.emplace(kind, points);
}

void NcclGroups::fit_to_measured(SimRun& run, Group& group, const CollectiveCall& call, bool reduces,
                                 nccl::Plan& plan) {
  const CollectiveKind kind = call.spec().kind;
  const double model_s = plan.fixed_s + plan.transfer_s;
  if (kind == CollectiveKind::send_receive || run.measured_times().empty() || model_s <= 0) return;
  const CollectivePoint wanted{.devices = static_cast<int>(group.gpus.size()),
                               .nodes = group.machines,
                               .bytes = std::max(call.bytes(), 1.0),
                               .model_s = model_s};
  const CollectiveFit* fit = fit_of(run, group, kind, reduces);
  const auto time = fit != nullptr ? fit->predict(wanted) : std::nullopt;
  note_range(run.notes(), kind, wanted, time);
  if (!time) return;
  plan.fixed_s *= time->time_s / model_s;
  plan.transfer_s *= time->time_s / model_s;
  plan.algorithm += time->is_extrapolated ? ", extrapolated from measured times" : ", measured";
}

std::vector<symmetry::PlannedFlow> NcclGroups::planned_flows(const std::vector<NodeIndex>& gpus,
                                                             const nccl::Plan& plan) {
  std::vector<symmetry::PlannedFlow> flows;
  flows.reserve(plan.flows.size());
  for (const nccl::Flow& flow : plan.flows) {
    if (flow.bytes < 1) continue;  // SimGrid counts whole bytes
    const symmetry::Via via{.from = gpus[static_cast<std::size_t>(flow.from)],
                            .to = gpus[static_cast<std::size_t>(flow.to)],
                            .from_nic = flow.from_nic,
                            .to_nic = flow.to_nic};
    flows.push_back({via, flow.bytes, flow.bytes / plan.transfer_s});
  }
  return flows;
}

NcclGroups::Playable NcclGroups::playable(SimRun& run, const CollectiveCall& call, Group& group, const nccl::Plan& plan,
                                          const Key& key) {
  Playable made{plan.algorithm, plan.fixed_s, plan.transfer_s, {}};
  if (run.symmetry() != nullptr) {
    made.class_flows = class_flows(run, call, group, plan, key);
    return made;
  }
  const std::vector<symmetry::PlannedFlow> flows = planned_flows(group.gpus, plan);
  made.flows.reserve(flows.size());
  for (const auto& [via, bytes, most_bytes_per_s] : flows) {
    made.flows.push_back({{via.from, via.to}, route(run, via), bytes, most_bytes_per_s});
  }
  return made;
}

std::shared_ptr<const steps::PlacedGraph> NcclGroups::steps_of(SimRun& run, const Group& group, const nccl::Call& call,
                                                               int root, const nccl::Plan& plan) {
  steps::StepPlan planned = steps::plan_steps(*group.communicator, call, root, plan);
  if (!planned.problem.empty()) {
    run.notes().add(fmt::format("collectives: message: {} of {} GPUs was simulated as with fluid, because {}",
                                name_of(call.kind), group.gpus.size(), planned.problem));
  }
  if (!planned.graph) return nullptr;
  auto placed = std::make_shared<steps::PlacedGraph>();
  for (const steps::Edge& edge : planned.graph->edges()) {
    const symmetry::Via via{.from = group.gpus[static_cast<std::size_t>(edge.from)],
                            .to = group.gpus[static_cast<std::size_t>(edge.to)],
                            .from_nic = edge.from_nic,
                            .to_nic = edge.to_nic};
    placed->ways.push_back({{via.from, via.to}, route(run, via)});
  }
  placed->graph = std::move(planned.graph);
  return placed;
}

// Flows of one form and equal colours are between the same ends, whatever their bytes.
symmetry::CallFlows NcclGroups::class_flows(SimRun& run, const CollectiveCall& call, Group& group,
                                            const nccl::Plan& plan, const Key& key) {
  std::vector<int> form = plan.form;
  std::vector<std::pair<double, double>> sizes;
  for (const nccl::Flow& flow : plan.flows) {
    if (flow.bytes < 1) {
      form.push_back(-1);
      continue;
    }
    const std::pair size{flow.bytes, flow.bytes / plan.transfer_s};
    const auto known = std::find(sizes.begin(), sizes.end(), size);
    form.push_back(static_cast<int>(known - sizes.begin()));
    if (known == sizes.end()) sizes.push_back(size);
  }
  if (sizes.empty()) return {};
  const auto [known, is_new] = group.forms.try_emplace(std::move(form));
  symmetry::CallFlows& flows = known->second;
  if (is_new) {
    const nccl::Call same{std::get<0>(key), std::get<1>(key), std::get<3>(key)};
    const int root = std::get<2>(key);
    const nccl::Plan whole = group.communicator->plan(same, root);
    const auto planned = [&](std::span<const SimDevice* const> devices) {
      std::vector<NodeIndex> gpus;
      for (const int rank : call.group().ring_order()) {
        gpus.push_back(devices[static_cast<std::size_t>(rank)]->node());
      }
      nccl::Plan its = gpus == group.gpus ? whole : communicators_.of(gpus).plan(same, root);
      const bool is_equal =
          its.algorithm == whole.algorithm && its.fixed_s == whole.fixed_s && its.transfer_s == whole.transfer_s;
      its.transfer_s = plan.transfer_s;  // as measured
      return is_equal ? planned_flows(gpus, its) : std::vector<symmetry::PlannedFlow>();
    };
    flows = run.symmetry()->flows_of(call.group(), planned,
                                     [&](const symmetry::Via& via, Route& into) { append_route(run, via, into); });
  }
  flows.sizes = std::move(sizes);
  return flows;
}

void NcclGroups::append_route(SimRun& run, const symmetry::Via& via, Route& into) {
  static_assert(nccl::kNoNic == symmetry::kNowhere);
  Router& router = run.simulation().platform().router();
  if (via.from_nic == nccl::kNoNic) return router.append(via.from, via.to, into);
  router.append(via.from, via.from_nic, into);
  router.append(via.from_nic, via.to_nic, into);
  router.append(via.to_nic, via.to, into);
}

Network::RoutePtr NcclGroups::route(SimRun& run, const symmetry::Via& via) {
  if (via.from_nic == nccl::kNoNic) return run.simulation().platform().route(via.from, via.to);
  Network::RoutePtr& known = routes_[{via.from, via.from_nic, via.to_nic, via.to}];
  if (known) return known;
  Route joined{.bandwidth_bytes_per_s = std::numeric_limits<double>::infinity()};
  append_route(run, via, joined);
  known = std::make_shared<const Route>(std::move(joined));
  return known;
}

void NcclGroups::play(SimRun& run, const Playable& plan, const Simulation::Then& then) {
  if (run.symmetry() != nullptr && plan.has_flows()) return run.symmetry()->start(plan.class_flows, then);
  if (!plan.has_flows()) return run.simulation().at(Simulation::now_s() + plan.transfer_s, then);
  auto left = std::make_shared<std::size_t>(plan.flows.size());
  run.network().start_together(plan.flows, [left, then] {
    if (--*left == 0) then();
  });
}

}  // namespace tandem::sim
