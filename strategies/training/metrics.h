// tf.keras.metrics: results over all steps and replicas. A metric's state is in variables that synchronise on read,
// with aggregation SUM: the replicas update it without communication, and reading the result adds their states up.
//
// Threads and contexts: a metric is made where a variable can be created, and its state belongs to the strategy that is
// current then. update_state() is called in a replica context of that strategy, or anywhere if that is the default
// strategy (RuntimeError elsewhere). The work is issued to the devices; nobody waits for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/variables/variable.h"

namespace tandem::metrics {

class Metric {
 public:
  virtual ~Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<std::shared_ptr<Variable>>& variables() const { return variables_; }

  // Returns a scalar (f32) from the states of all replicas of all workers, all of which call it: in a cross-replica
  // context every worker's program and, as in TensorFlow, in a replica context every replica.
  Tensor result();
  // Returns a scalar from this replica's state alone, in a replica context, without communication.
  Tensor local_result();
  // Sets the state to zero: in a replica context only this replica's.
  void reset_state();

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  // Creates a scalar of the state, "<metric>/<name>".
  std::shared_ptr<Variable> add_weight(const std::string& name);
  // RuntimeError, naming the metric, where replicas would not update it.
  void require_update_context() const;
  // Computes the result from the current values of the state.
  virtual Tensor computed() = 0;

 private:
  std::string name_;
  std::vector<std::shared_ptr<Variable>> variables_;
};

// The sum of all values, each times its weight. Values and weights are numbers or tensors of any type with arithmetic;
// of a distributed value the current replica's part counts. Weights have as many elements as the values, or one for
// each of the first axes: values [n, m] take [n], and then the mean over the other axes is what has the weight
// (ValueError for other shapes).
class Sum final : public Metric {
 public:
  explicit Sum(std::string name = "sum");
  void update_state(const Value& values, const std::optional<Value>& sample_weight = std::nullopt);

 private:
  Tensor computed() override;
  std::shared_ptr<Variable> total_;
};

// A metric whose result is a mean by weights; 0 before there is a weight.
class MeanMetric : public Metric {
 protected:
  explicit MeanMetric(std::string name);
  void add_values(const Tensor& values, const std::optional<Value>& sample_weight);
  void add(const Tensor& total, const Tensor& count);  // scalars of f32

 private:
  Tensor computed() override;
  std::shared_ptr<Variable> total_, count_;
};

// The mean of all values, with values and weights as for Sum.
class Mean final : public MeanMetric {
 public:
  explicit Mean(std::string name = "mean") : MeanMetric(std::move(name)) {}
  void update_state(const Value& values, const std::optional<Value>& sample_weight = std::nullopt);
};

// The rest are means over what they compare, element by element; the labels come first, as in TensorFlow. Weights are
// as for Sum.

// How often two numbers are the same: labels and predicted classes.
class Accuracy final : public MeanMetric {
 public:
  explicit Accuracy(std::string name = "accuracy") : MeanMetric(std::move(name)) {}
  // ValueError for different numbers of elements or types.
  void update_state(const Value& labels, const Value& predictions,
                    const std::optional<Value>& sample_weight = std::nullopt);
};

// How often a prediction is on the label's side (0 or 1) of the threshold.
class BinaryAccuracy final : public MeanMetric {
 public:
  explicit BinaryAccuracy(std::string name = "binary_accuracy", double threshold = 0.5)
      : MeanMetric(std::move(name)), threshold_(threshold) {}
  void update_state(const Value& labels, const Value& predictions,
                    const std::optional<Value>& sample_weight = std::nullopt);

 private:
  double threshold_;
};

// How often the largest of a row of logits or probabilities is the label's.
class SparseCategoricalAccuracy final : public MeanMetric {
 public:
  explicit SparseCategoricalAccuracy(std::string name = "sparse_categorical_accuracy") : MeanMetric(std::move(name)) {}
  // labels [rows] of i32, predictions [rows, classes] of a floating-point type.
  void update_state(const Value& labels, const Value& predictions);
};

// The mean of squared differences. An example is an index of the first axis; weights are per example or per element.
class MeanSquaredError final : public MeanMetric {
 public:
  explicit MeanSquaredError(std::string name = "mean_squared_error") : MeanMetric(std::move(name)) {}
  void update_state(const Value& labels, const Value& predictions,
                    const std::optional<Value>& sample_weight = std::nullopt);
};

}  // namespace tandem::metrics
