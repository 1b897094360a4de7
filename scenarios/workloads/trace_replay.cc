#include "scenarios/workloads/trace_replay.h"

#include <algorithm>

#include "scenarios/import/traces/trace_ranks.h"

namespace tandem {
namespace {

constexpr int kFirstTraceStream = 16;  // after those of engine/device.h
constexpr std::int64_t kElementBytes = 4;

double seconds_of(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

// Returns an op that only takes recorded time of the host and the device.
Op recorded_op(const std::string& name, Category category, std::int64_t issue_ns, std::int64_t device_ns) {
  Op op = op::host_function(name, {}, [] {});
  op.category = category;
  op.cost.kernels = 0;
  op.cost.issue_s = seconds_of(issue_ns);
  op.cost.recorded_s = seconds_of(device_ns);
  return op;
}

// Returns the device's stream for a stream of a trace, whose first one is the compute stream.
int stream_index(int stream) {
  return stream == 0 ? kComputeStream : kFirstTraceStream + stream;
}

}  // namespace

TraceReplay::TraceReplay(const TraceSettings& settings, Worker& worker) : settings_(settings), worker_(worker) {}

bool TraceReplay::is_exchange(const TraceOp& op) const {
  const bool is_pair = op.kind == TraceOp::Kind::send || op.kind == TraceOp::Kind::receive;
  return is_pair && static_cast<int>(settings_.ranks->size()) == settings_.world;
}

DeviceId TraceReplay::id_of(int rank) const {
  const WorkerSpec& spec = worker_.cluster()[static_cast<std::size_t>(rank / devices_of_worker_)];
  return {.job = spec.job, .task = spec.task, .type = spec.device_type, .index = rank % devices_of_worker_};
}

GroupCollectives* TraceReplay::group(const std::vector<int>& ranks) {
  if (ranks.size() < 2) return nullptr;
  std::unique_ptr<GroupCollectives>& known = groups_[ranks];
  if (!known) {
    std::vector<DeviceId> ids;
    for (const int rank : ranks) ids.push_back(id_of(rank));
    known = std::make_unique<GroupCollectives>(worker_, worker_.communicator(ids));
  }
  return known.get();
}

void TraceReplay::prepare() {
  devices_of_worker_ = static_cast<int>(worker_.devices().size());
  for (int i = 0; i < devices_of_worker_; ++i) {
    players_.push_back(
        make_player(*worker_.devices()[static_cast<std::size_t>(i)], worker_.index() * devices_of_worker_ + i));
  }
}

TraceReplay::Player TraceReplay::make_player(Device& device, int rank) {
  const RankTrace& trace = trace_of(*settings_.ranks, rank, settings_.replica_size);
  if (!trace.deadlock.empty()) throw DeadlockError("deadlock: " + trace.deadlock);
  Player player{.device = &device, .rank = rank, .trace = &trace};
  for (const std::vector<int>& ranks : trace.groups) {
    player.groups.push_back(group(group_for(ranks, trace.rank, rank, trace.world)));
  }
  player.is_awaited.assign(trace.ops.size(), false);
  std::int64_t most = kElementBytes, widest = 1;
  for (const TraceOp& op : trace.ops) {
    for (const int other : op.after) player.is_awaited[static_cast<std::size_t>(other)] = true;
    if (op.host_waits_for >= 0) player.is_awaited[static_cast<std::size_t>(op.host_waits_for)] = true;
    most = std::max(most, op.bytes);
    if (is_exchange(op)) group({std::min(rank, op.peer), std::max(rank, op.peer)});
    if (op.group >= 0) {
      widest = std::max<std::int64_t>(
          widest, static_cast<std::int64_t>(trace.groups[static_cast<std::size_t>(op.group)].size()));
    }
  }
  const std::int64_t elements = most / kElementBytes + 2 * widest;
  player.input = device.allocate(DType::f32, {elements});
  player.output = device.allocate(DType::f32, {elements});
  return player;
}

void TraceReplay::run_step(int /*step*/) {
  worker_.tasks().run_concurrently(static_cast<int>(players_.size()),
                                   [&](int i) { play(players_[static_cast<std::size_t>(i)]); });
}

void TraceReplay::play(const Player& player) const {
  const RankTrace& trace = *player.trace;
  std::vector<Event> ends(trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const TraceOp& op = trace.ops[i];
    if (op.host_waits_for >= 0) ends[static_cast<std::size_t>(op.host_waits_for)].synchronize();
    Stream& stream = player.device->stream(stream_index(op.stream));
    for (const int other : op.after) {
      if (trace.ops[static_cast<std::size_t>(other)].stream != op.stream)
        stream.wait(ends[static_cast<std::size_t>(other)]);
    }
    issue(player, op, stream);
    if (player.is_awaited[i]) ends[i] = stream.record();
  }
}

// The other side is there only if every rank has a trace of its own.
void TraceReplay::exchange(const Player& player, const TraceOp& op, Stream& stream) const {
  const std::vector<int> pair{std::min(player.rank, op.peer), std::max(player.rank, op.peer)};
  Communicator& communicator = groups_.at(pair)->communicator();
  const int other = op.peer > player.rank ? 1 : 0;
  const std::int64_t elements = std::max<std::int64_t>(1, (op.bytes + kElementBytes - 1) / kElementBytes);
  stream.launch(recorded_op("before an exchange", Category::other, op.issue_ns, op.lag_ns));
  if (op.kind == TraceOp::Kind::send) return communicator.send(player.output.flat_slice(0, elements), other, stream);
  communicator.receive(player.input.flat_slice(0, elements), other, stream);
}

void TraceReplay::issue(const Player& player, const TraceOp& op, Stream& stream) const {
  const RankTrace& trace = *player.trace;
  if (op.kind == TraceOp::Kind::join) return;
  if (is_exchange(op)) return exchange(player, op, stream);
  GroupCollectives* const group = op.group >= 0 ? player.groups[static_cast<std::size_t>(op.group)] : nullptr;
  if (op.kind != TraceOp::Kind::collective || group == nullptr) {
    const Category category = op.kind == TraceOp::Kind::memory   ? Category::input
                              : op.kind == TraceOp::Kind::kernel ? Category::compute
                                                                 : Category::communication;
    Op work =
        recorded_op(trace.names[static_cast<std::size_t>(op.name)], category, op.issue_ns, op.lag_ns + op.duration_ns);
    if (op.duration_ns == 0 && op.flops + op.moved_bytes > 0) {
      work.cost.recorded_s.reset();
      work.cost.flops = op.flops;
      work.cost.bytes = op.moved_bytes;
    }
    stream.launch(std::move(work));
    return;
  }
  stream.launch(recorded_op("before a collective", Category::other, op.issue_ns, op.lag_ns));
  const std::int64_t ranks = group->size();
  const std::int64_t part = std::max<std::int64_t>(1, (op.bytes + kElementBytes * ranks - 1) / (kElementBytes * ranks));
  const bool has_parts = op.collective == CollectiveKind::all_gather ||
                         op.collective == CollectiveKind::reduce_scatter || op.collective == CollectiveKind::all_to_all;
  const std::int64_t whole =
      has_parts ? part * ranks : std::max<std::int64_t>(1, (op.bytes + kElementBytes - 1) / kElementBytes);
  const std::int64_t small = op.collective == CollectiveKind::all_to_all || !has_parts ? whole : part;
  const int root = op.peer >= 0 && op.peer < group->size() ? op.peer : 0;
  Tensor output = player.output.flat_slice(0, whole), input = player.input.flat_slice(0, small);
  if (op.collective == CollectiveKind::reduce_scatter) std::swap(output, input);
  group->collective(op.collective, root, output, input, stream);
}

void TraceReplay::finish(Report& report, bool /*carries_values*/) {
  report.replicas = 1;
  report.cross_device_ops = "none";
}

}  // namespace tandem
