#include "scenarios/import/traces/chakra_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "scenarios/import/traces/chakra.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Kind = TraceOp::Kind;

// Rates and a latency of recent GPUs and networks. They decide only which of several ops that could follow each other
// either way comes first.
constexpr double kFlopsPerNs = 1e5, kMemoryBytesPerNs = 1e3, kNetworkBytesPerNs = 50;
constexpr double kLatencyNs = 5000;

// An op of one of the traces.
struct OpPlace {
  int trace = -1, op = -1;
  auto operator<=>(const OpPlace&) const = default;
};

// The collectives of one group. Its members make them in the order of their own ops.
struct GroupRounds {
  struct Member {
    int trace = 0;
    std::vector<int> ops{};
  };
  std::vector<Member> members{};
  std::size_t round = 0, ready = 0;  // the collective that is next, and how many members could begin it
};

// The part of one rank.
struct RankPlay {
  std::vector<int> waiting{};                // by op: what it still waits for
  std::vector<std::vector<int>> users{};     // by op: those that wait for it
  std::vector<OpPlace> partner{};            // by op: the other side of a message
  std::vector<GroupRounds*> rounds{};        // by op: of collectives
  std::vector<char> is_ready{}, is_ended{};  // by op
  struct Resource {
    std::priority_queue<std::pair<std::int64_t, int>, std::vector<std::pair<std::int64_t, int>>, std::greater<>> ready;
    bool is_busy = false;
  };
  std::array<Resource, kChakraStreams> resources{};
  struct Placed {
    int op = 0;
    bool is_join = false;
  };
  std::vector<Placed> order{};
};

class DependencyOrder {
 public:
  explicit DependencyOrder(std::vector<RankTrace>& traces)
      : traces_(traces), plays_(traces.size()), is_complete_(static_cast<int>(traces.size()) == traces.front().world) {}

  void apply() {
    prepare();
    if (is_complete_) match_messages();
    play();
    const std::string circle = find_circle();
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      traces_[i].deadlock = circle;
      if (!circle.empty()) plays_[i].order = order_of_file(traces_[i]);
      rebuild(static_cast<int>(i));
    }
  }

 private:
  const TraceOp& op_at(OpPlace place) const {
    return traces_[static_cast<std::size_t>(place.trace)].ops[static_cast<std::size_t>(place.op)];
  }
  RankPlay& play_of(OpPlace place) { return plays_[static_cast<std::size_t>(place.trace)]; }
  bool is_send(const TraceOp& op) const { return is_complete_ && op.kind == Kind::send; }
  bool is_receive(const TraceOp& op) const { return is_complete_ && op.kind == Kind::receive; }

  void prepare() {
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const RankTrace& trace = traces_[i];
      RankPlay& play = plays_[i];
      const std::size_t count = trace.ops.size();
      play.waiting.resize(count);
      play.users.resize(count);
      play.partner.resize(count);
      play.rounds.resize(count);
      play.is_ready.resize(count);
      play.is_ended.resize(count);
      for (std::size_t op = 0; op < count; ++op) {
        play.waiting[op] = static_cast<int>(trace.ops[op].after.size());
        for (const int other : trace.ops[op].after) {
          play.users[static_cast<std::size_t>(other)].push_back(static_cast<int>(op));
        }
        if (trace.ops[op].kind == Kind::collective) join_rounds(static_cast<int>(i), static_cast<int>(op));
      }
    }
  }

  void join_rounds(int trace, int op) {
    const RankTrace& own = traces_[static_cast<std::size_t>(trace)];
    const int group = own.ops[static_cast<std::size_t>(op)].group;
    GroupRounds& rounds = rounds_[own.groups[static_cast<std::size_t>(group)]];
    if (rounds.members.empty() || rounds.members.back().trace != trace) rounds.members.push_back({.trace = trace});
    rounds.members.back().ops.push_back(op);
    plays_[static_cast<std::size_t>(trace)].rounds[static_cast<std::size_t>(op)] = &rounds;
  }

  // --- Messages ---

  [[noreturn]] void refuse(OpPlace place, int other, const std::string& other_file) const {
    const RankTrace& trace = traces_[static_cast<std::size_t>(place.trace)];
    const TraceOp& op = op_at(place);
    const bool sends = op.kind == Kind::send;
    throw InputError({problem_at(
        trace.file, op.place,
        fmt::format(
            "{} {} of {} bytes with tag {} {} rank {}, which does not {} it: {} has no such node, or fewer of them",
            text_of_op(trace, op), sends ? "sends a message" : "waits for a message", op.bytes, op.tag,
            sends ? "to" : "from", other, sends ? "receive" : "send", other_file))});
  }

  void match_messages() {
    using Channel = std::tuple<int, int, std::int64_t, std::int64_t>;  // from, to, tag, bytes
    std::map<Channel, std::pair<std::vector<OpPlace>, std::vector<OpPlace>>> channels;
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const RankTrace& trace = traces_[i];
      for (std::size_t op = 0; op < trace.ops.size(); ++op) {
        const TraceOp& own = trace.ops[op];
        const OpPlace place{static_cast<int>(i), static_cast<int>(op)};
        if (own.kind == Kind::send) channels[{trace.rank, own.peer, own.tag, own.bytes}].first.push_back(place);
        if (own.kind == Kind::receive) channels[{own.peer, trace.rank, own.tag, own.bytes}].second.push_back(place);
      }
    }
    for (const auto& [channel, ends] : channels) {
      const auto& [sends, receives] = ends;
      const std::size_t both = std::min(sends.size(), receives.size());
      const int from = std::get<0>(channel), to = std::get<1>(channel);
      if (sends.size() > both) refuse(sends[both], to, traces_[static_cast<std::size_t>(to)].file);
      if (receives.size() > both) refuse(receives[both], from, traces_[static_cast<std::size_t>(from)].file);
      for (std::size_t i = 0; i < both; ++i) {
        play_of(sends[i]).partner[static_cast<std::size_t>(sends[i].op)] = receives[i];
        play_of(receives[i]).partner[static_cast<std::size_t>(receives[i].op)] = sends[i];
      }
    }
  }

  // --- Time ---

  static double rough_ns(const TraceOp& op) {
    if (op.kind == Kind::collective || op.bytes > 0) {
      return kLatencyNs + static_cast<double>(op.bytes) / kNetworkBytesPerNs;
    }
    if (op.duration_ns > 0) return static_cast<double>(op.duration_ns);
    return std::max(op.flops / kFlopsPerNs, op.moved_bytes / kMemoryBytesPerNs);
  }

  void play() {
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      for (std::size_t op = 0; op < traces_[i].ops.size(); ++op) {
        if (plays_[i].waiting[op] == 0) make_ready({static_cast<int>(i), static_cast<int>(op)});
      }
      start_resources(static_cast<int>(i));
    }
    while (!ends_.empty()) {
      now_ns_ = std::get<0>(ends_.top());
      std::vector<int> changed;
      for (; !ends_.empty() && std::get<0>(ends_.top()) == now_ns_; ends_.pop()) {
        const OpPlace place = std::get<2>(ends_.top());
        changed.push_back(place.trace);
        end(place);
      }
      for (const int trace : changed) start_resources(trace);
      for (const int trace : woken_) start_resources(trace);
      woken_.clear();
    }
  }

  void make_ready(OpPlace place) {
    const TraceOp& op = op_at(place);
    RankPlay& play = play_of(place);
    play.is_ready[static_cast<std::size_t>(place.op)] = 1;
    if (is_send(op)) return start_message(place);
    if (is_receive(op)) return end_receive(place);
    if (op.kind == Kind::collective) return advance(*play.rounds[static_cast<std::size_t>(place.op)], place);
    play.resources[static_cast<std::size_t>(op.stream)].ready.emplace(op.id, place.op);
    woken_.push_back(place.trace);
  }

  void start(OpPlace place) {
    play_of(place).order.push_back({place.op});
    ends_.emplace(now_ns_ + rough_ns(op_at(place)), started_++, place);
  }

  void start_resources(int trace) {
    for (RankPlay::Resource& resource : plays_[static_cast<std::size_t>(trace)].resources) {
      if (resource.is_busy || resource.ready.empty()) continue;
      resource.is_busy = true;
      const int op = resource.ready.top().second;
      resource.ready.pop();
      start({trace, op});
    }
  }

  void start_message(OpPlace send) {
    const OpPlace receive = play_of(send).partner[static_cast<std::size_t>(send.op)];
    play_of(receive).order.push_back({receive.op});
    start(send);
  }

  // Counts a member whose next collective could begin; the last one begins it for all.
  void advance(GroupRounds& rounds, OpPlace place) {
    const auto member =
        std::lower_bound(rounds.members.begin(), rounds.members.end(), place.trace,
                         [](const GroupRounds::Member& other, int trace) { return other.trace < trace; });
    if (rounds.round >= member->ops.size() || member->ops[rounds.round] != place.op) return;
    if (++rounds.ready < rounds.members.size()) return;
    for (const GroupRounds::Member& other : rounds.members) start({other.trace, other.ops[rounds.round]});
  }

  void end_round(GroupRounds& rounds) {
    if (--rounds.ready > 0) return;
    ++rounds.round;
    for (const GroupRounds::Member& member : rounds.members) {
      if (rounds.round >= member.ops.size()) continue;
      const OpPlace next{member.trace, member.ops[rounds.round]};
      if (play_of(next).is_ready[static_cast<std::size_t>(next.op)] != 0) advance(rounds, next);
    }
  }

  void end(OpPlace place) {
    const TraceOp& op = op_at(place);
    RankPlay& play = play_of(place);
    release_users(place);
    if (op.kind == Kind::collective) return end_round(*play.rounds[static_cast<std::size_t>(place.op)]);
    if (!is_send(op)) {
      play.resources[static_cast<std::size_t>(op.stream)].is_busy = false;
      return;
    }
    const OpPlace receive = play.partner[static_cast<std::size_t>(place.op)];
    if (play_of(receive).is_ready[static_cast<std::size_t>(receive.op)] != 0) end_receive(receive);
  }

  // Ends a receive that is ready, if its message has arrived.
  void end_receive(OpPlace receive) {
    RankPlay& play = play_of(receive);
    const OpPlace send = play.partner[static_cast<std::size_t>(receive.op)];
    if (play_of(send).is_ended[static_cast<std::size_t>(send.op)] == 0) return;
    if (!op_at(receive).after.empty()) play.order.push_back({.op = receive.op, .is_join = true});
    release_users(receive);
  }

  void release_users(OpPlace place) {
    RankPlay& play = play_of(place);
    play.is_ended[static_cast<std::size_t>(place.op)] = 1;
    for (const int user : play.users[static_cast<std::size_t>(place.op)]) {
      if (--play.waiting[static_cast<std::size_t>(user)] == 0) make_ready({place.trace, user});
    }
  }

  // --- Circles ---

  static std::string text_of_op(const RankTrace& trace, const TraceOp& op) {
    return fmt::format("node {} ('{}')", op.id, trace.names[static_cast<std::size_t>(op.name)]);
  }

  // Returns an op that `place`, which has not ended, waits for.
  OpPlace cause_of(OpPlace place) {
    RankPlay& play = play_of(place);
    for (const int other : op_at(place).after) {
      if (play.is_ended[static_cast<std::size_t>(other)] == 0) return {place.trace, other};
    }
    if (op_at(place).kind != Kind::collective) return play.partner[static_cast<std::size_t>(place.op)];
    const GroupRounds& rounds = *play.rounds[static_cast<std::size_t>(place.op)];
    for (const GroupRounds::Member& member : rounds.members) {
      const OpPlace next{member.trace, member.ops[std::min(rounds.round, member.ops.size() - 1)]};
      const bool is_early = member.trace == place.trace && next.op != place.op;
      if (is_early || play_of(next).waiting[static_cast<std::size_t>(next.op)] > 0) return next;
    }
    return place;
  }

  // Describes the circle in which ops wait for each other; empty if all have ended.
  std::string find_circle() {
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const auto& ended = plays_[i].is_ended;
      const auto first = std::find(ended.begin(), ended.end(), char{0});
      if (first == ended.end()) continue;
      std::map<OpPlace, std::size_t> seen;
      std::vector<OpPlace> chain;
      OpPlace place{static_cast<int>(i), static_cast<int>(first - ended.begin())};
      for (; seen.try_emplace(place, chain.size()).second; place = cause_of(place)) chain.push_back(place);
      chain.erase(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(seen.at(place)));
      return text_of_circle(chain);
    }
    return "";
  }

  std::string text_of_circle(const std::vector<OpPlace>& chain) const {
    constexpr std::size_t kMostShown = 8;
    const auto text = [&](OpPlace place) {
      const RankTrace& trace = traces_[static_cast<std::size_t>(place.trace)];
      return fmt::format("{} of rank {}", text_of_op(trace, op_at(place)), trace.rank);
    };
    std::string circle = text(chain.front());
    for (std::size_t i = 1; i < std::min(chain.size(), kMostShown); ++i) {
      circle += fmt::format("{} {}", i == 1 ? " waits for" : ", which waits for", text(chain[i]));
    }
    if (chain.size() > kMostShown) circle += fmt::format(", and so on over {} more nodes", chain.size() - kMostShown);
    return circle + fmt::format("{} {}", chain.size() == 1 ? " waits for" : ", which waits for", text(chain.front()));
  }

  static std::vector<RankPlay::Placed> order_of_file(const RankTrace& trace) {
    std::vector<RankPlay::Placed> order;
    for (std::size_t op = 0; op < trace.ops.size(); ++op) order.push_back({static_cast<int>(op)});
    return order;
  }

  // --- The new order ---

  // Returns the stream of an op. Stream 0 executes kernels; the others are numbered by their first op.
  static int stream_of(const TraceOp& op, std::map<std::pair<int, int>, int>& streams) {
    if (op.kind != Kind::join && op.stream == kKernels) return 0;
    const int part = op.kind == Kind::collective                          ? op.group
                     : op.kind == Kind::kernel || op.kind == Kind::memory ? -1
                                                                          : op.peer;
    const int base = op.kind == Kind::join ? kChakraStreams : op.stream;
    return streams.try_emplace({base, part}, static_cast<int>(streams.size()) + 1).first->second;
  }

  void rebuild(int index) {
    RankTrace& trace = traces_[static_cast<std::size_t>(index)];
    std::vector<int> moved(trace.ops.size(), -1);
    std::map<std::pair<int, int>, int> streams;
    std::vector<TraceOp> ops;
    for (const RankPlay::Placed& placed : plays_[static_cast<std::size_t>(index)].order) {
      TraceOp op = trace.ops[static_cast<std::size_t>(placed.op)];
      const int message = moved[static_cast<std::size_t>(placed.op)];
      for (int& other : op.after) other = moved[static_cast<std::size_t>(other)];
      if (is_receive(op) && !placed.is_join && trace.deadlock.empty()) op.after.clear();
      if (placed.is_join) {
        op.kind = Kind::join;
        op.after.push_back(message);
      }
      op.stream = stream_of(op, streams);
      moved[static_cast<std::size_t>(placed.op)] = static_cast<int>(ops.size());
      ops.push_back(std::move(op));
    }
    trace.ops = std::move(ops);
    trace.streams = static_cast<int>(streams.size()) + 1;
  }

  std::vector<RankTrace>& traces_;
  std::vector<RankPlay> plays_;
  const bool is_complete_;
  std::map<std::vector<int>, GroupRounds> rounds_;
  using End = std::tuple<double, std::int64_t, OpPlace>;  // when, the number of its start, which op
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<int> woken_;  // traces with ops that became ready
  double now_ns_ = 0;
  std::int64_t started_ = 0;
};

}  // namespace

void order_by_dependencies(std::vector<RankTrace>& traces) {
  if (!traces.empty()) DependencyOrder(traces).apply();
}

}  // namespace tandem
