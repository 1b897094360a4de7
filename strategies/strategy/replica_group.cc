#include "strategies/strategy/replica_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>

#include "engine/purpose.h"
#include "strategies/base/errors.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_arguments.h"
#include "strategies/variables/variable.h"

namespace tandem {

ReplicaGroup::ReplicaGroup(Strategy& strategy, Worker& worker, const std::vector<Device*>& devices, int first_id)
    : strategy_(strategy), worker_(worker), replicas_(devices.size()), failure_monitor_(worker.tasks().make_monitor()) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const int local_id = static_cast<int>(i);
    replicas_[i].context = std::make_unique<ReplicaContext>(strategy, first_id + local_id, local_id, devices[i], this);
    replicas_[i].monitor = worker.tasks().make_monitor();
  }
}

Value ReplicaGroup::run(const ReplicaFunction& function, const Value::Parts& arguments) {
  check_arguments("run()", arguments, replicas_.size(), "replicas");
  failure_ = nullptr;
  is_stopped_ = false;
  variables_.clear();
  creators_ = variable_creators();
  for (Replica& replica : replicas_) {
    replica.holds_baton = false;
    replica.state = State::running;
    replica.merge_calls = 0;
    replica.variables.clear();
  }
  replicas_.front().holds_baton = true;
  worker_.tasks().run_in_turn(static_cast<int>(replicas_.size()), [&](int i) { replica_main(i, function, arguments); });
  if (failure_) std::rethrow_exception(failure_);
  Value::Parts results;
  for (Replica& replica : replicas_) results.push_back(std::move(replica.result));
  return regroup(results);
}

void ReplicaGroup::replica_main(int index, const ReplicaFunction& function, const Value::Parts& arguments) {
  Replica& replica = replicas_[static_cast<std::size_t>(index)];
  try {
    take_baton(index, fmt::format("replica {} to reach its next merge_call or its end", index - 1));
    const InheritedCreators creators(creators_);
    const ModeGuard mode(Mode{.strategy = &strategy_, .replica = replica.context.get()});
    replica.result = function(arguments_of(index, arguments));
    replica.state = State::finished;
    pass_on(index);
  } catch (const Stopped&) {
  } catch (...) {
    fail(std::current_exception());
  }
}

void ReplicaGroup::take_baton(int index, const std::string& reason) {
  Replica& replica = replicas_[static_cast<std::size_t>(index)];
  const std::lock_guard lock(*replica.monitor);
  while (!replica.holds_baton) replica.monitor->wait(reason);
  replica.holds_baton = false;
  if (is_stopped_) throw Stopped();
}

void ReplicaGroup::give_baton(int index) {
  Replica& replica = replicas_[static_cast<std::size_t>(index)];
  const std::lock_guard lock(*replica.monitor);
  replica.holds_baton = true;
  replica.monitor->notify_all();
}

// Called by the replica that holds the baton when it has reached a merge point or its end.
void ReplicaGroup::pass_on(int index) {
  if (index + 1 < static_cast<int>(replicas_.size())) {
    give_baton(index + 1);
    return;
  }
  const auto finished = std::count_if(replicas_.begin(), replicas_.end(),
                                      [](const Replica& replica) { return replica.state == State::finished; });
  if (finished == static_cast<std::ptrdiff_t>(replicas_.size())) return;
  if (finished > 0) {
    throw RuntimeError(fmt::format(
        "replicas made a different number of merge_call calls: {} waiting in merge_call, {} finished without it",
        replicas_in(State::merging), replicas_in(State::finished)));
  }
  give_baton(0);
}

std::string ReplicaGroup::replicas_in(State state) const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    if (replicas_[i].state != state) continue;
    texts.push_back(state == State::merging ? fmt::format("replica {} (call {})", i, replicas_[i].merge_calls)
                                            : fmt::format("replica {} ({} made)", i, replicas_[i].merge_calls));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

Value ReplicaGroup::merge_call(int index, const MergeFunction& function, const Value::Parts& arguments,
                               const MergePurpose& purpose) {
  Replica& replica = replicas_[static_cast<std::size_t>(index)];
  replica.arguments = arguments;
  replica.purpose = purpose;
  replica.state = State::merging;
  ++replica.merge_calls;
  if (index == 0) merge_function_ = function;
  pass_on(index);
  take_baton(index, fmt::format("merge_call {} of all replicas", replica.merge_calls));
  if (index == 0) merge();  // all have come here: only then does pass_on() give replica 0 the baton
  return std::move(replica.result);
}

void ReplicaGroup::check_purposes() const {
  const Replica& first = replicas_.front();
  for (std::size_t i = 1; i < replicas_.size(); ++i) {
    if (replicas_[i].purpose == first.purpose) continue;
    const auto id = [](const Replica& replica) { return replica.context->replica_id_in_sync_group(); };
    const auto [ours, others] = shown_difference(first.purpose.text(), replicas_[i].purpose.text());
    throw RuntimeError(
        fmt::format("replicas meet in different calls: replica {} in {}, replica {} in {}; all replicas "
                    "make the same calls in the same order",
                    id(first), ours, id(replicas_[i]), others));
  }
}

void ReplicaGroup::merge() {
  check_purposes();
  Value::Parts merged;
  for (std::size_t a = 0; a < replicas_.front().arguments.size(); ++a) {
    Value::Parts same;
    for (Replica& replica : replicas_) {
      if (replica.arguments.size() != replicas_.front().arguments.size()) {
        throw AssertionError("replicas passed different numbers of arguments to merge_call");
      }
      same.push_back(replica.arguments[a]);
    }
    merged.push_back(regroup(same));
  }
  for (Replica& replica : replicas_) replica.arguments.clear();  // only the merge function holds them now
  const InheritedCreators creators(creators_);                   // not those that replica 0 has opened
  const CallPurpose noted([&] { return replicas_.front().purpose.text(); });
  const ModeGuard cross(Mode{.strategy = &strategy_});
  const Value result = merge_function_(strategy_, merged);
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    replicas_[i].result = select_replica(static_cast<int>(i), result);
    replicas_[i].state = State::running;
  }
}

std::shared_ptr<Variable> ReplicaGroup::variable(
    int index, const VariableSpec& spec, const std::function<std::shared_ptr<Variable>(const VariableSpec&)>& make) {
  const std::string name = canonical_name(spec.name);
  std::vector<std::shared_ptr<Variable>>& made = variables_[name];
  const std::size_t count = replicas_[static_cast<std::size_t>(index)].variables[name]++;
  if (index == 0) made.push_back(make(spec));
  if (count < made.size()) return made[count];
  throw RuntimeError(
      fmt::format("replica {} creates variable '{}', which replica 0 has created {} times only: every replica must "
                  "create the same variables in the same order",
                  index, spec.name, made.size()));
}

void ReplicaGroup::fail(std::exception_ptr failure) {
  {
    const std::lock_guard lock(*failure_monitor_);
    if (!failure_) failure_ = std::move(failure);
    is_stopped_ = true;
  }
  for (int i = 0; i < static_cast<int>(replicas_.size()); ++i) give_baton(i);
}

}  // namespace tandem
