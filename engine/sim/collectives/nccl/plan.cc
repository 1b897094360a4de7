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
  const int nics = std::min(survey_.machine.nics, graphs_.ring.channels);
  add_inside(moved, nics, flows, plan);
  add_between(moved, nics, true, flows, plan);
  return plan;
}

bool Communicator::heeds_plug_in(const Call& call) const {
  const bool has_choice = call.kind != CollectiveKind::all_to_all && call.kind != CollectiveKind::send_receive;
  if (!has_choice || survey_.machine.domains == 1 || survey_.machine.advertised_us == 0) return false;
  Machine other = survey_.machine;
  other.advertised_us = 0;
  const Choice with = choose(call), without = CostTable(other, graphs_, settings_).choose(call);
  return with.algorithm != without.algorithm || with.protocol != without.protocol;
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
// and chains. `nics`: through so many at most the domains are joined.
void Communicator::add_inside(const Traffic& traffic, int nics, Flows which, Plan& plan) const {
  if (traffic.inside <= 0) return;
  plan.form.push_back(kInside);
  std::set<std::pair<std::size_t, std::size_t>> seen;
  for (std::size_t d = 0; d < survey_.domains.size(); ++d) {
    const std::size_t gpus = survey_.domains[d].size();
    const std::size_t ends = joins_chains(d) ? ends_of(d, nics) : 0;
    if (gpus == 1) continue;
    if (which == Flows::first_of_a_kind && !seen.insert({gpus, ends}).second) continue;
    if (ends > 0) {
      add_chains(traffic, d, ends, plan.flows);
    } else {
      add_inside(traffic, survey_.domains[d], plan.flows);
    }
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

// Returns whether flows from NICs and to them load the links over which the domain's GPUs reach each other.
bool Communicator::joins_chains(std::size_t domain) const {
  const Intra intra = survey_.machine.intra;
  return survey_.domains.size() > 1 && survey_.domains[domain].size() > 1 && !survey_.ports.empty() &&
         (intra == Intra::pcie || intra == Intra::staged);
}

// Returns how many NICs join a domain to the next one, `nics` at most.
std::size_t Communicator::ends_of(std::size_t domain, int nics) const {
  const std::size_t next = (domain + 1) % survey_.domains.size();
  return std::min({survey_.ports[domain].size(), survey_.ports[next].size(), at(std::max(1, nics))});
}

// Returns the NIC through which the i-th of `ends` chains enters a domain and leaves it.
const Port& Communicator::end_at(std::size_t domain, std::size_t i, std::size_t ends) const {
  const std::vector<Port>& all = survey_.ports[domain];
  const std::size_t first = survey_.first_choices.empty() ? all.size() : survey_.first_choices[domain];
  return all[i * (ends <= first ? first : all.size()) / ends];
}

// Returns the GPU from which a chain leaves its domain: the last one, if the GPU at its NIC is the first.
int Communicator::last_of_chain(std::size_t domain, const Port& port) const {
  const std::vector<int>& gpus = survey_.domains[domain];
  const auto place = static_cast<std::size_t>(std::ranges::find(gpus, port.gpu) - gpus.begin());
  return gpus[(place + gpus.size() - 1) % gpus.size()];
}

// Adds a chain for each NIC: it begins at the GPU beside it, and passes the others in the order of the domain.
void Communicator::add_chains(const Traffic& traffic, std::size_t domain, std::size_t ends,
                              std::vector<Flow>& flows) const {
  const std::vector<int>& gpus = survey_.domains[domain];
  const std::size_t count = gpus.size();
  const double edge = traffic.inside * static_cast<double>(count) / static_cast<double>(count - 1);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t chains = 0;
    for (std::size_t end = 0; end < ends; ++end) {
      if (last_of_chain(domain, end_at(domain, end, ends)) != gpus[i]) ++chains;
    }
    const double bytes = edge * static_cast<double>(chains) / static_cast<double>(ends);
    if (chains > 0) flows.push_back({gpus[i], gpus[(i + 1) % count], bytes});
  }
}

// Every domain sends to the next one, through at most so many NICs. `chained`: from the last GPU of a chain.
void Communicator::add_between(const Traffic& traffic, int nics, bool chained, Flows which, Plan& plan) const {
  const std::size_t domains = survey_.domains.size();
  if (domains == 1 || traffic.between <= 0) return;
  plan.form.push_back(kBetween);
  std::vector<Flow>& flows = plan.flows;
  std::set<std::pair<std::size_t, std::size_t>> seen;
  for (std::size_t d = 0; d < domains; ++d) {
    const std::size_t next = (d + 1) % domains;
    const auto ports = [this](std::size_t domain) { return survey_.ports.empty() ? 0 : survey_.ports[domain].size(); };
    if (which == Flows::first_of_a_kind && !seen.insert({ports(d), ports(next)}).second) continue;
    if (survey_.ports.empty()) {
      flows.push_back({survey_.domains[d].front(), survey_.domains[next].front(), traffic.between});
      continue;
    }
    const std::size_t ends = ends_of(d, nics);
    for (std::size_t i = 0; i < ends; ++i) {
      const Port& sender = end_at(d, i, ends);
      const Port& receiver = end_at(next, i, ends);
      const int from = chained && joins_chains(d) ? last_of_chain(d, sender) : sender.gpu;
      flows.push_back({from, receiver.gpu, traffic.between / static_cast<double>(ends), sender.nic, receiver.nic});
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
  add_inside({is_chain ? inside * (machine.gpus - 1) / machine.gpus : inside, 0}, 1, which, plan);
  // Every GPU sends by the NIC nearest to it, not by those of the rings.
  add_between({0, part * others * machine.gpus}, machine.nics, false, which, plan);
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
