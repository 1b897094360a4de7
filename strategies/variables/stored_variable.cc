#include "strategies/variables/stored_variable.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"
#include "strategies/variables/components.h"

namespace tandem {
namespace {

constexpr int kFirstLinkStream = 16;

}  // namespace

void Staleness::add(const Staleness& other) {
  updates += other.updates;
  sum += other.sum;
  maximum = std::max(maximum, other.maximum);
}

Stream& link_stream(Device& server, int worker) {
  return server.stream(kFirstLinkStream + worker);
}

StoredVariable::StoredVariable(Strategy& strategy, VariableSpec spec, std::shared_ptr<StoredTensor> stored,
                               bool aggregates)
    : Variable(strategy, std::move(spec), {stored->tensor()}), stored_(std::move(stored)), aggregates_(aggregates) {}

// Copies on the server's device, in the order of the updates.
Tensor StoredVariable::snapshot() {
  return snapshot_in(stored_->tensor().device().allocate(dtype(), shape()));
}

Tensor StoredVariable::snapshot_in(Tensor snapshot) {
  Device& server = snapshot.device();
  Op copy = op::scale_add(snapshot, stored_->tensor(), 1, 0);
  copy.name = "read " + name();
  copy.category = Category::communication;
  server.compute_stream().launch(std::move(copy));
  return snapshot;
}

void StoredVariable::await_updates() const {
  if (stored_->before_read) stored_->before_read();
}

// The snapshot is taken in the order of the updates, but is sent while later updates run.
Tensor StoredVariable::brought_to(Device& device) {
  await_updates();
  Device& server = stored_->tensor().device();
  Tensor snapshot = server.allocate(dtype(), shape());
  Event taken;
  {
    const std::lock_guard lock(*stored_->shared);
    snapshot_in(snapshot);
    taken = server.compute_stream().record();
    StoredTensor::Reader& reader = stored_->readers[device.worker()];
    reader.version_read = stored_->shared->version();
    reader.own_updates_since = 0;
  }
  if (&device == &server) return snapshot;
  Stream& link = link_stream(server, device.worker());
  Tensor fetched = device.allocate(dtype(), shape());
  link.wait(taken);
  link.copy(fetched, snapshot);
  device.compute_stream().wait(link.record());
  return fetched;
}

Tensor StoredVariable::value() {
  switch (where()) {
    case Where::update:
      return snapshot();  // apply() holds the monitor
    case Where::replica:
      return brought_to(get_replica_context()->device());
    case Where::cross_replica:
      return brought_to(strategy().extended().worker().cpu());
  }
  TANDEM_UNREACHABLE("a Where outside its enumerators");
}

// There is one update, so there is one result, on the host of the worker that computes.
Value StoredVariable::result_for_all(Device& device) {
  const DeviceId& id = device.id();
  return brought_to(
      strategy().extended().worker().device({.job = id.job, .task = id.task, .type = DeviceType::cpu, .index = 0}));
}

Tensor StoredVariable::component_value(int /*component*/) {
  if (where() == Where::update) return snapshot();  // apply() holds the monitor
  await_updates();
  const std::lock_guard lock(*stored_->shared);
  return snapshot();
}

Staleness StoredVariable::apply(const std::function<void()>& update, int worker) {
  const std::lock_guard lock(*stored_->shared);
  update();
  StoredTensor::Reader& reader = stored_->readers[worker];
  const std::int64_t age = stored_->shared->version() - reader.version_read - reader.own_updates_since;
  stored_->shared->note_change();
  ++reader.own_updates_since;
  const Staleness of_this{.updates = 1, .sum = age, .maximum = age};
  reader.staleness.add(of_this);
  return of_this;
}

Staleness StoredVariable::staleness(std::optional<int> worker) const {
  const std::lock_guard lock(*stored_->shared);
  Staleness total;
  for (const auto& [index, reader] : stored_->readers) {
    if (!worker || *worker == index) total.add(reader.staleness);
  }
  return total;
}

void StoredVariable::check_aggregation() const {
  if (aggregation() != VariableAggregation::none) return;
  throw ValueError(
      fmt::format("variable '{}' is changed by several replicas: you must specify an aggregation method, "
                  "SUM, MEAN or ONLY_FIRST_REPLICA",
                  name()));
}

Tensor StoredVariable::change(Change change, const Value& value) {
  switch (where()) {
    case Where::update:
      apply_change(change, stored_->tensor(), value);
      return stored_->tensor();
    case Where::replica:
      if (aggregates_) {
        check_aggregation();
        return change_merged(change, value);
      }
      get_replica_context()->merge_call(
          [&](Strategy&, const Value::Parts&) {
            change_all(change, value);
            return Value();
          },
          {}, {std::string(name_of(change)), {this}});
      return this->value();
    case Where::cross_replica:
      change_all(change, value);
      return this->value();
  }
  TANDEM_UNREACHABLE("a Where outside its enumerators");
}

Tensor StoredVariable::scatter(kernel::Scatter operation, const IndexedSlices& slices) {
  if (where() == Where::update) {
    apply_scatter(operation, stored_->tensor(), slices);
    return stored_->tensor();
  }
  if (where() == Where::replica && aggregates_) {
    check_aggregation();
    return scatter_merged(operation, slices);
  }
  scatter_all(operation, Value(slices));
  return value();
}

Tensor StoredVariable::saved_value() {
  return brought_to(strategy().extended().worker().cpu());
}

}  // namespace tandem
