#include "strategies/servers/synchronous_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/reduction_to_one_device.h"
#include "strategies/types/multi_worker_mirrored.h"

namespace tandem {
namespace {

bool computes(const WorkerSpec& spec) {
  return spec.job != "ps" && spec.job != "evaluator";
}

// Returns the devices of all workers, of which each computes on all of its own, and has as many as the others; none
// where there is one worker.
std::vector<DeviceId> checked_devices_in_sync(Worker& worker, const std::vector<Device*>& devices) {
  if (std::ranges::count_if(worker.cluster(), computes) < 2) return {};
  for (const WorkerSpec& spec : worker.cluster()) {
    if (!computes(spec) || spec.device_count == static_cast<int>(devices.size())) continue;
    throw ValueError(fmt::format(
        "synchronous updates need workers that compute on as many devices each: {} {} has {}, {} {} uses {}", spec.job,
        spec.task, spec.device_count, worker.job(), worker.task(), devices.size()));
  }
  return devices_in_sync(worker);
}

bool is_elsewhere(const std::vector<Device*>& devices, const Worker& worker) {
  return devices.size() == 1 && devices.front()->worker() != worker.index();
}

// Whether a reduction has anything to combine on devices.
bool is_on_devices(const Value& value) {
  const Value& first = value.is(ValueKind::per_replica) ? value.parts().front() : value;
  return first.is(ValueKind::tensor) || first.is(ValueKind::sparse);
}

bool is_dense(const Value& value) {
  const Value& first = value.is(ValueKind::per_replica) ? value.parts().front() : value;
  return first.is(ValueKind::tensor);
}

}  // namespace

SynchronousServersExtended::SynchronousServersExtended(Worker& worker, const std::vector<Device*>& compute_devices,
                                                       ParameterServerOptions options)
    : ParameterServerExtended(worker, compute_devices, std::move(options),
                              checked_devices_in_sync(worker, compute_devices)),
      of_worker_(std::make_unique<ReductionToOneDevice>(worker, compute_devices, Packing{.num_packs = 0})),
      rounds_(std::static_pointer_cast<UpdateRounds>(
          worker.shared().kept("rounds of updates", [&worker] { return std::make_shared<UpdateRounds>(worker); }))),
      monitor_(worker.tasks().make_monitor()) {}

std::shared_ptr<StoredTensor> SynchronousServersExtended::store(const VariableSpec& spec, Device& device) {
  std::shared_ptr<StoredTensor> stored = ParameterServerExtended::store(spec, device);
  stored->before_read = [rounds = rounds_, name = spec.name] { rounds->await(name); };
  return stored;
}

// StoredExtended combines the values of one worker, ReplicatedExtended those of all that are in step.
Value SynchronousServersExtended::all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) {
  return ReplicatedExtended::all_reduce(op, value, options);  // NOLINT(bugprone-parent-virtual-call)
}

// What is wanted on a server is combined over the workers on a device of this one, and then sent.
ReductionInFlight SynchronousServersExtended::do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                                 const CommunicationOptions& options) {
  std::vector<ReducePair> here = pairs;
  std::vector<std::pair<std::size_t, Device*>> to_send;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [value, destinations] = pairs[i];
    if (!is_on_devices(value)) continue;
    const std::vector<Device*> to = destinations.resolve(worker());
    if (!is_elsewhere(to, worker())) continue;
    here[i].second = Destinations(*worker_devices().front());
    to_send.emplace_back(i, to.front());
  }
  // NOLINTNEXTLINE(bugprone-parent-virtual-call)
  ReductionInFlight result = ReplicatedExtended::do_batch_reduce_to(op, here, options);
  if (to_send.empty()) return result;
  result.wait();
  result.ends.clear();
  for (const auto& [place, server] : to_send) {
    Value& value = result.values[place];
    if (value.is(ValueKind::tensor)) value = sent(value.tensor(), *server);
  }
  return result;
}

// Returns the sum over this worker's replicas, on one of its devices.
Tensor SynchronousServersExtended::sum_of_worker(const Value& value) {
  if (value.is(ValueKind::tensor)) return value.tensor();
  Device& first = *devices_of(value).front();
  Device& meeting_point = value.parts().size() == 1 ? first : worker().cpu();
  const ReductionInFlight sum = of_worker_->begin_batch_reduce(ReduceOp::sum, {{value, Destinations(meeting_point)}});
  return sum.wait().front().tensor();
}

ReductionInFlight SynchronousServersExtended::begin_sum_for_updates(const std::vector<ReducePair>& pairs) {
  ReductionInFlight result;
  for (const auto& [value, destinations] : pairs) {
    const std::vector<Device*> to = destinations.resolve(worker());
    if (!is_elsewhere(to, worker()) || !is_dense(value)) {
      ReductionInFlight other = ParameterServerExtended::begin_sum_for_updates({{value, destinations}});
      result.values.push_back(other.wait().front());
      continue;
    }
    Tensor part = sent(sum_of_worker(value), *to.front());
    result.values.emplace_back(part);
    const std::lock_guard lock(*monitor_);
    parts_.push_back(std::move(part));
  }
  return result;
}

std::vector<Value> SynchronousServersExtended::sum_for_updates(const std::vector<ReducePair>& pairs) {
  return begin_sum_for_updates(pairs).wait();
}

// Whether the argument is a part of a sum, which it then is no longer.
bool SynchronousServersExtended::take_part(const Value& argument) {
  if (!argument.is(ValueKind::tensor)) return false;
  const std::lock_guard lock(*monitor_);
  return std::erase_if(parts_, [&](const Tensor& part) { return part.is_same(argument.tensor()); }) > 0;
}

Value SynchronousServersExtended::do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                                            const Value::Parts& arguments, bool group) {
  const auto stored = std::dynamic_pointer_cast<StoredVariable>(variable);
  if (!stored) return ParameterServerExtended::do_update(variable, function, arguments, group);
  Device& server = *variable->devices().front();
  std::vector<std::size_t> places;  // of sums among the arguments
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!take_part(arguments[i])) continue;
    await(arguments[i].tensor());
    places.push_back(i);
    parts.push_back(arguments[i].tensor());
  }
  Value result;
  rounds_->give(variable->name(), server, parts, [&](const std::vector<Tensor>& sums) {
    Value::Parts there = arguments;
    for (std::size_t i = 0; i < places.size(); ++i) there[places[i]] = sums[i];
    for (Value& argument : there) argument = arrived(argument, server);  // sums are there
    const auto update = [&] {
      const ModeGuard mode(Mode{.strategy = &strategy(), .update_replica = 0});
      result = function(*variable, there);
    };
    note_update(stored->apply(update, current_worker()));
  });
  return combine_updates({result}, group);
}

// Without servers there is one worker, which waits for nobody.
std::unique_ptr<ParameterServerExtended> make_parameter_servers(Worker& worker, const std::vector<Device*>& devices,
                                                                ParameterServerOptions options) {
  const auto cluster = worker.cluster();
  const bool has_servers = std::ranges::any_of(cluster, [](const WorkerSpec& spec) { return spec.job == "ps"; });
  if (has_servers && options.updates == VariableUpdates::synchronous) {
    return std::make_unique<SynchronousServersExtended>(worker, devices, std::move(options));
  }
  return std::make_unique<ParameterServerExtended>(worker, devices, std::move(options));
}

}  // namespace tandem
