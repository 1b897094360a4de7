#include "engine/sim/symmetry/worker_classes.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "engine/sim/symmetry/faulty_parts.h"
#include "topologies/base/error.h"

namespace tandem::sim::symmetry {
namespace {

constexpr char32_t kOutside = 0x1000000;    // the other end of a link is no node of the same machine
constexpr char32_t kOneOfMany = 0x2000000;  // the number of the machine's kind follows

// Numbers models by their addresses, in order of occurrence: machines of one kind share them.
class ModelNumbers {
 public:
  char32_t of(const void* model) { return numbers_.try_emplace(model, numbers_.size()).first->second; }

 private:
  std::unordered_map<const void*, char32_t> numbers_;
};

}  // namespace

WorkerClasses::WorkerClasses(const EngineOptions& options) : options_(options) {
  const std::size_t workers = options.workers.size();
  class_of_.resize(workers);
  number_of_.resize(workers);
  const bool have_own_machines = find_machines();
  std::vector<std::u32string> machines;
  if (have_own_machines) machines = describe_machines();
  const std::vector<int> faulty = faulty_workers(options);
  using Key = std::tuple<int, std::string, DeviceType, int, std::u32string, int>;
  std::map<Key, int> known;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    const WorkerSpec& spec = options.workers[worker];
    int index = static_cast<int>(members_.size());
    if (have_own_machines) {
      Key key{options.alike[worker],
              spec.job,
              spec.device_type,
              spec.device_count,
              machines[static_cast<std::size_t>(spec.topology_worker)],
              faulty[worker]};
      index = known.try_emplace(std::move(key), index).first->second;
    }
    if (index == static_cast<int>(members_.size())) members_.emplace_back();
    members_[static_cast<std::size_t>(index)].push_back(static_cast<int>(worker));
  }
  number_members();
}

// Returns false if two workers share a machine, because each then has its own share of everything on it.
bool WorkerClasses::find_machines() {
  worker_on_.assign(static_cast<std::size_t>(options_.topology->worker_count()), -1);
  for (std::size_t worker = 0; worker < options_.workers.size(); ++worker) {
    int& place = worker_on_[static_cast<std::size_t>(options_.workers[worker].topology_worker)];
    if (place != -1) return false;
    place = static_cast<int>(worker);
  }
  return true;
}

// Returns a description of each machine: its kind, or its nodes in order, and its links with the places of their ends.
std::vector<std::u32string> WorkerClasses::describe_machines() {
  const Topology& topology = *options_.topology;
  std::vector<std::u32string> machines(worker_on_.size());
  const auto added_as_one_of_many = static_cast<std::size_t>(topology.machine_count());
  nodes_of_.resize(worker_on_.size() - added_as_one_of_many);
  places_.resize(topology.node_count() - topology.machine_nodes());
  ModelNumbers numbers;
  for (std::size_t machine = 0; machine < added_as_one_of_many; ++machine) {
    machines[machine] = {kOneOfMany, numbers.of(&topology.machine(static_cast<int>(machine)))};
  }
  for (NodeIndex index = topology.machine_nodes(); index < topology.node_count(); ++index) {
    const Node node = topology.node(index);
    if (node.worker == kNoWorker) continue;
    const auto machine = static_cast<std::size_t>(node.worker);
    std::vector<NodeIndex>& nodes = nodes_of_[machine - added_as_one_of_many];
    places_[index - topology.machine_nodes()] = static_cast<std::uint32_t>(nodes.size());
    nodes.push_back(index);
    machines[machine] += {static_cast<char32_t>(node.kind), numbers.of(node.device.get()), numbers.of(node.port.get())};
  }
  const auto append = [&](const Link& link, NodeIndex mine, NodeIndex other, char32_t side) {
    const int worker = topology.worker(mine);
    const bool is_inside = topology.worker(other) == worker;
    const char32_t end = is_inside ? place_of(other) : kOutside + static_cast<char32_t>(topology.kind(other));
    machines[static_cast<std::size_t>(worker)] +=
        {side, static_cast<char32_t>(link.direction), numbers.of(link.model.get()), place_of(mine), end};
  };
  for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    if (topology.worker(link.from) != kNoWorker) append(link, link.from, link.to, 0);
    if (topology.worker(link.to) != kNoWorker) append(link, link.to, link.from, 1);
  }
  return machines;
}

void WorkerClasses::number_members() {
  for (std::size_t index = 0; index < members_.size(); ++index) {
    for (std::size_t number = 0; number < members_[index].size(); ++number) {
      const auto worker = static_cast<std::size_t>(members_[index][number]);
      class_of_[worker] = static_cast<int>(index);
      number_of_[worker] = static_cast<int>(number);
    }
  }
}

bool WorkerClasses::has_middle_witness(int index) const {
  const int members = size(index);
  return members >= static_cast<int>(kManyAlike) || (members > 2 && distrusted_.contains(index));
}

bool WorkerClasses::runs(int worker) const {
  const int index = class_of(worker), number = number_of(worker);
  if (!options_.has_witnesses) return number == 0;
  return number == 0 || number + 1 == size(index) || (number == size(index) / 2 && has_middle_witness(index));
}

std::vector<int> WorkerClasses::running_members(int index) const {
  const int members = size(index);
  if (members == 1 || !options_.has_witnesses) return {0};
  if (!has_middle_witness(index)) return {0, members - 1};
  return {0, members / 2, members - 1};
}

bool WorkerClasses::saves_work() const {
  return std::any_of(members_.begin(), members_.end(),
                     [&](const auto& members) { return members.size() > options_.few_alike; });
}

void WorkerClasses::separate() {
  members_.clear();
  distrusted_.clear();
  for (std::size_t worker = 0; worker < class_of_.size(); ++worker) members_.push_back({static_cast<int>(worker)});
  number_members();
}

void WorkerClasses::split(int index, std::span<const std::uint32_t> part_of_member, bool members_differ) {
  const std::vector<int> all = std::move(members_[static_cast<std::size_t>(index)]);
  std::map<std::uint32_t, int> places = {{part_of_member.front(), index}};
  members_[static_cast<std::size_t>(index)].clear();
  for (std::size_t number = 0; number < all.size(); ++number) {
    const auto [place, is_new] = places.try_emplace(part_of_member[number], static_cast<int>(members_.size()));
    if (is_new) members_.emplace_back();
    members_[static_cast<std::size_t>(place->second)].push_back(all[number]);
  }
  if (members_differ || distrusted_.contains(index)) {
    for (const auto& [part, place] : places) distrusted_.insert(place);
  }
  number_members();
}

int WorkerClasses::member_at(NodeIndex node) const {
  TANDEM_CHECK(worker_at(node) >= 0, "a group uses others' machines");
  return number_of(worker_at(node));
}

NodeIndex WorkerClasses::twin(NodeIndex node, int number) const {
  TANDEM_CHECK(worker_at(node) >= 0 && number < size(class_of(worker_at(node))), "a group uses others' machines");
  const int worker = members(class_of(worker_at(node)))[static_cast<std::size_t>(number)];
  const int machine = options_.workers[static_cast<std::size_t>(worker)].topology_worker;
  return node_at(machine, place_of(node));
}

NodeIndex WorkerClasses::node_at(int machine, std::uint32_t place) const {
  const Topology& topology = *options_.topology;
  if (machine < topology.machine_count()) return static_cast<NodeIndex>(machine) * topology.nodes_of_machine() + place;
  return nodes_of_[static_cast<std::size_t>(machine - topology.machine_count())][place];
}

}  // namespace tandem::sim::symmetry
