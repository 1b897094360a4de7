// Exponentially decaying averages of values and variables: tf.train's moving averages.
//
// Threads and contexts: as for Variable::assign. The work is issued to the devices; nobody waits for it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "strategies/variables/variable.h"

namespace tandem {

// variable = variable * decay + value * (1 - decay). In a replica context the value is averaged over the replicas
// first, and every component gets the result; in an update context only the component being updated does. With
// `zero_debias` the initial zero has no influence: the average in the variable's slot "biased" is divided by the weight
// of the values it has seen. Returns the variable's value as the caller sees it.
Tensor assign_moving_average(const std::shared_ptr<Variable>& variable, const Value& value, double decay,
                             bool zero_debias = true);

// Keeps averages of variables.
class ExponentialMovingAverage {
 public:
  // With `num_updates` the decay is at most (1 + num_updates) / (10 + num_updates). `name` is part of the averages'
  // names.
  explicit ExponentialMovingAverage(double decay, std::optional<double> num_updates = std::nullopt,
                                    std::string name = "ExponentialMovingAverage");

  // Moves the variable's average towards the variable's value. The first call creates the average under the variable's
  // strategy, with the value of the variable's component 0.
  void apply(const std::shared_ptr<Variable>& variable);
  std::shared_ptr<Variable> average(const std::shared_ptr<Variable>& variable) const;  // null before apply()
  std::string average_name(const Variable& variable) const;

 private:
  double decay_;
  std::string name_;
  std::map<std::shared_ptr<Variable>, std::shared_ptr<Variable>> averages_;
};

}  // namespace tandem
