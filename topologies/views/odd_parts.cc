#include "topologies/views/odd_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topologies/views/machine_groups.h"

namespace tandem {
namespace {

// Among so many twins at least, and if at most this share of them is odd. Otherwise they are of two kinds.
constexpr std::size_t kFewestTwins = 4;
constexpr double kOddShare = 0.25;
constexpr double kRounding = 0.99;  // of a rate
constexpr double kLonger = 1.5;     // times, which are measured less exactly

bool is_less(double rate, double usual) {
  return rate < usual * kRounding;
}

// Something that has twins, and one of its figures.
struct Twin {
  std::string name;
  double value = 0;
};

// Returns the twins whose value is not the usual one, if they are few; `usual` is one that has it.
template <typename IsOdd>
std::vector<Twin> odd_ones(const std::vector<Twin>& twins, const IsOdd& is_odd, Twin& usual) {
  if (twins.size() < kFewestTwins) return {};
  std::map<double, std::size_t> counts;
  for (const Twin& twin : twins) ++counts[twin.value];
  const double most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
  usual = *std::ranges::find(twins, most, &Twin::value);
  std::vector<Twin> odd;
  std::ranges::copy_if(twins, std::back_inserter(odd), [&](const Twin& twin) { return is_odd(twin.value, most); });
  const bool are_few = static_cast<double>(odd.size()) <= kOddShare * static_cast<double>(twins.size());
  return are_few ? odd : std::vector<Twin>();
}

// "fabric.leaf12" and "fabric.leaf3" have one family.
std::string family_of(std::string_view name) {
  std::string family;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) family += c;
    if (is_digit && !family.ends_with('#')) family += '#';
  }
  return family;
}

class OddParts {
 public:
  OddParts(const Topology& topology, const PathMatrix& matrix, std::set<NodeIndex> known)
      : topology_(topology), matrix_(matrix), known_(std::move(known)) {}

  std::vector<std::string> find() {
    find_nics();
    find_links();
    find_machines();
    return std::move(texts_);
  }

 private:
  void say(const std::vector<Twin>& odd, const Twin& usual, std::string_view what) {
    if (odd.empty()) return;
    const std::string others = odd.size() == 1   ? ""
                               : odd.size() == 2 ? fmt::format(", and so '{}'", odd[1].name)
                                                 : fmt::format(", and so {} more", odd.size() - 1);
    texts_.push_back(fmt::format("'{}' has {:.4g} {}, its twin '{}' {:.4g}{}", odd.front().name, odd.front().value,
                                 what, usual.name, usual.value, others));
  }

  std::string name(std::size_t device) const { return topology_.node(matrix_.devices[device]).name; }

  double rate_of(std::size_t nic) const {
    const auto port = topology_.node(matrix_.devices[nic]).port;
    return port ? port->bandwidth_bytes_per_s.value / 1e9 : 0;
  }

  // GPUs of one product have NICs of one kind. NICs that are nearest to none may have another use.
  void find_nics() {
    std::map<std::string, std::vector<Twin>> of_gpus;
    std::map<std::string, NodeIndex> indices;
    std::vector<Twin> all;
    for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
      const NodeIndex index = matrix_.devices[i];
      if (topology_.kind(index) == NodeKind::nic) {
        indices[name(i)] = index;
        if (rate_of(i) > 0) all.push_back({name(i), rate_of(i)});
        continue;
      }
      const auto nics = nearest_nics(topology_, matrix_, i);
      const auto fastest = std::ranges::max_element(nics, {}, [&](std::size_t nic) { return rate_of(nic); });
      if (fastest == nics.end() || rate_of(*fastest) == 0) continue;
      const auto& device = topology_.device(index);
      of_gpus[device ? device->name : ""].push_back({name(*fastest), rate_of(*fastest)});
    }
    if (of_gpus.empty()) of_gpus[""] = all;
    for (const auto& [product, nics] : of_gpus) {
      Twin usual;
      std::vector<Twin> odd = odd_ones(nics, is_less, usual);
      std::set<std::string> names;  // several GPUs may have one NIC
      std::erase_if(odd, [&](const Twin& one) {
        return known_.contains(indices.at(one.name)) || !names.insert(one.name).second;
      });
      for (const Twin& one : odd) known_.insert(indices.at(one.name));
      say(odd, usual, "GB/s of network");
    }
  }

  // Compares links between nodes of one family: those of the first machine, and those of the fabric. The rates of links
  // of GPUs and NICs are compared elsewhere, each as a sum.
  void find_links() {
    std::map<std::string, std::vector<Twin>> rates, latencies;
    for (LinkIndex index = 0; index < topology_.link_count(); ++index) {
      const LinkModel& model = topology_.link_model(index);
      const bool is_of_other_machine = index < topology_.machine_links() && index >= topology_.links_of_machine();
      if (is_of_other_machine) continue;
      const Link link = topology_.link(index);
      const int from = topology_.worker(link.from), to = topology_.worker(link.to);
      if (from != to || from > 0) continue;
      std::string one = topology_.node(link.from).name, other = topology_.node(link.to).name;
      const std::string text = fmt::format("{} - {}", one, other);
      one = family_of(one);
      other = family_of(other);
      const std::string family = fmt::format("{} {} {} {}", std::min(one, other), std::max(one, other),
                                             name_of(model.kind), static_cast<int>(link.direction));
      const auto is_device = [&](NodeIndex end) {
        return topology_.kind(end) == NodeKind::gpu || topology_.kind(end) == NodeKind::nic;
      };
      latencies[family].push_back({text, model.latency_s.value * 1e6});
      const bool is_summed = topology_.kind(link.from) == NodeKind::gpu || topology_.kind(link.to) == NodeKind::gpu ||
                             (model.kind == LinkKind::network && (is_device(link.from) || is_device(link.to)));
      if (!is_summed) rates[family].push_back({text, model.bandwidth_bytes_per_s.value / 1e9});
    }
    for (const auto& [family, twins] : rates) {
      Twin usual;
      const std::vector<Twin> odd = odd_ones(twins, is_less, usual);
      say(odd, usual, "GB/s");
    }
    for (const auto& [family, twins] : latencies) {
      Twin usual;
      const auto is_longer = [](double time, double most) { return time > most * kLonger; };
      const std::vector<Twin> odd = odd_ones(twins, is_longer, usual);
      say(odd, usual, "us of latency");
    }
  }

  // Compares machines that have the same nodes and links.
  void find_machines() {
    if (topology_.worker_count() < 2) return;
    for (const MachineGroup& group : groups_of_machines(topology_)) {
      for (const MachineDifference& one : group.differences) {
        const bool is_behind = one.is_time ? one.value > one.usual * kLonger : is_less(one.value, one.usual);
        if (!is_behind || !known_.insert(one.node).second) continue;
        const std::string prefix = fmt::format("w{}.", group.workers.front());
        const std::string own_name = topology_.node(one.node).name;
        const std::string usual_name = topology_.node(one.usual_node).name;
        const bool has_prefix = own_name.starts_with(prefix);
        const std::string more =
            group.workers.size() > 1 ? fmt::format(", and so {} more machines", group.workers.size() - 1) : "";
        texts_.push_back(fmt::format("'{}' has {:.4g} {}, its twin '{}' {:.4g}{}",
                                     (has_prefix ? prefix : "") + one.part, one.value, one.what, usual_name, one.usual,
                                     more));
      }
    }
  }

  const Topology& topology_;
  const PathMatrix& matrix_;
  std::set<NodeIndex> known_;
  std::vector<std::string> texts_{};
};

}  // namespace

std::vector<std::string> odd_parts_of(const Topology& topology, const PathMatrix& matrix,
                                      const std::set<NodeIndex>& known) {
  return OddParts(topology, matrix, known).find();
}

}  // namespace tandem
