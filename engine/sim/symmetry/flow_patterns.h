// All flows that a run has started so far, on every member of every class, and which of them represent which.
//
//   source    what starts flows again and again: a copy from one place of a machine to another, a group of devices. On
//             so many *images*: on each member of a class, or once, where a group has all members of its classes
//   pattern   flows that a source starts together: the same ones on each image
//
//   company   sources that have been under way at the same time, directly or through others: no flow ever shares a link
//             with one of another company
//
// Links that cannot slow any flow down, because they carry all that a company may have under way at the same time, tell
// nothing apart. Over the others, the flows of a company are divided by one equitable partition. A class of flows is
// simulated as one, which crosses one link of each class as often as a link of that class is crossed by flows of the
// class: the arithmetic of max-min fairness is then that of all flows, term by term.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/sim/network.h"
#include "engine/sim/symmetry/partition.h"
#include "engine/sim/symmetry/worker_classes.h"

namespace tandem::sim::symmetry {

inline constexpr NodeIndex kNowhere = static_cast<NodeIndex>(-1);

// Between which nodes a flow runs, and through which NICs, if it is told to.
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

// What SimGrid is shown for a class of flows.
struct ClassFlow {
  std::uint32_t colour = 0;
  // The links of the first flow of the class. Of those that may slow it down, one link of each class represents all,
  // and is there as often as flows of this class cross it.
  Network::RoutePtr route;
  bool operator==(const ClassFlow& other) const;
};

class FlowPatterns {
 public:
  using Routes = std::function<void(const Via&, Route& into)>;  // adds the route to what is there

  FlowPatterns(const Topology& topology, const WorkerClasses& classes) : topology_(topology), classes_(classes) {}

  // The source of this name, which is new if no other has it. `classes`: those whose members have the images, one each;
  // empty: there is one image.
  int source(const std::u32string& name, std::vector<int> classes);
  // The pattern of a source of which these are the flows on one image. If it is new, calls `route` for all flows of all
  // images.
  int pattern(int source, int image, std::span<const PatternFlow> flows, const Routes& route);
  // So many calls of a source are under way at the same time; flows of both sources are.
  void see_at_once(int source, int calls);
  void see_together(int source, int other);

  bool is_outdated() const { return is_outdated_; }
  // Divides all flows anew. Returns false if flows of equal images fell into different classes: `split` has been called
  // for the classes concerned, with a part for each of their members.
  using Split = std::function<void(int worker_class, std::span<const std::uint32_t> part_of_member)>;
  bool update(const Split& split);
  const std::vector<ClassFlow>& class_flows(int source, int pattern) const {
    return sources_[static_cast<std::size_t>(source)].patterns[static_cast<std::size_t>(pattern)].class_flows;
  }
  void clear();

 private:
  struct Pattern {
    std::vector<PatternFlow> flows;     // of the first image
    Crossings crossings;                // image by image; directions of links, as Platform numbers them
    std::vector<double> bytes_per_s{};  // which each flow reaches at most
    std::vector<double> latency_s{};
    std::vector<ClassFlow> class_flows{};
    bool is_new = true;  // since the last update
  };
  struct Source {
    std::vector<int> classes;
    int images = 1;
    int at_once = 1;
    int company = 0;  // by the number of a source, which may have joined another one's
    std::vector<Pattern> patterns{};
    // How many of these are in the load of the links.
    int loaded_at_once = 0;
    std::size_t loaded_patterns = 0;
  };
  class Division;
  // A link that carries this much of its capacity slows nothing down: rounding of sums of bandwidths is far below.
  static constexpr double kFull = 1 + 1e-12;

  int company_of(int source);
  std::uint32_t direction_of(const Edge& hop) const;
  Via on_image(Via via, const Source& source, int image) const;
  void add_flow(Pattern& pattern, const Route& route) const;
  double capacity(std::uint32_t direction) const {
    return topology_.link_model(direction / 2).bandwidth_bytes_per_s.value;
  }
  void add_load(Source& source);
  void add_load(const Source& source, std::size_t patterns, double factor);
  // Makes the class flows of what is new, where it crosses no link that may slow flows down. Returns false otherwise,
  // or if flows of equal images differ.
  bool add_apart();
  bool make_apart(const Source& source, Pattern& pattern) const;
  // Divides the flows of all patterns. Returns false, and says so to `split`, as update() does.
  bool divide(const Split& split);

  const Topology& topology_;
  const WorkerClasses& classes_;
  std::vector<Source> sources_;
  std::unordered_map<std::u32string, int> names_;
  bool is_outdated_ = false;
  // By link, as Platform numbers directions.
  std::vector<double> load_{};         // what each would carry at most if all were one company
  std::vector<std::uint32_t> busy_{};  // those that may slow flows down, in the order in which they became so
  std::vector<bool> is_busy_{};
  bool has_new_busy_links_ = false;
  // Companies are told apart where classes would be split without: this costs an update for each that grows.
  bool has_companies_ = false;
  bool has_larger_companies_ = false;          // since the last update
  std::vector<double> of_pattern_{}, most_{};  // of add_load(), which leaves zeros behind
};

}  // namespace tandem::sim::symmetry
