#include "engine/sim/collectives/nccl/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topologies/base/error.h"

namespace tandem::sim::nccl {
namespace {

constexpr double kMicro = 1e-6;
constexpr std::size_t kMostExactPairs = 16;  // GPUs of a mesh whose all-to-all is planned pair by pair

// Forms of plans.
constexpr int kPair = 0;
constexpr int kChain = 1;
constexpr int kPairs = 2;
constexpr int kInside = 3;
constexpr int kBetween = 4;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

Plan plan_of(std::string algorithm, const Duration& duration) {
  return {.algorithm = std::move(algorithm),
          .fixed_s = std::max(0.0, duration.total_us - duration.transfer_us) * kMicro,
          .transfer_s = std::min(duration.transfer_us, duration.total_us) * kMicro,
          .flows = {},
          .form = {}};
}

}  // namespace

Communicator::Communicator(Survey survey, const Settings& settings)
    : survey_(std::move(survey)),
      settings_(settings),
      graphs_(find_graphs(survey_.machine, settings.least_channels, settings.most_channels)),
      table_(survey_.machine, graphs_, settings_),
      mechanism_(survey_.machine, graphs_, table_, settings_) {}

Plan Communicator::plan(const Call& call, int root, Flows flows) const {
  if (call.kind == CollectiveKind::all_to_all) return plan_all_to_all(call, flows);
  if (call.kind == CollectiveKind::send_receive) {
    Plan plan = plan_of("send and receive", mechanism_.send_receive(call.bytes, survey_.machine.domains > 1));
    Flow& flow = plan.flows.emplace_back(Flow{0, 1, call.bytes});
    if (survey_.ports.size() == 2) {  // through the NIC that each GPU uses first
      flow.from_nic = survey_.ports[0].front().nic;
      flow.to_nic = survey_.ports[1].front().nic;
    }
    plan.form = {kPair};
    return plan;
  }
  const Choice choice = table_.choose(call);
  Plan plan = plan_of(text(choice), mechanism_.time(choice, call));
  if (has_root(call.kind) && survey_.machine.domains == 1) {
    add_chain(call.bytes, call.kind, root, plan.flows);
    plan.form = {kChain, static_cast<int>(call.kind), root};
    return plan;
  }
  const Traffic moved = traffic(choice, call);
  add_inside(moved, flows, plan);
  add_between(moved, std::min(survey_.machine.nics, graphs_.ring.channels), flows, plan);
  return plan;
}

std::string Communicator::text(const Choice& choice) const {
  const bool is_nvls = choice.algorithm == Algorithm::nvls || choice.algorithm == Algorithm::nvls_tree;
  const int channels = is_nvls ? graphs_.nvls_thread_blocks : graphs_.thread_blocks;
  return fmt::format("{} {}, {} channel{}", name_of(choice.algorithm), name_of(choice.protocol), channels,
                     channels == 1 ? "" : "s");
}

Communicator::Traffic Communicator::traffic(const Choice& choice, const Call& call) const {
  const Machine& machine = survey_.machine;
  const double bytes = call.bytes;
  const double gpus = machine.gpus;
  const double both_ways = machine.domains == 2 ? 1 : 2;  // a node of a tree passes on what it receives
  switch (choice.algorithm) {
    case Algorithm::ring: {
      if (has_root(call.kind)) return {bytes * (gpus - 1) / gpus, bytes};
      const double rounds = call.kind == CollectiveKind::all_reduce ? 2 : 1;
      const double edge = rounds * bytes * (machine.total_gpus - 1) / machine.total_gpus;
      return {machine.domains == 1 ? edge : edge * (gpus - 1) / gpus, edge};
    }
    case Algorithm::tree:
      return {2 * bytes * (gpus - 1) / gpus, both_ways * bytes};
    case Algorithm::collnet_direct:
    case Algorithm::collnet_chain:
      return {2 * bytes * (gpus - 1) / gpus, bytes};
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return {bytes * (1 + 1 / gpus), both_ways * bytes};
  }
  TANDEM_UNREACHABLE("algorithm");
}

// Adds the flows inside a domain. Through a switch every GPU sends to the next one; in a mesh flows follow its rings
// and chains.
void Communicator::add_inside(const Traffic& traffic, Flows which, Plan& plan) const {
  if (traffic.inside <= 0) return;
  plan.form.push_back(kInside);
  std::set<std::size_t> seen;
  for (const std::vector<int>& gpus : survey_.domains) {
    if (gpus.size() == 1) continue;
    if (which == Flows::first_of_a_kind && !seen.insert(gpus.size()).second) continue;
    add_inside(traffic, gpus, plan.flows);
  }
}

void Communicator::add_inside(const Traffic& traffic, const std::vector<int>& gpus, std::vector<Flow>& flows) const {
  const Machine& machine = survey_.machine;
  const std::size_t count = gpus.size();
  const bool is_chain = machine.domains > 1 && machine.intra != Intra::nvswitch;
  const double edge =
      is_chain ? traffic.inside * static_cast<double>(count) / static_cast<double>(count - 1) : traffic.inside;
  if (graphs_.orders.empty() || count != at(machine.gpus)) {
    for (std::size_t i = 0; i + (is_chain ? 1 : 0) < count; ++i) {
      flows.push_back({gpus[i], gpus[(i + 1) % count], edge});
    }
    return;
  }
  std::map<std::pair<int, int>, double> pairs;
  for (const Order& order : graphs_.orders) {
    for (std::size_t i = 0; i + (is_chain ? 1 : 0) < count; ++i) {
      pairs[{gpus[at(order[i])], gpus[at(order[(i + 1) % count])]}] +=
          edge / static_cast<double>(graphs_.orders.size());
    }
  }
  for (const auto& [pair, bytes] : pairs) flows.push_back({pair.first, pair.second, bytes});
}

// Every domain sends to the next one, through at most so many NICs.
void Communicator::add_between(const Traffic& traffic, int nics, Flows which, Plan& plan) const {
  const std::size_t domains = survey_.domains.size();
  if (domains == 1 || traffic.between <= 0) return;
  plan.form.push_back(kBetween);
  std::vector<Flow>& flows = plan.flows;
  std::set<std::pair<std::size_t, std::size_t>> seen;
  const std::size_t most = at(std::max(1, nics));
  for (std::size_t d = 0; d < domains; ++d) {
    const std::size_t next = (d + 1) % domains;
    const auto ports = [this](std::size_t domain) { return survey_.ports.empty() ? 0 : survey_.ports[domain].size(); };
    if (which == Flows::first_of_a_kind && !seen.insert({ports(d), ports(next)}).second) continue;
    if (survey_.ports.empty()) {
      flows.push_back({survey_.domains[d].front(), survey_.domains[next].front(), traffic.between});
      continue;
    }
    const std::vector<Port>& from = survey_.ports[d];
    const std::vector<Port>& to = survey_.ports[next];
    const std::size_t ends = std::min({from.size(), to.size(), most});
    const auto end_at = [&](std::size_t domain, std::size_t i) -> const Port& {
      const std::vector<Port>& all = survey_.ports[domain];
      const std::size_t first = survey_.first_choices.empty() ? all.size() : survey_.first_choices[domain];
      return all[i * (ends <= first ? first : all.size()) / ends];
    };
    for (std::size_t i = 0; i < ends; ++i) {
      const Port& sender = end_at(d, i);
      const Port& receiver = end_at(next, i);
      flows.push_back(
          {sender.gpu, receiver.gpu, traffic.between / static_cast<double>(ends), sender.nic, receiver.nic});
    }
  }
}

// The ring beginning at the root (broadcast), or ending at it (reduce): all edges except the one that would close it.
void Communicator::add_chain(double bytes, CollectiveKind kind, int root, std::vector<Flow>& flows) const {
  std::vector<Order> orders = graphs_.orders;
  if (orders.empty()) {
    orders.emplace_back();
    for (std::size_t i = 0; i < survey_.domains.front().size(); ++i) orders.back().push_back(static_cast<int>(i));
  }
  const std::vector<int>& gpus = survey_.domains.front();
  std::map<std::pair<int, int>, double> pairs;
  for (const Order& order : orders) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int from = gpus[at(order[i])];
      const int to = gpus[at(order[(i + 1) % order.size()])];
      if ((kind == CollectiveKind::broadcast ? to : from) == root || from == to) continue;
      pairs[{from, to}] += bytes / static_cast<double>(orders.size());
    }
  }
  for (const auto& [pair, share] : pairs) flows.push_back({pair.first, pair.second, share});
}

Plan Communicator::plan_all_to_all(const Call& call, Flows which) const {
  const Machine& machine = survey_.machine;
  Plan plan = plan_of("grouped send and receive", mechanism_.all_to_all(call.bytes));
  const double part = call.bytes / machine.total_gpus;
  if (machine.domains == 1 && machine.intra == Intra::nvlink_mesh && at(machine.gpus) <= kMostExactPairs) {
    add_pairs(part, plan.flows);
    plan.form = {kPairs};
    return plan;
  }
  const double others = machine.total_gpus - machine.gpus;
  const bool is_chain = machine.domains > 1 && machine.intra != Intra::nvswitch;
  const double inside = part * (machine.gpus - 1);
  add_inside({is_chain ? inside * (machine.gpus - 1) / machine.gpus : inside, 0}, which, plan);
  // Every GPU sends by the NIC nearest to it, not by those of the rings.
  add_between({0, part * others * machine.gpus}, machine.nics, which, plan);
  return plan;
}

void Communicator::add_pairs(double bytes, std::vector<Flow>& flows) const {
  for (const int from : survey_.domains.front()) {
    for (const int to : survey_.domains.front()) {
      if (from != to) flows.push_back({from, to, bytes});
    }
  }
}

}  // namespace tandem::sim::nccl
