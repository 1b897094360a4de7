#include "tests/conformance/kit/program_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "engine/launched_job.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/variables/apply_gradients.h"
#include "tests/conformance/kit/judge.h"

namespace tandem {
namespace {

Tensor filled(const Shape& shape, double value, DType dtype = DType::f32) {
  Device& device = get_replica_context()->device();
  Tensor tensor = device.allocate(dtype, shape);
  if (tensor.element_count() > 0) device.compute_stream().launch(op::fill(tensor, value));
  return tensor;
}

Value gradient_of(const Statement& statement, int replica) {
  if (!statement.is_sparse) return filled({2}, statement.amount.of(replica));
  return IndexedSlices{filled({1}, statement.amount.of(replica)), filled({1}, 1, DType::i64), Shape{2}};
}

void descend(Variable& variable, const Value& sum) {
  if (sum.is(ValueKind::sparse)) {
    variable.scatter_sub(sum.slices());
  } else {
    variable.assign_sub(sum);
  }
}

int from_environment(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

constexpr const char* kCombines = "combines the values of all replicas, each once, in the order of their ids";
constexpr const char* kChangesAll = "aggregates the values of all replicas and changes every component alike";
constexpr const char* kChangesOwn = "changes in each replica its own component and aggregates only when it is read";
constexpr const char* kRefuses = "runs what all replicas do alike, and refuses everything else with an error";
constexpr const char* kReads = "aggregates the components of all replicas when the variable is read";

class ProgramRun {
 public:
  ProgramRun(Worker& worker, Strategy& strategy, const DrawnProgram& program, const ProgramWorld& world)
      : worker_(worker), strategy_(strategy), program_(program), world_(world), expected_(program, world) {
    for (std::size_t v = 0; v < program.variables.size(); ++v) {
      const DrawnVariable& drawn = program.variables[v];
      variables_.push_back(strategy.create_variable({.name = fmt::format("v{}", v),
                                                     .dtype = drawn.dtype,
                                                     .shape = {2},
                                                     .synchronization = drawn.synchronization,
                                                     .aggregation = drawn.aggregation}));
    }
  }

  std::string difference() {
    for (std::size_t step = 0; step < program_.steps.size() && difference_.empty(); ++step) {
      const ExpectedProgram::Step expected = is_judged_ ? expected_.next_step() : ExpectedProgram::Step();
      const std::string error = error_of([&] { run(step, expected); });
      if (!is_judged_) continue;  // of several workers: the run will end with an error
      if (expected.is_refused != !error.empty()) {
        note(step, {"run()", kRefuses},
             expected.is_refused ? "was not refused, though one replica does otherwise than the others"
                                 : "ended with an error: " + error);
      }
      compare_variables(step, expected.is_refused);
      if (expected.is_refused) break;
    }
    if (world_.workers > 1) strategy_.reduce(ReduceOp::sum, 1);  // a last meeting, in which what is left must come out
    return difference_;
  }

 private:
  // On several workers a refusal ends the run.
  template <typename Function>
  std::string error_of(const Function& function) {
    if (world_.workers > 1) {
      function();
      return "";
    }
    try {
      function();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  // `problem` of a call in a step.
  void note(std::size_t step, const JudgedCall& call, std::string_view problem, std::string_view lines = "") {
    if (!difference_.empty()) return;
    difference_ = message_of({fmt::format("{} in step {}", call.call, step), call.rule}, problem, lines, world_.where);
  }
  void compare(std::size_t step, const JudgedCall& call, const Numbers& found, const Numbers& expected) {
    if (found != expected) {
      note(step, call, fmt::format("found {}, must be {}", numbers_text(found), numbers_text(expected)));
    }
  }
  std::vector<double> numbers_of(const Value& value) {
    if (value.is(ValueKind::number)) return {value.number()};
    return host_values(worker_, value.tensor());
  }

  void run(std::size_t step, const ExpectedProgram::Step& expected) {
    if (expected.is_refused && world_.workers > 1) is_judged_ = false;
    const ProgramStep& drawn = program_.steps[step];
    std::vector<std::pair<std::string, Value>> results;  // of the first replica here
    const Value returned = strategy_.run([&](const Value::Parts&) {
      const int replica = get_replica_context()->replica_id_in_sync_group();
      for (std::size_t i = 0; i < drawn.statements.size(); ++i) {
        const auto statement = program_.of_replica(replica, step, i);
        if (!statement) continue;
        const Value result = execute(*statement, replica);
        if (!result.is(ValueKind::none) && get_replica_context()->local_replica_id() == 0) {
          results.emplace_back(text_of(*statement), result);
        }
      }
      return Value(filled({2}, drawn.amount.of(replica)));
    });
    std::vector<double> after;
    using After = ProgramStep::After;
    switch (drawn.after) {
      case After::nothing:
        break;
      case After::reduce_sum:
        after = numbers_of(strategy_.reduce(ReduceOp::sum, returned));
        break;
      case After::reduce_mean:
        after = numbers_of(strategy_.reduce(ReduceOp::mean, returned));
        break;
      case After::gather:
        after = numbers_of(strategy_.gather(returned, 0));
        break;
      case After::assign:
        variables_[static_cast<std::size_t>(drawn.variable)]->assign(Value(drawn.amount.of(0)));
        break;
    }
    if (!is_judged_ || expected.is_refused) return;
    compare(step, {fmt::format("{} of what run() returned", name_of(drawn.after)), kCombines}, after, expected.after);
    for (std::size_t r = 0; r < std::min(results.size(), expected.results.size()); ++r) {
      const std::string call =
          fmt::format("{} in replica {}", results[r].first, strategy_.extended().first_replica_id());
      compare(step, {call, kCombines}, numbers_of(results[r].second), expected.results[r]);
    }
    if (results.size() == expected.results.size()) return;
    note(step, {"run()", "calls the function once for each replica"},
         fmt::format("its first replica here made {} calls with a result, must make {}", results.size(),
                     expected.results.size()));
  }

  Value execute(const Statement& statement, int replica) {
    ReplicaContext& context = *get_replica_context();
    const double amount = statement.amount.of(replica);
    switch (statement.kind) {
      case Statement::Kind::change: {
        Variable& variable = *variables_[static_cast<std::size_t>(statement.variable)];
        const Value value = statement.is_number ? Value(amount) : Value(filled({2}, amount, variable.dtype()));
        if (statement.change == Change::assign) variable.assign(value);
        if (statement.change == Change::add) variable.assign_add(value);
        if (statement.change == Change::subtract) variable.assign_sub(value);
        return {};
      }
      case Statement::Kind::all_reduce:
        return context.all_reduce(statement.op, filled({2}, amount));
      case Statement::Kind::all_gather: {
        const std::int64_t rows = statement.amount.base + statement.amount.by_replica * replica;
        return context.all_gather(filled({rows}, replica + 1), 0);
      }
      case Statement::Kind::apply_gradients: {
        std::vector<GradientAndVariable> pairs;
        for (const int v : statement.variables) {
          pairs.emplace_back(gradient_of(statement, replica), variables_[static_cast<std::size_t>(v)]);
        }
        apply_gradients(pairs, descend);
        return {};
      }
    }
    return {};
  }

  // After a refusal, a replica may not have come to its own changes of sync-on-read variables.
  void compare_variables(std::size_t step, bool was_refused) {
    for (int v = 0; v < static_cast<int>(variables_.size()) && is_judged_; ++v) {
      Variable& variable = *variables_[static_cast<std::size_t>(v)];
      const bool is_on_read = variable.spec().synchronization == VariableSynchronization::on_read;
      if (is_on_read && was_refused && world_.replicates_variables) continue;
      const int first = strategy_.extended().first_replica_id();
      const std::string name = program_.text_of_variable(v);
      ByReplica found, expected;
      for (const Tensor& component : variable.components()) {
        const Elements& elements = expected_.component(v, first + static_cast<int>(found.size()));
        expected.emplace_back(elements.begin(), elements.end());
        found.push_back(host_values(worker_, component));
      }
      if (found != expected) {
        note(step, {"changes of " + name, is_on_read ? kChangesOwn : kChangesAll},
             "the components of the variable are wrong", lines_by_replica(found, expected, first));
      }
      compare(step, {"read() of " + name, is_on_read ? kReads : kChangesAll},
              {host_values(worker_, variable.read()).at(0)}, {expected_.read(v, first)});
    }
  }

  Worker& worker_;
  Strategy& strategy_;
  const DrawnProgram& program_;
  const ProgramWorld world_;
  ExpectedProgram expected_;
  std::vector<std::shared_ptr<Variable>> variables_;
  bool is_judged_ = true;
  std::string difference_;
};

}  // namespace

std::string difference_of(Worker& worker, Strategy& strategy, const DrawnProgram& program, const ProgramWorld& world) {
  return ProgramRun(worker, strategy, program, world).difference();
}

void expect_drawn_programs(const ProgramWorld& world, const ProgramRunner& run) {
  const auto problem_of = [&](const std::string& bytes) {
    fuzz::Draws draws(bytes);
    const DrawnProgram program = drawn_program(draws, world);
    std::mutex mutex;  // guards what the workers of real engines note
    std::string difference, error;
    try {
      run([&](Worker& worker, Strategy& strategy) {
        const std::string found = difference_of(worker, strategy, program, world);
        const std::lock_guard lock(mutex);
        if (difference.empty()) difference = found;
      });
    } catch (const Error& ending) {
      error = ending.what();
    }
    if (!difference.empty()) return difference;
    const bool must_end = world.workers > 1 && is_refused(program, world);
    if (must_end == !error.empty()) return std::string();
    return message_of({"run() of the program below", kRefuses},
                      must_end ? "was not refused, though one replica does otherwise than the others"
                               : "ended with an error: " + error,
                      "", world.where);
  };
  constexpr std::size_t kBytes = 96;
  const int programs = from_environment("TANDEM_DRAWN_PROGRAMS", 12);
  const int first = from_environment("TANDEM_DRAWN_SEED", 1);
  for (int seed = first; seed < first + programs; ++seed) {
    std::string bytes = fuzz::bytes_of_seed(static_cast<std::uint32_t>(seed), kBytes);
    std::string problem = problem_of(bytes);
    if (problem.empty()) continue;
    if (rank_of_process().count == 1) {  // ranks would not shrink alike
      bytes = fuzz::shrunk(bytes, [&](const std::string& fewer) { return !problem_of(fewer).empty(); });
      problem = problem_of(bytes);
    }
    fuzz::Draws draws(bytes);
    ADD_FAILURE() << problem << "\nThe program, of TANDEM_DRAWN_SEED=" << seed
                  << (rank_of_process().count == 1 ? " in its simplest form:\n" : ":\n")
                  << drawn_program(draws, world).text();
    return;
  }
}

}  // namespace tandem
