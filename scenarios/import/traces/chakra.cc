#include "scenarios/import/traces/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include "topologies/base/error.h"

namespace tandem {
namespace {

// NodeType and CollectiveCommType: mlcommons/chakra (6dc63e1), schema/protobuf/et_def.proto.
enum class NodeType : std::int64_t {
  metadata = 1,
  load = 2,
  store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7
};
constexpr std::int64_t kNsOfUs = 1000;
constexpr int kMostChakraRank = 1 << 20;

std::optional<CollectiveKind> kind_of_number(std::int64_t number) {
  switch (number) {
    case 0:
      return CollectiveKind::all_reduce;
    case 1:
      return CollectiveKind::reduce;
    case 2:
      return CollectiveKind::all_gather;
    case 5:
      return CollectiveKind::broadcast;
    case 6:
      return CollectiveKind::all_to_all;
    case 7:
    case 8:
      return CollectiveKind::reduce_scatter;
    default:
      return std::nullopt;
  }
}

class ChakraTrace {
 public:
  ChakraTrace(const std::vector<ChakraNode>& nodes, const std::string& file, const ChakraGroups& groups, int world)
      : nodes_(nodes), groups_(groups) {
    trace_.file = file;
    trace_.has_host = false;
    trace_.rank = std::max(0, rank_of_file(file));
    trace_.world = std::max(world, trace_.rank + 1);
    trace_.streams = kChakraStreams;
  }

  RankTrace make() {
    if (nodes_.empty()) refuse(beginning_of(trace_.file), "has no nodes");
    number_ids();
    for (const std::size_t node : in_order()) add(nodes_[node]);
    add_notes();
    return std::move(trace_);
  }

 private:
  [[noreturn]] void refuse(const FilePlace& place, const std::string& message) const {
    throw InputError({problem_at(trace_.file, place, message)});
  }

  void number_ids() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!numbers_.try_emplace(nodes_[i].id, i).second) {
        refuse(nodes_[i].place, fmt::format("has two nodes of id {}", nodes_[i].id));
      }
    }
  }

  // Returns nodes after those that they depend on. If several may come next, the one with the smallest id does.
  std::vector<std::size_t> in_order() {
    std::vector<std::vector<std::size_t>> users(nodes_.size());
    std::vector<int> waiting(nodes_.size(), 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::uint64_t id : nodes_[i].deps) {
        const auto found = numbers_.find(id);
        if (found == numbers_.end()) {
          ++missing_;
          continue;
        }
        users[found->second].push_back(i);
        ++waiting[i];
      }
    }
    const auto later = [&](std::size_t a, std::size_t b) { return nodes_[a].id > nodes_[b].id; };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (waiting[i] == 0) ready.push(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const std::size_t user : users[order.back()]) {
        if (--waiting[user] == 0) ready.push(user);
      }
    }
    if (order.size() < nodes_.size()) {
      const auto stuck = static_cast<std::size_t>(
          std::find_if(waiting.begin(), waiting.end(), [](int left) { return left > 0; }) - waiting.begin());
      refuse(nodes_[stuck].place, fmt::format("has a cycle: node {} ('{}') waits for itself, directly or by others",
                                              nodes_[stuck].id, nodes_[stuck].name));
    }
    return order;
  }

  void add(const ChakraNode& node) {
    for (const std::string& name : node.unused) ++unused_[name];
    TraceOp op;
    op.id = static_cast<std::int64_t>(node.id);
    op.duration_ns = node.duration_us * kNsOfUs;
    op.flops = node.flops;
    op.moved_bytes = node.tensor_bytes;
    op.place = node.place;
    op.stream = node.is_cpu_op ? kHost : kKernels;
    const auto type = static_cast<NodeType>(node.type);
    if (type == NodeType::metadata) return pass_on(node);
    if (type == NodeType::load || type == NodeType::store) {
      op.kind = TraceOp::Kind::memory;
      op.stream = kMemory;
    } else if (type == NodeType::send || type == NodeType::receive) {
      set_peer(node, type == NodeType::send, op);
    } else if (type == NodeType::collective) {
      set_collective(node, op);
    } else if (type != NodeType::compute) {
      refuse(node.place, fmt::format("node {} ('{}') is of the unknown type {}", node.id, node.name, node.type));
    }
    finish(node, std::move(op));
  }

  // A node without work is replaced by what it waits for itself.
  void pass_on(const ChakraNode& node) { ops_of_[node.id] = after_of(node); }

  std::vector<int> after_of(const ChakraNode& node) const {
    std::vector<int> after;
    for (const std::uint64_t id : node.deps) {
      const auto found = ops_of_.find(id);
      if (found != ops_of_.end()) after.insert(after.end(), found->second.begin(), found->second.end());
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    return after;
  }

  void finish(const ChakraNode& node, TraceOp op) {
    op.after = after_of(node);
    const auto [name, is_new] =
        names_.try_emplace(node.name.empty() ? "node" : node.name, static_cast<int>(trace_.names.size()));
    if (is_new) trace_.names.push_back(name->first);
    op.name = name->second;
    ops_of_[node.id] = {static_cast<int>(trace_.ops.size())};
    trace_.ops.push_back(std::move(op));
  }

  void set_peer(const ChakraNode& node, bool is_send, TraceOp& op) {
    const std::int64_t peer = is_send ? node.target : node.source;
    if (peer < 0 || peer >= trace_.world || peer == trace_.rank) {
      refuse(node.place,
             fmt::format("node {} ('{}') exchanges with rank {}: there are the ranks 0 to {}, and this is rank {}",
                         node.id, node.name, peer, trace_.world - 1, trace_.rank));
    }
    op.kind = is_send ? TraceOp::Kind::send : TraceOp::Kind::receive;
    op.stream = is_send ? kSends : kReceives;
    op.bytes = node.comm_bytes;
    op.peer = static_cast<int>(peer);
    op.tag = node.tag;
  }

  void set_collective(const ChakraNode& node, TraceOp& op) {
    if (node.is_cpu_op) return;  // the call on the host; its kernel is another node
    op.stream = kCollectives;
    const auto kind = kind_of_number(node.collective);
    if (!kind || node.comm_bytes == 0) {
      ++unknown_;
      return;
    }
    op.kind = TraceOp::Kind::collective;
    op.collective = *kind;
    op.group = group_of(node);
    const auto ranks = static_cast<std::int64_t>(trace_.groups[static_cast<std::size_t>(op.group)].size());
    // For an all-gather, comm_size is one rank's input (in astra-sim the output has so many bytes of each rank).
    op.bytes = *kind == CollectiveKind::all_gather ? node.comm_bytes * ranks : node.comm_bytes;
    partial_ += node.has_some_dimensions ? 1 : 0;
  }

  int group_of(const ChakraNode& node) {
    std::vector<int> ranks;
    if (node.group.empty() || groups_.empty()) {
      for (int rank = 0; rank < trace_.world; ++rank) ranks.push_back(rank);
      unnamed_ += node.group.empty() ? 0 : 1;
    } else {
      const auto found = groups_.find(node.group);
      if (found == groups_.end()) {
        refuse(node.place, fmt::format("node {} ('{}') is of the group '{}', which the file of groups does not have",
                                       node.id, node.name, node.group));
      }
      ranks = found->second;
      std::sort(ranks.begin(), ranks.end());
    }
    const bool is_member = std::find(ranks.begin(), ranks.end(), trace_.rank) != ranks.end();
    if (!is_member || ranks.back() >= trace_.world || std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
      refuse(node.place,
             fmt::format(
                 "node {} ('{}') is of a group [{}]: each of the ranks 0 to {} at most once, and rank {} among them",
                 node.id, node.name, fmt::join(ranks, ", "), trace_.world - 1, trace_.rank));
    }
    for (std::size_t i = 0; i < trace_.groups.size(); ++i) {
      if (trace_.groups[i] == ranks) return static_cast<int>(i);
    }
    trace_.groups.push_back(ranks);
    return static_cast<int>(trace_.groups.size()) - 1;
  }

  void add_notes() {
    const auto note = [&](std::int64_t count, const std::string& text) {
      if (count > 0) trace_.notes.push_back(fmt::format("{} {}", count, text));
    };
    note(missing_, "dependencies are on nodes that are not in the file: left out");
    note(unknown_, "collectives say no operation or size: they keep their recorded times on any topology");
    note(unnamed_, "collectives name a group, and no file of groups is given: taken as among all ranks");
    for (const auto& [name, count] : unused_) note(count, fmt::format("nodes have '{}': has no effect here", name));
    note(partial_, "collectives are of some dimensions of the network only: taken as among their whole group");
  }

  const std::vector<ChakraNode>& nodes_;
  const ChakraGroups& groups_;
  RankTrace trace_;
  std::unordered_map<std::uint64_t, std::size_t> numbers_;
  std::unordered_map<std::uint64_t, std::vector<int>> ops_of_;
  std::unordered_map<std::string, int> names_;
  std::map<std::string, std::int64_t> unused_;
  std::int64_t missing_ = 0, unknown_ = 0, unnamed_ = 0, partial_ = 0;
};

// "resnet.3.et": the last part of the name that is a number.
struct RankName {
  std::string before{}, after{};
  int rank = -1;  // none
};

RankName split_name(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  RankName split{.before = name};
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool is_number = !part.empty() && part.size() < 8 &&
                           std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (is_number) split = {name.substr(0, begin), name.substr(end), std::min(std::stoi(part), kMostChakraRank)};
    begin = end + 1;
  }
  return split;
}

}  // namespace

bool is_unused_chakra_attribute(std::string_view name) {
  // What Chakra's converter and its JSON write beside what the readers use.
  static constexpr auto kDescribing = std::to_array<std::string_view>({"rf_id",
                                                                       "fw_parent",
                                                                       "fw_tid",
                                                                       "tid",
                                                                       "seq_id",
                                                                       "scope",
                                                                       "op_schema",
                                                                       "kernel_backend",
                                                                       "kernel_file",
                                                                       "cat",
                                                                       "ph",
                                                                       "ts",
                                                                       "dur",
                                                                       "inclusive_dur",
                                                                       "exclusive_dur",
                                                                       "external_id",
                                                                       "ev_idx",
                                                                       "correlation",
                                                                       "phase",
                                                                       "pg_desc",
                                                                       "inputs",
                                                                       "outputs",
                                                                       "attrs",
                                                                       "attr",
                                                                       "start_time_micros",
                                                                       "comm_dtype"});
  return std::find(kDescribing.begin(), kDescribing.end(), name) == kDescribing.end();
}

int rank_of_file(const std::filesystem::path& file) {
  return split_name(file).rank;
}

std::vector<std::filesystem::path> files_of_ranks(const std::filesystem::path& file) {
  const RankName own = split_name(file);
  std::map<int, std::filesystem::path> found{{own.rank, file}};
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const RankName other = split_name(entry.path());
    const bool is_alike = other.before == own.before && other.after == own.after && entry.is_regular_file(ignored);
    if (is_alike && own.rank >= 0) found.emplace(other.rank, file.parent_path() / entry.path().filename());
  }
  std::vector<std::filesystem::path> files;
  for (const auto& [rank, path] : found) files.push_back(path);
  return files;
}

RankTrace make_chakra_trace(const std::vector<ChakraNode>& nodes, const std::string& file, const ChakraGroups& groups,
                            int world) {
  return ChakraTrace(nodes, file, groups, world).make();
}

}  // namespace tandem
