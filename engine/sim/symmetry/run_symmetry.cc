#include "engine/sim/symmetry/run_symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/sim_run.h"

namespace tandem::sim::symmetry {
namespace {

constexpr char32_t kGroup = 1;
constexpr char32_t kImage = 2;
constexpr char32_t kImageApart = 3;    // whose members are no neighbours
constexpr char32_t kRing = 0x1000000;  // at the end: the sends of all members, so many places further

}  // namespace

const RunSymmetry::Role& RunSymmetry::role_of(const CollectiveGroup& group) {
  const auto [known, is_new] = roles_.try_emplace(&group);
  Role& role = known->second;  // stays where it is, unlike the iterator, when role_in_ring() adds that of the ring
  if (is_new) role = group.ring() != nullptr ? role_in_ring(group) : find_role(group);
  return role;
}

// The members of the ring belong to one class, and each of them that runs starts the sends of all.
RunSymmetry::Role RunSymmetry::role_in_ring(const CollectiveGroup& pair) {
  const CollectiveGroup& ring = *pair.ring();
  Role role = role_of(ring);
  if (role.source < 0) return role;  // given up
  if (role.classes.size() > 1) {
    give_up(ring);
    return {};
  }
  role.calls *= static_cast<int>(ring.devices().size());
  role.calls /= ring.place_count_of(pair.devices().front()->worker());  // each of them makes a call of its own
  role.source = number_of_source(ring, role, pair.ring_step());
  return role;
}

// A group either has all members of its classes, and is the only such group, or has some members of each class, and the
// others have equal groups.
RunSymmetry::Role RunSymmetry::find_role(const CollectiveGroup& group) {
  const WorkerClasses& classes = state_.classes();
  std::map<int, std::set<int>> members;  // by class
  for (const SimDevice* device : group.devices()) {
    members[classes.class_of(device->worker())].insert(classes.number_of(device->worker()));
  }
  const bool has_all = std::ranges::all_of(
      members, [&](const auto& entry) { return static_cast<int>(entry.second.size()) == classes.size(entry.first); });
  Role role;
  if (!has_all) {
    const int first_class = members.begin()->first;
    const auto& first_members = members.begin()->second;
    const std::vector<int> numbers(first_members.begin(), first_members.end());
    const std::optional<Images> images = images_of(numbers, classes.size(first_class));
    const bool are_images =
        images && std::ranges::all_of(members, [&](const auto& entry) {
          return entry.second == first_members && classes.size(entry.first) == classes.size(first_class);
        });
    if (!are_images) {
      if (run_.scheduler().has_failed()) return {};
      state_.separate_workers("a group of devices has some of the workers that are alike, but not all");
      repeat();
      return {};
    }
    role.images = *images;
    role.number = images->of(numbers.front());
    role.calls = images->count;
    for (const auto& entry : members) role.classes.push_back(entry.first);
  }
  role.parts = parts_of(group);
  role.calls *= role.parts.count;
  role.source = number_of_source(group, role);
  return role;
}

Images RunSymmetry::parts_of(const CollectiveGroup& group) {
  const DeviceBlocks& blocks = state_.blocks();
  std::map<std::pair<int, int>, std::set<int>> in_block;  // places, by worker and number of the block
  for (const SimDevice* device : group.devices()) {
    if (device->id().type != DeviceType::gpu) continue;
    in_block[{device->worker(), device->id().index / blocks.size()}].insert(blocks.place_of(device->id()));
  }
  if (in_block.empty()) return {};
  const std::set<int>& first = in_block.begin()->second;
  const bool are_equal = std::ranges::all_of(in_block, [&](const auto& entry) { return entry.second == first; });
  const std::vector<int> places(first.begin(), first.end());
  const std::optional<Images> parts = are_equal ? images_of(places, blocks.size()) : std::nullopt;
  if (parts && places.front() == 0) return *parts;
  shrink_blocks();
  return {};
}

void RunSymmetry::shrink_blocks() {
  if (run_.scheduler().has_failed()) return;
  state_.shrink_blocks();
  repeat();
}

int RunSymmetry::number_of_source(const CollectiveGroup& group, const Role& role, int ring_step) {
  std::u32string name(1, role.classes.empty() ? kGroup : role.images.are_neighbours ? kImage : kImageApart);
  for (const SimDevice* device : group.devices()) {
    if (role.classes.empty()) {
      name.push_back(static_cast<char32_t>(device->index()));
      continue;
    }
    const int member = state_.classes().number_of(device->worker());
    name += {static_cast<char32_t>(state_.classes().class_of(device->worker())),
             static_cast<char32_t>(role.images.place_of(member)), static_cast<char32_t>(device->id().type),
             static_cast<char32_t>(device->id().index)};
  }
  if (ring_step > 0) name += {kRing, static_cast<char32_t>(ring_step)};
  return state_.patterns().source(name, role.classes, role.images, role.parts);
}

void RunSymmetry::begin_step(int step) {
  if (!is_provisional_) return;
  if (!provisional_step_) provisional_step_ = step;
  if (step > *provisional_step_) repeat();
}

void RunSymmetry::give_up(const std::string& why) {
  if (run_.scheduler().has_failed()) return;
  state_.turn_off(why);
  repeat();
}

void RunSymmetry::repeat() {
  run_.scheduler().fail(std::make_exception_ptr(Again()), Scheduler::Concerns::all_tasks);
}

int RunSymmetry::running_of(int index, const Images& images) const {
  std::set<int> running;
  for (const int member : state_.classes().running_members(index)) running.insert(images.of(member));
  return static_cast<int>(running.size());
}

std::vector<int> RunSymmetry::companions_of(int index) const {
  std::vector<int> found = {index};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [group, role] : roles_) {
      if (!std::ranges::count(role.classes, found[i])) continue;
      for (const int other : role.classes) {
        if (!std::ranges::count(found, other)) found.push_back(other);
      }
    }
  }
  std::sort(found.begin() + 1, found.end());  // roles_ is ordered by addresses
  return found;
}

void RunSymmetry::give_up(const CollectiveGroup& ring) {
  if (ring.worker_count() == 1) return shrink_blocks();
  if (run_.scheduler().has_failed()) return;
  const Role& role = role_of(ring);
  if (role.classes.size() != 1 || role.images.members == 1) {
    state_.separate_workers("workers that are alike send to each other in different ways");
    return repeat();
  }
  // The members at one place in all rings stay alike. Classes of one size are numbered alike.
  const int size = state_.classes().size(role.classes.front());
  std::vector<std::uint32_t> places;
  for (int member = 0; member < size; ++member) {
    places.push_back(static_cast<std::uint32_t>(role.images.place_of(member)));
  }
  for (int index = 0; index < std::ssize(state_.classes().classes()); ++index) {
    if (state_.classes().size(index) == size) state_.split(index, places);
  }
  repeat();
}

// Provisional times prove nothing.
void RunSymmetry::differ(const CallFlows& flows, const std::vector<int>& others, const std::string& what) {
  if (run_.scheduler().has_failed()) return;
  if (is_provisional_) return repeat();
  const Images& images = state_.patterns().images_of(flows.source);
  const int in_image = flows.ring != nullptr ? static_cast<int>(flows.ring->devices().size()) : 1;
  const auto is_other = [&](int number) {
    return std::ranges::any_of(others, [&](int one) { return one / in_image == images.of(number); });
  };
  const std::vector<int>& classes = state_.patterns().classes_of(flows.source);
  const std::vector<int> running =
      classes.empty() ? std::vector<int>() : state_.classes().running_members(classes.front());
  if (flows.ring != nullptr && std::ranges::all_of(running, is_other)) return give_up(*flows.ring);
  const int index = classes.front();
  std::vector<std::uint32_t> parts;
  for (const int number : running) parts.push_back(is_other(number) ? 1 : 0);
  const auto worker = [&](auto found) { return state_.classes().members(index)[static_cast<std::size_t>(*found)]; };
  state_.split_between(companions_of(index), parts,
                       fmt::format("worker {} {} than worker {}", worker(std::ranges::find_if(running, is_other)), what,
                                   worker(std::ranges::find_if_not(running, is_other))));
  repeat();
}

void RunSymmetry::count_links() const {
  const Topology& topology = run_.topology();
  std::set<int> machines{kNoWorker};
  for (const std::vector<int>& members : state_.classes().classes()) {
    machines.insert(run_.specs()[static_cast<std::size_t>(members.front())].topology_worker);
  }
  const auto is_shown = [&](std::uint32_t direction) {
    const LinkIndex index = direction / 2;
    if (index < topology.machine_links()) {  // which may be many
      return machines.contains(static_cast<int>(index / topology.links_of_machine()));
    }
    const Link link = topology.link(index);
    const int from = topology.worker(link.from), to = topology.worker(link.to);
    if (from != kNoWorker && to != kNoWorker) return machines.contains(from) || machines.contains(to);
    return machines.contains(from) && machines.contains(to);
  };
  std::unordered_map<std::uint32_t, double> bytes_of;
  for (const auto& carried : carried_) {
    const auto& place = carried.first;
    const auto& by_colour = carried.second;
    state_.patterns().visit(place.first, place.second,
                            [&](std::uint32_t colour, std::span<const std::uint32_t> crossed) {
                              const auto bytes = by_colour.find(colour);
                              if (bytes == by_colour.end()) return;
                              for (const std::uint32_t direction : crossed) {
                                if (is_shown(direction)) bytes_of[direction] += bytes->second;
                              }
                            });
  }
  for (const auto& [direction, bytes] : bytes_of) run_.network().carry(direction, bytes);
}

void RunSymmetry::finish(Timeline& timeline) {
  if (split_by_records(timeline)) throw Again();
  timeline.alike_devices = state_.blocks().size();
  if (!state_.classes().saves_work()) return;
  std::set<int> witnesses;
  for (const std::vector<int>& members : state_.classes().classes()) {
    timeline.classes.push_back({.representative = members.front(), .workers = static_cast<int>(members.size())});
    for (const int worker : members) {
      if (worker != members.front() && runs(worker)) witnesses.insert(worker);
    }
  }
  std::ranges::sort(timeline.classes, {}, &WorkerClass::representative);
  std::erase_if(timeline.records, [&](const Record& record) { return witnesses.contains(record.worker); });
}

bool RunSymmetry::split_by_records(const Timeline& timeline) {
  RecordsOf records;
  for (const Record& record : timeline.records) records[record.worker].push_back(&record);
  bool is_split = false;
  std::set<int> seen;
  for (int index = 0; index < static_cast<int>(state_.classes().classes().size()); ++index) {
    if (state_.classes().size(index) == 1 || seen.contains(index)) continue;
    std::string why;
    std::vector<std::uint32_t> parts = parts_by_records(index, records, why);
    if (why.empty()) continue;
    const std::vector<int> together = companions_of(index);
    seen.insert(together.begin(), together.end());
    for (const int other : together) {
      // Two members are in one part if they are in all of these classes.
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> both;
      const std::vector<std::uint32_t> of_other = parts_by_records(other, records, why);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto next = static_cast<std::uint32_t>(both.size());
        parts[i] = both.try_emplace({parts[i], of_other[i]}, next).first->second;
      }
    }
    state_.split_between(together, parts, why);
    is_split = true;
  }
  return is_split;
}

// Returns, for each running member, the first one with equal records. Sets `why` if they are not all the same one.
std::vector<std::uint32_t> RunSymmetry::parts_by_records(int index, const RecordsOf& records, std::string& why) const {
  std::vector<int> workers;
  for (const int number : state_.classes().running_members(index)) {
    workers.push_back(state_.classes().members(index)[static_cast<std::size_t>(number)]);
  }
  std::vector<std::uint32_t> parts;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    std::size_t same = 0;
    for (; same < i; ++same) {
      if (parts[same] != same) continue;
      const std::string what = difference(workers[same], workers[i], records);
      if (what.empty()) break;
      why = fmt::format("worker {} did not do the same as worker {}: {}", workers[i], workers[same], what);
    }
    parts.push_back(static_cast<std::uint32_t>(same));
  }
  return parts;
}

// Compares their records one by one. Returns the first difference, or nothing.
std::string RunSymmetry::difference(int worker, int witness, const RecordsOf& records) const {
  static const std::vector<const Record*> none;
  const auto of = [&](int one) -> const auto& {
    const auto found = records.find(one);
    return found == records.end() ? none : found->second;
  };
  const std::vector<const Record*>&mine = of(worker), &theirs = of(witness);
  const int between = run_.first_device_of(witness) - run_.first_device_of(worker);
  const auto facts = [](const Record& record, int moved) {
    const int device = record.device == kNoDevice ? kNoDevice : record.device + moved;
    return std::tuple(record.kind, record.category, record.name, device, record.stream, record.step, record.start_ns,
                      record.end_ns, record.bytes, record.flops, record.ranks, record.algorithm);
  };
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i >= mine.size() || i >= theirs.size()) return fmt::format("{} records, not {}", theirs.size(), mine.size());
    if (facts(*mine[i], between) != facts(*theirs[i], 0)) {
      return fmt::format("'{}' at {} ns is '{}' at {} ns", theirs[i]->name.text(), theirs[i]->start_ns,
                         mine[i]->name.text(), mine[i]->start_ns);
    }
  }
  return {};
}

}  // namespace tandem::sim::symmetry
