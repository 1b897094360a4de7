// Local SGD: replicas train on their own and average their variables from time to time (Stich, "Local SGD Converges
// Fast and Communicates Little", ICLR 2019). Everything that differs from MirroredStrategy is here.
#include "strategies/strategies.h"
#include "strategies/types/mirrored.h"

namespace {

using namespace tandem;

class LocalSgdExtended final : public MirroredExtended {
 public:
  // `period`: steps between two averages.
  LocalSgdExtended(Worker& worker, const ReplicatedSpec& spec, std::int64_t period)
      : MirroredExtended(worker, spec), period_(period) {}

 protected:
  // A gradient on its way to a trainable variable stays with its replica, as if all replicas had the same one.
  ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                       const CommunicationOptions& options) override {
    std::vector<ReducePair> others;
    std::vector<Value> results;
    for (const ReducePair& pair : pairs) {
      const std::shared_ptr<Variable>& variable = pair.second.variable();
      const bool is_gradient = variable && variable->trainable() && pair.first.is(ValueKind::per_replica);
      if (!is_gradient) others.push_back(pair);
      results.push_back(is_gradient ? scaled(pair.first, op == ReduceOp::sum ? num_replicas_in_sync() : 1) : Value());
    }
    ReductionInFlight reduction = MirroredExtended::do_batch_reduce_to(op, others, options);
    auto next = reduction.values.begin();
    for (Value& result : results) {
      if (result.is(ValueKind::none)) result = *next++;
    }
    reduction.values = std::move(results);
    return reduction;
  }

  // run() is a step; after every `period` of them the variables become their mean.
  Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) override {
    Value result = MirroredExtended::do_call_for_each_replica(function, arguments);
    if (++steps_ % period_ == 0) average();
    return result;
  }

 private:
  static Value scaled(const Value& gradient, double factor) {
    for (const Value& part : gradient.parts()) {
      const Tensor& tensor = part.tensor();
      tensor.device().compute_stream().launch(op::scale_add(tensor, tensor, factor, 0));
    }
    return gradient;
  }

  void average() {
    for (const std::weak_ptr<Variable>& weak : variables()) {
      const std::shared_ptr<Variable> variable = weak.lock();
      if (!variable || !variable->trainable() || variable->components().size() < 2) continue;
      const Value components = Value::per_replica({variable->components().begin(), variable->components().end()});
      variable->assign(all_reduce(ReduceOp::mean, components, {}));
    }
  }

  std::int64_t period_;
  std::int64_t steps_ = 0;
};

std::unique_ptr<Strategy> make_local_sgd(Worker& worker, const StrategyOptions& options) {
  std::vector<Device*> devices = options.devices;
  if (devices.empty()) devices.assign(worker.devices().begin(), worker.devices().end());
  auto extended =
      std::make_unique<LocalSgdExtended>(worker, ReplicatedSpec{.devices = devices}, options.own.count("period"));
  return std::make_unique<Strategy>("local_sgd", std::move(extended));
}

// Registered before main() begins: scenarios, make_strategy() and the conformance kit know it by this name.
[[maybe_unused]] const bool registered = [] {
  register_strategy({.name = "local_sgd",
                     .keys = {count_key("period", 8, 1, 1'000'000, "Steps between two averages of the variables.")},
                     .make = make_local_sgd});
  return true;
}();

}  // namespace
