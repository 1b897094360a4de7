#include "topologies/readers/fabrics/slurm_tree.h"

#include <fmt/format.h>

#include <map>

namespace tandem {
namespace {

class SlurmTree {
 public:
  SlurmTree(const std::vector<SlurmLine>& lines, const std::string& file, Diagnostics& problems)
      : lines_(lines), file_(file), problems_(problems) {}

  FabricDescription build() {
    for (const SlurmLine& line : lines_) add_switch(line);
    for (const SlurmLine& line : lines_) join(line);
    add_core();
    if (fabric_.hosts.empty() && problems_.empty()) problem(1, 1, "no switch has nodes");
    problems_.throw_if_any();
    if (fabric_.blocks.size() != fabric_.hosts.size()) fabric_.blocks.clear();  // blocks and switches in one file
    check_tree();
    problems_.throw_if_any();
    return std::move(fabric_);
  }

 private:
  void problem(int line, int column, const std::string& message) { problems_.add({file_, line, column, "", message}); }

  void add_switch(const SlurmLine& line) {
    const auto name = line.values.contains("switchname") ? line.values.at("switchname") : line.values.at("blockname");
    if (name.first.empty()) return problem(line.number, name.second, "a switch without a name");
    if (by_name_.emplace(name.first, fabric_.switches.size()).second) {
      fabric_.switches.push_back(name.first);
      above_.push_back(0);
    } else {
      problem(line.number, name.second, "a second switch " + name.first);
    }
  }

  std::vector<std::string> list(const SlurmLine& line, const std::string& key) {
    const auto found = line.values.find(key);
    if (found == line.values.end()) return {};
    auto names = hosts_of_list(found->second.first);
    if (!names) {
      problem(line.number, found->second.second,
              fmt::format("{}: expected a list such as node[01-16,20], of at most a million names", key));
    }
    return names.value_or(std::vector<std::string>{});
  }

  void join(const SlurmLine& line) {
    if (!problems_.empty()) return;
    const auto& name = line.values.contains("switchname") ? line.values.at("switchname") : line.values.at("blockname");
    const std::size_t own = by_name_.at(name.first);
    if (!line.values.contains("nodes") && !line.values.contains("switches")) {
      problem(line.number, name.second, "switch " + name.first + " has neither Nodes nor Switches");
    }
    for (const std::string& node : list(line, "nodes")) {
      const auto [known, is_new] = hosts_.emplace(node, fabric_.hosts.size());
      if (is_new) fabric_.hosts.push_back(node);
      if (is_new) fabric_.ports.push_back({known->second, "", own, 0, ""});
      if (is_new && line.values.contains("blockname")) fabric_.blocks.push_back(own);
      if (!is_new) problem(line.number, line.values.at("nodes").second, "node " + node + " is at two switches");
    }
    for (const std::string& below : list(line, "switches")) {
      const auto other = by_name_.find(below);
      const int column = line.values.at("switches").second;
      if (other == by_name_.end()) {
        problem(line.number, column, "no switch " + below + " in this file");
      } else if (other->second == own) {
        problem(line.number, column, "switch " + below + " below itself");
      } else {
        fabric_.cables.push_back({other->second, own, 0, ""});
        ++above_[other->second];
      }
    }
  }

  // Blocks have nothing above them, so a core switch joins them.
  void add_core() {
    std::vector<std::size_t> roots;
    for (std::size_t i = 0; i < above_.size(); ++i) {
      if (above_[i] == 0) roots.push_back(i);
    }
    const bool has_blocks = !lines_.empty() && lines_.front().values.contains("blockname");
    if (roots.size() < 2 || !has_blocks) return;
    for (const std::size_t root : roots) fabric_.cables.push_back({root, fabric_.switches.size(), 0, ""});
    fabric_.switches.emplace_back("core");
    above_.push_back(0);
  }

  // The width of a cable is that of all cables below it, so there must be no circles.
  void check_tree() {
    std::vector<int> left(fabric_.switches.size(), 0);
    for (const auto& cable : fabric_.cables) ++left[cable.to];
    std::vector<std::size_t> done;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] == 0) done.push_back(i);
    }
    std::multimap<std::size_t, std::size_t> up;
    for (const auto& cable : fabric_.cables) up.emplace(cable.from, cable.to);
    for (std::size_t i = 0; i < done.size(); ++i) {
      for (auto [at, end] = up.equal_range(done[i]); at != end; ++at) {
        if (--left[at->second] == 0) done.push_back(at->second);
      }
    }
    if (done.size() < left.size()) problem(1, 1, "switches that are below each other in a circle");
  }

  const std::vector<SlurmLine>& lines_;
  const std::string& file_;
  Diagnostics& problems_;
  FabricDescription fabric_{};
  std::map<std::string, std::size_t> by_name_{}, hosts_{};
  std::vector<int> above_{};
};

}  // namespace

FabricDescription fabric_of(const std::vector<SlurmLine>& lines, const std::string& file, Diagnostics& problems) {
  return SlurmTree(lines, file, problems).build();
}

}  // namespace tandem
