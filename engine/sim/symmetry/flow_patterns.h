// All flows that a run has started so far, on every member of every class, and which of them represent others.
//
//   source     what starts flows again and again: a copy from one place of a machine to another, a group of devices. On
//              so many *images*: on each member of a class or each of the equal groups into which its members fall, or
//              once, where a group has all members of its classes
//   pattern    flows that a source starts together: the same ones on each image. Where devices of a worker represent
//              others, an image has *parts*: the flows of the devices that run, and those of the devices that do the
//              same, one part after the other
//   component  sources that have been under way at the same time, directly or through others: no flow ever shares a
//   link
//              with one of another component
//
// A link that can carry all that a component may have under way at the same time slows no flow down, and is ignored.
// Over the other links, the flows of a component are divided by one equitable partition. Each class of flows is
// simulated as one flow. It crosses one link of each class, as often as flows of its class cross a link of that class;
// the arithmetic of max-min fairness is then that of all flows, term by term.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/sim/network.h"
#include "engine/sim/symmetry/faulty_parts.h"
#include "engine/sim/symmetry/images.h"
#include "engine/sim/symmetry/partition.h"
#include "engine/sim/symmetry/worker_classes.h"

namespace tandem::sim::symmetry {

inline constexpr NodeIndex kNowhere = static_cast<NodeIndex>(-1);

// The nodes between which a flow runs and, where they are given, the NICs that it takes.
struct Via {
  NodeIndex from = 0, to = 0;
  NodeIndex from_nic = kNowhere, to_nic = kNowhere;
  bool operator==(const Via&) const = default;
};

// One flow of a pattern. Flows of one colour have equal bytes and bounds in every call.
struct PatternFlow {
  Via via;
  std::uint32_t colour = 0;
  bool operator==(const PatternFlow&) const = default;
};

// The flow that SimGrid is shown for a class of flows.
struct ClassFlow {
  std::uint32_t colour = 0;
  std::vector<std::uint32_t> members;  // the flows of the class, by their place in the pattern
  // The links of the first flow of the class. Where links may slow it down, one link of each class represents the
  // others, and is repeated as often as flows of this class cross it.
  Network::RoutePtr route;
};

using ClassFlows = std::vector<ClassFlow>;

class FlowPatterns {
 public:
  using Routes = std::function<void(const Via&, Route& into)>;  // appends the route

  // `faulty`: the links whose rates change.
  FlowPatterns(const Topology& topology, const WorkerClasses& classes, FaultyLinks faulty)
      : topology_(topology), classes_(classes), faulty_(std::move(faulty)) {}

  // Returns the source of this name, a new one if there is none yet. `classes`: the classes whose members fall into
  // `images`; empty: there is one image. `parts`: the parts of each image, with so many
  // devices of a worker that do the same in each.
  int source(const std::u32string& name, std::vector<int> classes, const Images& images, const Images& parts);
  const std::vector<int>& classes_of(int source) const { return sources_[static_cast<std::size_t>(source)].classes; }
  const Images& images_of(int source) const { return sources_[static_cast<std::size_t>(source)].images; }
  // Returns the pattern of a source that has these flows on one image. If it is new, calls `route` for all flows of all
  // images.
  int pattern(int source, int image, std::span<const PatternFlow> flows, const Routes& route);
  // Notes that `calls` calls of a source are under way at the same time, or that flows of two sources are.
  void see_concurrent_calls(int source, int calls);
  void see_together(int source, int other);

  bool is_outdated() const { return is_outdated_; }
  // Divides all flows anew. Returns false if flows of equal images fell into different classes; `split` has then been
  // called for the classes of workers concerned, with a part for each of their members. Returns false as well, and
  // calls nothing, if those of equal parts did: see parts_differ().
  using Split = std::function<void(int worker_class, std::span<const std::uint32_t> part_of_member)>;
  bool update(const Split& split);
  bool parts_differ() const { return parts_differ_; }
  // Each update makes new ones; the old ones stay what they were.
  const std::shared_ptr<const ClassFlows>& class_flows(int source, int pattern) const {
    return sources_[static_cast<std::size_t>(source)].patterns[static_cast<std::size_t>(pattern)].class_flows;
  }
  // Calls `take` for each flow of a pattern, on each image, with the directions of links that it crosses.
  using TakeFlow = std::function<void(std::uint32_t colour, std::span<const std::uint32_t> directions)>;
  void visit(int source, int pattern, const TakeFlow& take) const;
  // Whether flows that are under way in this form may stay in it now that equal ones have the form `now`: they then
  // take the same part in the links that limit flows as flows of that form.
  bool may_stay(const ClassFlows& flows, const ClassFlows& now) const;
  void clear();

 private:
  struct Pattern {
    std::vector<PatternFlow> flows;     // of the first image
    Crossings crossings;                // image by image; directions of links, as Platform numbers them
    std::vector<double> bytes_per_s{};  // the most that each flow can reach
    std::vector<double> latency_s{};
    std::shared_ptr<const ClassFlows> class_flows{};
    std::vector<std::uint32_t> representatives{};  // the links in them that stand for others
    bool is_new = true;                            // since the last update
  };
  struct Source {
    std::vector<int> classes;
    Images images{};
    std::size_t parts = 1;  // of an image
    bool members_do_the_same = false;
    int concurrent_calls = 1;  // the most that were under way at the same time
    int component = 0;         // number of a source, which may in turn have joined another component
    std::vector<Pattern> patterns{};
    bool is_divided = false;  // nothing in this source has changed since the last division of its component
    // How many calls and patterns are counted in the load of the links.
    int loaded_calls = 0;
    std::size_t loaded_patterns = 0;
  };
  class Division;
  // A link that is loaded to this share of its capacity slows nothing down; rounding of sums of bandwidths is far
  // smaller.
  static constexpr double kFull = 1 + 1e-12;

  int component_of(int source);
  std::uint32_t direction_of(const Edge& hop) const;
  Via on_image(Via via, const Source& source, int image) const;
  // Returns what tells a flow from others of its pattern: where an image has one worker and a part one of the devices
  // that do the same, each flow of a part has its own place in the work of its device. Several members do the same.
  static std::uint32_t colour_of(const Source& source, const Pattern& pattern, std::size_t flow) {
    if (source.classes.empty() || source.members_do_the_same) return pattern.flows[flow].colour;
    return static_cast<std::uint32_t>(flow % (pattern.flows.size() / source.parts));
  }
  void add_flow(Pattern& pattern, const Route& route) const;
  // The least that a link can carry at any time. Links with equal capacities are alike.
  struct Capacity {
    double bytes_per_s = 0;
    int fault = 0;
    auto operator<=>(const Capacity&) const = default;
  };
  Capacity capacity(std::uint32_t direction) const {
    const double own = topology_.link_model(direction / 2).bandwidth_bytes_per_s.value;
    const auto faulty = faulty_.empty() ? faulty_.end() : faulty_.find(direction / 2);
    if (faulty == faulty_.end()) return {own};
    return {own * faulty->second.least_share, faulty->second.number};
  }
  void add_load(Source& source);
  void add_load(const Source& source, std::size_t patterns, double factor);
  // Makes the class flows of new patterns without dividing anything, which works if they cross no link that may slow
  // flows down. Returns false if they do, or if flows of equal images differ.
  bool add_apart();
  bool make_apart(const Source& source, Pattern& pattern) const;
  bool may_stay(const ClassFlow& flow, const ClassFlow& now) const;
  // Divides the flows of the components that have changed. Returns false and calls `split` as update() does.
  bool divide(const Split& split);

  const Topology& topology_;
  const WorkerClasses& classes_;
  const FaultyLinks faulty_;
  std::vector<Source> sources_;
  std::unordered_map<std::u32string, int> names_;
  bool is_outdated_ = false;
  bool parts_differ_ = false;
  // By link, as Platform numbers directions.
  std::vector<double> load_{};         // what each would carry at most if all were one component
  std::vector<std::uint32_t> busy_{};  // those that may slow flows down, in the order in which they became so
  std::vector<bool> is_busy_{};
  std::vector<bool> stands_for_others_{};  // links on which SimGrid sees the flows of their class
  bool has_new_busy_links_ = false;
  // Components are distinguished only if classes would be split otherwise, because each one that grows costs an update.
  bool has_components_ = false;
  bool has_larger_components_ = false;         // since the last update
  std::vector<double> of_pattern_{}, most_{};  // used by add_load(), which leaves zeros behind
};

}  // namespace tandem::sim::symmetry
