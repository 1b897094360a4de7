// Divides all flows into classes, component by component.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "engine/sim/symmetry/flow_patterns.h"
#include "topologies/base/error.h"

namespace tandem::sim::symmetry {

// One division of all flows.
class FlowPatterns::Division {
 public:
  explicit Division(FlowPatterns& all) : all_(all) {}

  bool run(const Split& split) {
    place_of_.assign(all_.load_.size(), kIdle);
    for (std::size_t i = 0; i < all_.busy_.size(); ++i) place_of_[all_.busy_[i]] = static_cast<std::uint32_t>(i);
    collect_components();
    partition_ = equitable_partition(crossings_, flow_colours_, link_colours_);
    if (all_.parts_differ_ = have_different_parts(); all_.parts_differ_ || split_classes(split)) return false;
    count();
    std::size_t first = 0;
    for (Source* source : sources_) {
      for (Pattern& pattern : source->patterns) {
        make_class_flows(pattern, first);
        pattern.is_new = false;
        first += pattern.crossings.flows();
      }
      source->is_divided = true;
    }
    note_representatives();
    return true;
  }

 private:
  // Collects the components that have changed: the classes of a component depend on nothing else. A link that may slow
  // down flows of several components gets a slot of its own in each.
  void collect_components() {
    for (std::vector<double>* by_place : {&load_, &of_pattern_, &most_}) by_place->resize(all_.busy_.size());
    slot_of_.assign(all_.busy_.size(), kIdle);
    std::vector<Source*> sources;
    for (std::size_t i = 0; i < all_.sources_.size(); ++i) {
      all_.sources_[i].component = all_.component_of(static_cast<int>(i));
      sources.push_back(&all_.sources_[i]);
    }
    if (all_.has_components_) std::ranges::stable_sort(sources, {}, &Source::component);
    for (auto first = sources.begin(), last = first; first != sources.end(); first = last) {
      last = std::find_if(first, sources.end(), [&](const Source* source) {
        return all_.has_components_ && source->component != (*first)->component;
      });
      const std::span component(first, last);
      if (std::ranges::all_of(component, &Source::is_divided)) continue;
      sources_.insert(sources_.end(), first, last);
      for (const Source* source : component) add_load(*source);
      add_slots();
      collect(component);
      for (const std::uint32_t place : crossed_) load_[place] = 0, slot_of_[place] = kIdle;
      crossed_.clear();
    }
  }

  // Works like FlowPatterns::add_load(), but only on the links that are busy when all flows are one component.
  void add_load(const Source& source) {
    std::vector<std::uint32_t> crossed, crossed_by_pattern;
    for (const Pattern& pattern : source.patterns) {
      for (std::size_t flow = 0; flow < pattern.crossings.flows(); ++flow) {
        for (const std::uint32_t link : pattern.crossings.of(flow)) {
          const std::uint32_t place = place_of_[link];
          if (place == kIdle) continue;
          if (of_pattern_[place] == 0) crossed_by_pattern.push_back(place);
          of_pattern_[place] += pattern.bytes_per_s[flow];
        }
      }
      for (const std::uint32_t place : crossed_by_pattern) {
        if (most_[place] == 0) crossed.push_back(place);
        most_[place] = std::max(most_[place], std::exchange(of_pattern_[place], 0.0));
      }
      crossed_by_pattern.clear();
    }
    for (const std::uint32_t place : crossed) {
      if (load_[place] == 0) crossed_.push_back(place);
      load_[place] += source.concurrent_calls * std::exchange(most_[place], 0.0);
    }
  }

  void add_slots() {
    for (const std::uint32_t place : crossed_) {
      const std::uint32_t link = all_.busy_[place];
      const Capacity capacity = all_.capacity(link);
      if (load_[place] <= capacity.bytes_per_s * kFull) continue;
      slot_of_[place] = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(link);
      link_colours_.push_back(
          capacities_.try_emplace(capacity, static_cast<std::uint32_t>(capacities_.size())).first->second);
    }
  }

  // Returns the slot of a link for the component that is being collected.
  std::uint32_t slot_of(std::uint32_t link) const {
    const std::uint32_t place = place_of_[link];
    return place == kIdle ? kIdle : slot_of_[place];
  }

  // Flows of different sources, patterns, and images on different classes never share a class.
  void collect(std::span<Source* const> component) {
    auto last = colours_.end();  // flows of one kind often follow each other
    for (const Source* source : component) {
      for (const Pattern& pattern : source->patterns) {
        for (std::size_t flow = 0; flow < pattern.crossings.flows(); ++flow) {
          const Colour key{patterns_, colour_of(*source, pattern, flow % pattern.flows.size()),
                           pattern.bytes_per_s[flow], pattern.latency_s[flow]};
          if (last == colours_.end() || last->first != key) {
            last = colours_.try_emplace(key, static_cast<std::uint32_t>(colours_.size())).first;
          }
          flow_colours_.push_back(last->second);
          for (const std::uint32_t link : pattern.crossings.of(flow)) {
            if (slot_of(link) != kIdle) crossings_.links.push_back(slot_of(link));
          }
          crossings_.close_flow();
        }
        ++patterns_;
      }
    }
  }

  // Whether the flows of some part of an image are in other classes than those of its first part.
  bool have_different_parts() const {
    std::size_t first = 0;
    for (const Source* source : sources_) {
      for (const Pattern& pattern : source->patterns) {
        if (source->parts > 1 && has_different_parts(*source, pattern, first)) return true;
        first += pattern.crossings.flows();
      }
    }
    return false;
  }

  bool has_different_parts(const Source& source, const Pattern& pattern, std::size_t first) const {
    const std::size_t part = pattern.flows.size() / source.parts;
    std::vector<std::uint32_t> expected, found;
    for (std::size_t flow = 0; flow < pattern.crossings.flows(); flow += part) {
      const auto begin = partition_.flow_class.begin() + static_cast<std::ptrdiff_t>(first + flow);
      found.assign(begin, begin + static_cast<std::ptrdiff_t>(part));
      std::ranges::sort(found);
      if (flow % pattern.flows.size() == 0) {
        expected = found;
      } else if (found != expected) {
        return true;
      }
    }
    return false;
  }

  // Splits the classes of workers whose members' flows are in different classes.
  bool split_classes(const Split& split) {
    bool is_split = false;
    std::size_t first = 0;
    for (const Source* source : sources_) {
      std::map<std::u32string, std::uint32_t> parts;
      std::vector<std::u32string> images(static_cast<std::size_t>(source->images.count));
      for (const Pattern& pattern : source->patterns) {
        const std::size_t width = pattern.flows.size();
        for (std::size_t flow = 0; flow < pattern.crossings.flows(); ++flow) {
          if (width > 0) images[flow / width].push_back(partition_.flow_class[first + flow]);
        }
        first += pattern.crossings.flows();
      }
      if (source->classes.empty() || is_split) continue;  // one split at a time, because it renumbers the members
      std::vector<std::uint32_t> part_of_member;
      const Images& groups = source->images;
      for (int member = 0; member < groups.count * groups.members; ++member) {
        const std::u32string& image = images[static_cast<std::size_t>(groups.of(member))];
        part_of_member.push_back(parts.try_emplace(image, static_cast<std::uint32_t>(parts.size())).first->second);
      }
      if (parts.size() == 1) continue;
      is_split = true;
      for (const int index : source->classes) split(index, part_of_member);
    }
    return is_split;
  }

  void count() {
    for (const std::uint32_t index : partition_.link_class) {
      if (index >= links_in_.size()) links_in_.resize(index + 1), first_link_.resize(index + 1);
      if (links_in_[index]++ == 0) first_link_[index] = static_cast<std::uint32_t>(next_link_);
      ++next_link_;
    }
    members_.clear();
    for (const std::uint32_t index : partition_.flow_class) {
      if (index >= members_.size()) members_.resize(index + 1);
      ++members_[index];
    }
  }

  // The first flow of each class represents it. A class has flows of this pattern only.
  void make_class_flows(Pattern& pattern, std::size_t first) {
    ClassFlows class_flows;
    pattern.representatives.clear();
    const std::size_t width = pattern.flows.size();
    for (std::size_t flow = 0; flow < width; ++flow) {
      const std::uint32_t index = partition_.flow_class[first + flow];
      const auto [known, is_new] = seen_.try_emplace(index, class_flows.size());
      if (!is_new) {
        class_flows[known->second].members.push_back(static_cast<std::uint32_t>(flow));
        continue;
      }
      std::map<std::uint32_t, std::uint32_t> times;  // by class of link
      const std::span<const std::uint32_t> slots = crossings_.of(first + flow);
      for (const std::uint32_t slot : slots) ++times[partition_.link_class[slot]];
      Route route{.hops = {}, .latency_s = pattern.latency_s[flow], .bandwidth_bytes_per_s = pattern.bytes_per_s[flow]};
      auto slot = slots.begin();
      for (const std::uint32_t link : pattern.crossings.of(flow)) {
        if (slot != slots.end() && slots_[*slot] == link) {
          ++slot;
        } else {
          route.hops.push_back(edge_of(link));
        }
      }
      for (const auto& [link_class, crossed] : times) {
        const std::uint64_t all = std::uint64_t{crossed} * members_[index];
        TANDEM_CHECK(all % links_in_[link_class] == 0, "a partition of flows that is not equitable");
        const std::uint32_t representative = slots_[first_link_[link_class]];
        route.hops.insert(route.hops.end(), all / links_in_[link_class], edge_of(representative));
        pattern.representatives.push_back(representative);
      }
      class_flows.push_back({.colour = pattern.flows[flow].colour,
                             .members = {static_cast<std::uint32_t>(flow)},
                             .route = std::make_shared<const Route>(std::move(route))});
    }
    pattern.class_flows = std::make_shared<const ClassFlows>(std::move(class_flows));
  }

  void note_representatives() {
    all_.stands_for_others_.assign(all_.load_.size(), false);
    for (const Source& source : all_.sources_) {
      for (const Pattern& pattern : source.patterns) {
        for (const std::uint32_t link : pattern.representatives) all_.stands_for_others_[link] = true;
      }
    }
  }

  static Edge edge_of(std::uint32_t direction) { return {direction / 2, direction % 2 == 0}; }

  static constexpr std::uint32_t kIdle = static_cast<std::uint32_t>(-1);

  // Distinguishes flows from the start: pattern, place in it, bandwidth and latency.
  using Colour = std::tuple<std::uint32_t, std::uint32_t, double, double>;

  FlowPatterns& all_;
  std::vector<Source*> sources_;         // of the components that have changed, one component after the other
  std::vector<std::uint32_t> place_of_;  // by direction, in busy_
  std::vector<std::uint32_t> slots_;     // the direction that each slot is
  std::map<Capacity, std::uint32_t> capacities_;
  std::map<Colour, std::uint32_t> colours_;
  std::uint32_t patterns_ = 0;
  // By place, for the component that is being collected.
  std::vector<std::uint32_t> slot_of_, crossed_;
  std::vector<double> load_, of_pattern_, most_;
  Crossings crossings_;
  std::vector<std::uint32_t> flow_colours_, link_colours_;
  Partition partition_;
  std::vector<std::uint32_t> links_in_, first_link_, members_;  // by class
  std::size_t next_link_ = 0;
  std::map<std::uint32_t, std::size_t> seen_;  // class of flows -> its place in its pattern's class flows
};

bool FlowPatterns::divide(const Split& split) {
  return Division(*this).run(split);
}

}  // namespace tandem::sim::symmetry
