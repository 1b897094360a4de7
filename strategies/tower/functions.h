// The functions that programs pass to a DistributionStrategy.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "strategies/strategy/strategy_extended.h"

namespace tandem::tower {

class MultiStepContext;

using TowerFunction = ReplicaFunction;
using MapFunction = std::function<Value(const Value& element, Device& device, const Value::Parts& arguments)>;
using FetchFunction = std::function<Value(const Tensor& value)>;

// A step of run_steps_on_dataset(): what it returns becomes the loop's run_op(). A function may also return nothing.
class StepFunction {
 public:
  template <typename Function>
  StepFunction(Function function) {  // NOLINT(google-explicit-constructor): any callable
    if constexpr (std::is_void_v<std::invoke_result_t<Function, MultiStepContext&, const Value::Parts&>>) {
      call_ = [function = std::move(function)](MultiStepContext& context, const Value::Parts& inputs) {
        function(context, inputs);
        return Value();
      };
    } else {
      call_ = std::move(function);
    }
  }
  Value operator()(MultiStepContext& context, const Value::Parts& inputs) const { return call_(context, inputs); }

 private:
  std::function<Value(MultiStepContext& context, const Value::Parts& inputs)> call_;
};

}  // namespace tandem::tower
