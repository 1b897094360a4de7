// Programs drawn at random, and what they must come to: changes of variables of every kind in replica and cross-replica
// context, reductions, gathers (also of no rows) and gradients that come in another order, are missing or are sparse.
// In some programs one replica does otherwise than the others, which every world must refuse: no component of a
// mirrored variable may differ from another one without a word.
//
// A value is a multiple of 12 that depends on the replica, so that sums, and means of up to four replicas, are exact.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "strategies/base/options.h"
#include "strategies/variables/variable.h"
#include "tests/fuzz/draws.h"

namespace tandem {

// What a program may be made of under a strategy, and over how many replicas it runs.
struct ProgramWorld {
  int replicas = 1, workers = 1;
  bool replicates_variables = true;  // one component a replica
  bool trains_in_step = true;        // gradients are combined in every step
  std::string where{};               // the strategy and its world, for messages

  int local_replicas() const { return replicas / workers; }
};

struct DrawnVariable {
  DType dtype = DType::f32;
  VariableSynchronization synchronization = VariableSynchronization::automatic;
  VariableAggregation aggregation = VariableAggregation::sum;
};

struct Amount {
  int base = 0, by_replica = 0;
  double of(int replica) const { return 12.0 * (base + by_replica * replica); }
};

struct Statement {
  enum class Kind : std::uint8_t { change, all_reduce, all_gather, apply_gradients };
  Kind kind = Kind::change;
  int variable = 0;  // of a change
  Change change = Change::add;
  ReduceOp op = ReduceOp::sum;   // of all_reduce
  Amount amount{};               // of all_gather: the rows, base + by_replica * replica
  std::vector<int> variables{};  // of apply_gradients, in the order of replica 0
  bool rotates = false;          // each replica begins with another one
  bool is_sparse = false;        // gradients of row 1 only
  bool is_number = false;        // of a change: a number, no tensor
};

std::string text_of(const Statement& statement);  // "v0.assign_add() with 12 * (1 + 2 * replica)"

// What one replica does otherwise.
struct Oddity {
  enum class Kind : std::uint8_t { skips, other_operation, other_variable, lacks_a_gradient };
  Kind kind = Kind::skips;
  int replica = 0;
  std::size_t step = 0, statement = 0;
};

struct ProgramStep {
  enum class After : std::uint8_t { nothing, reduce_sum, reduce_mean, gather, assign };
  std::vector<Statement> statements{};
  After after = After::nothing;  // in the cross-replica context, with what the replicas return
  Amount amount{};               // that they return, or assign() gets
  int variable = 0;              // of assign()
};

std::string_view name_of(ProgramStep::After after);  // "reduce(SUM)"

struct DrawnProgram {
  std::vector<DrawnVariable> variables{};
  std::vector<ProgramStep> steps{};
  std::optional<Oddity> oddity{};

  std::string text() const;
  std::string text_of_variable(int variable) const;  // "variable 'v0' (f32, ON_READ, SUM)"
  // What a replica executes in place of a statement; nothing where it skips it.
  std::optional<Statement> of_replica(int replica, std::size_t step, std::size_t statement) const;
};

DrawnProgram drawn_program(fuzz::Draws& draw, const ProgramWorld& world);

// Whether some replicas meet in different calls.
bool is_refused(const DrawnProgram& program, const ProgramWorld& world);

// The two elements of a component.
using Elements = std::array<double, 2>;

// Follows a program with plain numbers.
class ExpectedProgram {
 public:
  ExpectedProgram(const DrawnProgram& program, const ProgramWorld& world);

  // What the step comes to.
  struct Step {
    bool is_refused = false;                     // the replicas meet in different calls
    std::vector<std::vector<double>> results{};  // of each call that has a result, in order, as every replica sees it
    std::vector<double> after{};                 // of the cross-replica call
  };
  Step next_step();

  // After the steps so far, of one that was refused what came before the refusal.
  const Elements& component(int variable, int replica) const;
  // Element 0 of read() in the cross-replica context of the worker whose first replica this is.
  double read(int variable, int first_replica) const;

 private:
  bool is_local(const Statement& statement) const;
  std::string meeting(const std::optional<Statement>& statement, int replica) const;
  void change(int variable, int replica, Change change, double value);
  void meet(const std::vector<Statement>& statements, Step& step);

  const DrawnProgram& program_;
  const ProgramWorld world_;
  std::size_t step_ = 0;
  std::vector<std::vector<Elements>> components_;  // by variable and replica
};

}  // namespace tandem
