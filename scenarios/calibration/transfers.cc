// Measures copies along each route, and collectives.
#include "scenarios/calibration/stages.h"

namespace tandem::calibration {
namespace {

// Uses one route at a time, and issues one copy after the other, to measure a link alone. The largest copies come last,
// so that the times of the small ones do not depend on how soon the host notices that they are complete.
void measure_route(Worker& worker, const Plan& plan, const Route& route, int step) {
  const auto device_at = [&](int index) -> Device& {
    return index == kHost ? worker.cpu() : *worker.devices()[static_cast<std::size_t>(index)];
  };
  Device& from = device_at(route.from);
  Device& to = device_at(route.to);
  const std::int64_t bytes_each = std::max(plan.pool_bytes, largest(plan.copy_bytes));
  Pool sources(worker, from, DType::f32, bytes_each), targets(worker, to, DType::f32, bytes_each);
  worker.begin_step(step);
  Stream& stream = (route.to == kHost ? from : to).stream(kInputStream);
  for (int round = 0; round < plan.repetitions; ++round) {
    plan.begin_round();
    for (const std::int64_t bytes : plan.copy_bytes) {
      for (int i = 0; i < kPerRound; ++i) stream.copy(targets.take(bytes / 4), sources.take(bytes / 4));
    }
    stream.synchronize();
  }
  worker.end_step();
}

struct Operands {
  std::vector<Tensor> whole, parts, other_whole;  // by device
};

bool has_part(std::string_view operation) {
  return operation == "all_gather" || operation == "reduce_scatter";
}

// Where the operands of an operation begin and end in what is taken from a pool, in elements. They never overlap.
struct Extent {
  std::int64_t whole = 0, second = 0, other = 0;  // `other` elements from `second` on
  std::int64_t all() const { return second + other; }
};

// Returns the extent of an operation with `part` elements for each of n ranks.
Extent extent_of(std::string_view operation, std::int64_t part, std::int64_t n, const Pool& pool) {
  const std::int64_t whole = part * n;
  if (has_part(operation)) return {.whole = whole, .second = pool.aligned(whole), .other = part};
  if (operation == "all_to_all") return {.whole = whole, .second = pool.aligned(whole), .other = whole};
  return {.whole = whole, .second = whole, .other = 0};
}

Operands take(std::string_view operation, std::int64_t part, std::int64_t n, std::vector<Pool>& pools) {
  Operands operands;
  for (Pool& pool : pools) {
    const Extent extent = extent_of(operation, part, n, pool);
    const Tensor all = pool.take(extent.all());
    operands.whole.push_back(all.flat_slice(0, extent.whole));
    if (extent.other == 0) continue;
    (has_part(operation) ? operands.parts : operands.other_whole)
        .push_back(all.flat_slice(extent.second, extent.other));
  }
  return operands;
}

// On CPUs, buffers of collectives have just been written, each by the stream that takes part; that decides which caches
// they are in.
void write(const Operands& operands, std::span<Stream* const> streams) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i]->device().id().type != DeviceType::cpu) continue;
    for (const auto* tensors : {&operands.whole, &operands.parts, &operands.other_whole}) {
      if (tensors->empty()) continue;
      launch_unmeasured(*streams[i], op::scale_add((*tensors)[i], (*tensors)[i], 1, 0));
    }
  }
}

void issue(Communicator& group, std::string_view operation, const Operands& operands,
           std::span<Stream* const> streams) {
  const auto& [whole, parts, other_whole] = operands;
  if (operation == "all_reduce") group.all_reduce(whole, Reduction::sum, streams);
  if (operation == "reduce") group.reduce(whole, Reduction::sum, 0, streams);
  if (operation == "broadcast") group.broadcast(whole, 0, streams);
  if (operation == "all_gather") group.all_gather(whole, parts, streams);
  if (operation == "reduce_scatter") group.reduce_scatter(parts, whole, Reduction::sum, streams);
  if (operation == "all_to_all") group.all_to_all(other_whole, whole, streams);
}

}  // namespace

void measure_routes(Worker& worker, const Plan& plan, const std::vector<Route>& routes) {
  for (std::size_t i = 0; i < routes.size(); ++i) {
    measure_route(worker, plan, routes[i], static_cast<int>(i) + 1);
  }
}

void measure_collectives(Worker& worker, const Plan& plan) {
  std::vector<DeviceId> ids;
  for (const Device* device : worker.devices()) ids.push_back(device->id());
  measure_collectives(worker, plan, ids);
}

void measure_collectives(Worker& worker, const Plan& plan, std::span<const DeviceId> devices) {
  const auto n = static_cast<std::int64_t>(devices.size());
  Communicator& group = worker.communicator(devices);
  const std::int64_t pool_bytes = std::max(plan.pool_bytes, 4 * largest(plan.collective_bytes));
  std::vector<Stream*> streams;
  std::vector<Pool> pools;
  for (Device* device : group.local_devices()) {
    streams.push_back(&device->stream(kCommunicationStream));
    pools.emplace_back(worker, *device, DType::f32, pool_bytes, plan.pool_bytes);
  }
  for (int round = 0; round < plan.repetitions; ++round) {
    plan.begin_round();
    for (const std::string_view operation : collectives()) {
      for (const std::int64_t bytes : plan.collective_bytes) {
        const std::int64_t part = std::max<std::int64_t>(1, bytes / 4 / n);
        for (const Pool& pool : pools) pool.touch(extent_of(operation, part, n, pool).all());
        synchronize_all(worker);
        for (int i = 0; i < (bytes < plan.once_bytes ? kPerRound : 1); ++i) {
          const Operands operands = take(operation, part, n, pools);
          write(operands, streams);
          issue(group, operation, operands, streams);
          if (i == 0) synchronize_all(worker);  // the first call finds its streams idle, the others find them busy
        }
        synchronize_all(worker);
      }
    }
  }
}

}  // namespace tandem::calibration
