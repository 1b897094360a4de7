#include "scenarios/import/traces/kineto_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostRanksOfTrace = 1 << 20;

struct NamedKind {
  std::string_view name;
  CollectiveKind kind;
};
// PyTorch's names (c10d's record_param_comms), in lower case without underscores.
constexpr std::array kNames = {NamedKind{"allreduce", CollectiveKind::all_reduce},
                               NamedKind{"allreducesparse", CollectiveKind::all_reduce},
                               NamedKind{"allreducecoalesced", CollectiveKind::all_reduce},
                               NamedKind{"allgather", CollectiveKind::all_gather},
                               NamedKind{"allgatherbase", CollectiveKind::all_gather},
                               NamedKind{"allgatherintotensorcoalesced", CollectiveKind::all_gather},
                               NamedKind{"reducescatter", CollectiveKind::reduce_scatter},
                               NamedKind{"reducescatterbase", CollectiveKind::reduce_scatter},
                               NamedKind{"reducescattertensorcoalesced", CollectiveKind::reduce_scatter},
                               NamedKind{"broadcast", CollectiveKind::broadcast},
                               NamedKind{"broadcastoop", CollectiveKind::broadcast},
                               NamedKind{"reduce", CollectiveKind::reduce},
                               NamedKind{"alltoall", CollectiveKind::all_to_all},
                               NamedKind{"alltoallv", CollectiveKind::all_to_all},
                               NamedKind{"alltoallbase", CollectiveKind::all_to_all}};

std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_' && c != ' ') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

std::int64_t bytes_of_element(std::string_view dtype) {
  const std::string name = plain(dtype);
  if (name == "double" || name == "long" || name == "int64" || name == "float64") return 8;
  if (name == "half" || name == "bfloat16" || name == "short" || name == "float16" || name == "int16") return 2;
  if (name == "byte" || name == "char" || name == "bool" || name == "uint8" || name == "int8" ||
      name.starts_with("float8"))
    return 1;
  return 4;
}

// "[0, 1, 2]"; empty if it is cut short, which long ones are; nothing if it is no list of ranks.
std::optional<std::vector<int>> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  std::int64_t number = -1;
  if (text.find("...") != std::string_view::npos) return ranks;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<std::int64_t>(0, number) * 10 + (c - '0');
      if (number > kMostRanksOfTrace) return std::nullopt;
    } else if (number >= 0) {
      ranks.push_back(static_cast<int>(number));
      number = -1;
    }
  }
  return ranks;
}

bool is_of_library(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.find("ncclKernel") != std::string_view::npos ||
         name.find("ncclDevKernel") != std::string_view::npos;
}

}  // namespace

KinetoCollectives::KinetoCollectives(const KinetoEvents& events, RankTrace& trace) : events_(events), trace_(trace) {}

const CollectiveFacts* KinetoCollectives::facts_of(const KinetoEvents::Work& work) const {
  if (work.facts >= 0) return &events_.facts[static_cast<std::size_t>(work.facts)];
  const auto found = events_.facts_of_external.find(work.external);
  return found == events_.facts_of_external.end() ? nullptr : &events_.facts[static_cast<std::size_t>(found->second)];
}

bool KinetoCollectives::set_kind(const CollectiveFacts& facts, TraceOp& op) const {
  const std::string name = plain(facts.name);
  const std::int64_t elements = std::max(facts.in_elements, facts.out_elements);
  if (elements < 0 || elements > (std::int64_t{1} << 42)) return false;
  op.bytes = elements * bytes_of_element(facts.dtype);
  if (name == "send" || name == "recv") {
    op.kind = name == "send" ? TraceOp::Kind::send : TraceOp::Kind::receive;
    op.peer = static_cast<int>(name == "send" ? facts.target : facts.source);
    return op.peer >= 0;
  }
  const auto known = std::find_if(kNames.begin(), kNames.end(), [&](const NamedKind& one) { return one.name == name; });
  if (known == kNames.end()) return false;
  op.kind = TraceOp::Kind::collective;
  op.collective = known->kind;
  return true;
}

int KinetoCollectives::group_of(const CollectiveFacts& facts, const FilePlace& place) {
  const std::optional<std::vector<int>> listed = ranks_in(facts.ranks);
  if (!listed) return -1;
  std::vector<int> ranks = *listed;
  const bool is_whole = facts.group_size < 0 || static_cast<std::int64_t>(ranks.size()) == facts.group_size;
  if (ranks.empty() || !is_whole) {
    ranks.clear();
    const std::int64_t size = facts.group_size > 0 ? facts.group_size : trace_.world;
    const std::int64_t last = facts.first_rank + (size - 1) * facts.stride;
    if (size > kMostRanksOfTrace || facts.first_rank < 0 || facts.stride < 1 || last > kMostRanksOfTrace) return -1;
    for (std::int64_t i = 0; i < size; ++i) ranks.push_back(static_cast<int>(facts.first_rank + i * facts.stride));
  }
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) return -1;
  if (std::find(ranks.begin(), ranks.end(), trace_.rank) == ranks.end()) return -1;
  if (trace_.stated_world > 0 && ranks.back() >= trace_.stated_world) {
    throw InputError(
        {problem_at(trace_.file, place,
                    fmt::format("a collective is among the ranks {} to {}, and the job has {} ranks (distributedInfo)",
                                ranks.front(), ranks.back(), trace_.stated_world))});
  }
  trace_.world = std::max(trace_.world, ranks.back() + 1);
  const auto [known, is_new] = groups_.try_emplace(ranks, static_cast<int>(trace_.groups.size()));
  if (is_new) trace_.groups.push_back(ranks);
  return known->second;
}

void KinetoCollectives::complete(const KinetoEvents::Work& work, TraceOp& op) {
  if (op.kind != TraceOp::Kind::kernel || !is_of_library(trace_.names[static_cast<std::size_t>(op.name)])) return;
  const CollectiveFacts* facts = facts_of(work);
  TraceOp made = op;
  if (facts != nullptr && set_kind(*facts, made)) {
    const bool has_group = facts->group_size > 0 || !facts->ranks.empty() || trace_.world > 1;
    made.group = made.kind == TraceOp::Kind::collective && has_group ? group_of(*facts, op.place) : -1;
    if (made.group >= 0 && made.collective == CollectiveKind::all_gather && facts->out_elements < 0) {
      made.bytes *= static_cast<std::int64_t>(trace_.groups[static_cast<std::size_t>(made.group)].size());
    }
    if (made.group >= 0 || made.kind != TraceOp::Kind::collective) {
      op = made;
      return;
    }
  }
  ++unknown_;
}

void KinetoCollectives::finish() {
  if (unknown_ == 0) return;
  trace_.notes.push_back(fmt::format(
      "{} kernels of a communication library say no operation, size or group (older profilers do not): they keep their "
      "recorded times on any topology",
      unknown_));
}

}  // namespace tandem
