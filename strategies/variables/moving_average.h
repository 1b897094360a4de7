// Exponentially decaying averages of values and variables: tf.train's moving averages.
//
// Threads and contexts: those of Variable::assign. Everything stays on the devices; nothing waits for them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "strategies/variables/variable.h"

namespace tandem {

// variable = variable * decay + value * (1 - decay). In a replica context the value is averaged over the replicas
// first, and every component gets the result; in an update context only the component being updated. With `zero_debias`
// the variable is divided by what zeros still weigh in it, as if it had begun with the first value; the undivided
// average is the variable's slot "biased". Returns the variable as seen by the caller.
Tensor assign_moving_average(const std::shared_ptr<Variable>& variable, const Value& value, double decay,
                             bool zero_debias = true);

// Keeps averages of variables.
class ExponentialMovingAverage {
 public:
  // With `num_updates` the decay is at most (1 + num_updates) / (10 + num_updates). The name is part of the averages'.
  explicit ExponentialMovingAverage(double decay, std::optional<double> num_updates = std::nullopt,
                                    std::string name = "ExponentialMovingAverage");

  // Moves the variable's average towards its value. The average is created at the first call, under the variable's
  // strategy, and begins as the variable's component 0.
  void apply(const std::shared_ptr<Variable>& variable);
  std::shared_ptr<Variable> average(const std::shared_ptr<Variable>& variable) const;  // null before apply()
  std::string average_name(const Variable& variable) const;

 private:
  double decay_;
  std::string name_;
  std::map<std::shared_ptr<Variable>, std::shared_ptr<Variable>> averages_;
};

}  // namespace tandem
