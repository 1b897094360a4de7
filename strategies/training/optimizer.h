// tf.keras.optimizers: optimizers with state beside the variables. The semantics are those of TensorFlow 2
// (tf.keras.optimizers.legacy); derive from Optimizer to write another one.
//
// Threads and contexts: as for tandem::apply_gradients(). Functions that a ClusterCoordinator schedules may use one
// optimizer at the same time, after build().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "strategies/variables/apply_gradients.h"

namespace tandem {

class Checkpoint;
class ShardedVariable;

namespace optimizers {

// A number, or a schedule: a function of the number of steps that have been applied.
class LearningRate {
 public:
  LearningRate(double rate) : rate_(rate) {}  // NOLINT(google-explicit-constructor)
  template <typename Schedule>
  requires std::is_invocable_r_v<double, Schedule, std::int64_t> LearningRate(Schedule schedule)
      : schedule_(std::move(schedule)) {}  // NOLINT(google-explicit-constructor)
  bool is_schedule() const { return static_cast<bool>(schedule_); }
  double at(std::int64_t iterations) const { return schedule_ ? schedule_(iterations) : rate_; }

 private:
  double rate_ = 0;
  std::function<double(std::int64_t)> schedule_{};
};

// At most one may be set. They apply to the gradients that are summed over the replicas, as in TensorFlow.
struct Clipping {
  std::optional<double> clipnorm{};         // a gradient's norm is at most this
  std::optional<double> clipvalue{};        // each element is at most this, and at least its negative
  std::optional<double> global_clipnorm{};  // the norm of all gradients together is at most this
};

class Optimizer {
 public:
  // `name` is part of the slots' names. ValueError for clipping that is not positive or of two kinds.
  Optimizer(std::string name, LearningRate learning_rate, Clipping clipping);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return name_; }

  // Sums the gradients over the replicas, unless `skip_gradients_aggregation` says that they are the same on all
  // replicas already, and updates each variable and its slots where they are stored. Then adds one to iterations().
  // Rows that IndexedSlices name twice are added up first. If an optimizer changes only the named rows, the host reads
  // the indices, which blocks it. Without values all rows are taken as different ones.
  //
  // Throws as tandem::apply_gradients() does; ValueError for a variable of another strategy than the current one, and
  // InvalidArgumentError for slices with a row that the variable does not have.
  void apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables,
                       bool skip_gradients_aggregation = false);

  // Create what the first step would create: iterations(), and the slots of these variables. Called in a cross-replica
  // context or the default state. Needed before a checkpoint is restored.
  void build(const std::vector<std::shared_ptr<Variable>>& variables);

  // The number of steps so far (i64, ONLY_FIRST_REPLICA), which may be assigned; created under the current strategy.
  const std::shared_ptr<Variable>& iterations();
  // The rate of the next step. Where schedule or optimizer depend on the number of steps, and somebody else may have
  // changed it, the host reads iterations(), which blocks the caller.
  double learning_rate();

  std::vector<std::string> get_slot_names() const;
  // The slot, beside its variable and named "<variable>/<optimizer>/<slot>"; null before the first step and build().
  std::shared_ptr<Variable> get_slot(const std::shared_ptr<Variable>& variable, const std::string& slot) const;
  // iterations(), if there is one, and all slots in the order of their creation.
  std::vector<std::shared_ptr<Variable>> variables() const;
  // Adds variables() to a checkpoint, by their names.
  void add_to(Checkpoint& checkpoint) const;

 protected:
  struct SlotSpec {
    std::string name{};
    double initial_value = 0;
  };
  // What an update works on: tensors of one shape and type on one device. The gradient stays as it is.
  struct Operands {
    Tensor value{};
    std::vector<Tensor> slots{};  // in the order of slots()
    Tensor gradient{};
  };
  struct Step {
    double learning_rate = 0;
    std::int64_t number = 1;  // from 1
  };
  // How IndexedSlices are applied: as a dense gradient, to their rows only, or added to these without other state.
  enum class Sparse : std::uint8_t { as_dense, by_rows, added };

  virtual std::vector<SlotSpec> slots() const { return {}; }
  virtual Sparse sparse() const { return Sparse::as_dense; }
  virtual bool depends_on_step() const { return false; }
  // Issues the update to the device's compute stream. For Sparse::added it is -learning_rate times the gradient.
  virtual void update(const Step& step, const Operands& operands) const = 0;

 private:
  struct Slots {
    std::shared_ptr<Variable> variable;
    std::vector<std::shared_ptr<Variable>> slots;
  };
  using Rows = std::vector<std::int64_t>;

  const std::vector<std::shared_ptr<Variable>>& slots_of(const std::shared_ptr<Variable>& variable);
  std::int64_t steps_so_far();
  void prepare(Strategy& strategy, const std::vector<std::shared_ptr<Variable>>& variables,
               std::vector<Value>& gradients, std::vector<Rows>& rows);
  void update_component(const Step& step, Variable& variable, const Value& gradient, const Rows& rows) const;
  void update_rows(const Step& step, const Operands& whole, const Value& gradient, const Rows& rows) const;

  std::string name_;
  LearningRate learning_rate_;
  Clipping clipping_;
  std::shared_ptr<Variable> iterations_;
  std::vector<std::unique_ptr<Slots>> slots_;
  std::map<const Variable*, const Slots*> slots_by_variable_;
  std::atomic<std::int64_t> steps_ = 0;  // what iterations_ holds, while it is written to as often as `writes_` says
  std::optional<std::int64_t> writes_{};
};

// Divides a gradient of a sharded variable among its shards, as views of a dense one; those of IndexedSlices get the
// rows that are theirs, whose indices the host reads (RuntimeError where the engine carries no values). For
// apply_gradients().
std::vector<GradientAndVariable> gradients_of_shards(const Value& gradient, const ShardedVariable& variable);

}  // namespace optimizers
}  // namespace tandem
