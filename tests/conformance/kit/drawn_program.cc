#include "tests/conformance/kit/drawn_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tandem {
namespace {

using Kind = Statement::Kind;

DrawnVariable drawn_variable(fuzz::Draws& draw) {
  DrawnVariable variable;
  variable.aggregation =
      draw.of({VariableAggregation::sum, VariableAggregation::mean, VariableAggregation::only_first_replica});
  variable.synchronization = draw.of({VariableSynchronization::automatic, VariableSynchronization::on_read});
  const bool has_means = variable.aggregation == VariableAggregation::mean;
  variable.dtype = draw.one_in(4) && !has_means ? DType::i64 : DType::f32;
  return variable;
}

bool is_trained(const DrawnVariable& variable) {
  return variable.dtype == DType::f32 && variable.synchronization == VariableSynchronization::automatic;
}

Amount drawn_amount(fuzz::Draws& draw) {
  return {static_cast<int>(draw.index(4)), static_cast<int>(draw.index(3))};
}

std::vector<int> trained_variables(const DrawnProgram& program) {
  std::vector<int> trained;
  for (int v = 0; v < static_cast<int>(program.variables.size()); ++v) {
    if (is_trained(program.variables[static_cast<std::size_t>(v)])) trained.push_back(v);
  }
  return trained;
}

Statement drawn_statement(fuzz::Draws& draw, const DrawnProgram& program, const ProgramWorld& world) {
  Statement statement;
  statement.kind = draw.of({Kind::change, Kind::apply_gradients, Kind::all_reduce, Kind::all_gather});
  statement.amount = drawn_amount(draw);
  std::vector<int> trained = trained_variables(program);
  if (statement.kind == Kind::apply_gradients && (trained.empty() || !world.trains_in_step)) {
    statement.kind = Kind::change;
  }
  switch (statement.kind) {
    case Kind::change: {
      statement.variable = static_cast<int>(draw.index(program.variables.size()));
      statement.change = draw.of({Change::add, Change::assign, Change::subtract});
      statement.is_number = draw.one_in(3);
      const DrawnVariable& variable = program.variables[static_cast<std::size_t>(statement.variable)];
      // Each worker takes its own first replica's value, so it must be the same on all of them.
      if (variable.aggregation == VariableAggregation::only_first_replica) statement.amount.by_replica = 0;
      break;
    }
    case Kind::apply_gradients:
      if (draw.one_in(2)) std::reverse(trained.begin(), trained.end());
      while (trained.size() > 1 && draw.one_in(2)) trained.pop_back();
      statement.variables = trained;
      statement.rotates = draw.one_in(2);
      statement.is_sparse = draw.one_in(3);
      break;
    case Kind::all_reduce:
      statement.op = draw.of({ReduceOp::sum, ReduceOp::mean});
      break;
    case Kind::all_gather:
      break;
  }
  return statement;
}

std::string text_of(const Amount& amount) {
  return fmt::format("12 * ({} + {} * replica)", amount.base, amount.by_replica);
}

std::string_view name_of(Oddity::Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"skips it", "calls another operation", "takes another variable",
                                                      "lacks the first gradient"};
  return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace

std::string text_of(const Statement& statement) {
  switch (statement.kind) {
    case Kind::change:
      return fmt::format("v{}.{} with {}{}", statement.variable, name_of(statement.change), text_of(statement.amount),
                         statement.is_number ? ", a number" : "");
    case Kind::all_reduce:
      return fmt::format("all_reduce {} of {}", name_of(statement.op), text_of(statement.amount));
    case Kind::all_gather:
      return fmt::format("all_gather of {} + {} * replica rows", statement.amount.base, statement.amount.by_replica);
    case Kind::apply_gradients:
      return fmt::format("apply_gradients of {}{} to v{}{}", statement.is_sparse ? "sparse " : "",
                         text_of(statement.amount), fmt::join(statement.variables, ", v"),
                         statement.rotates ? ", rotated by replica" : "");
  }
  return "";
}

std::string_view name_of(ProgramStep::After after) {
  constexpr std::array<std::string_view, 5> kNames = {"nothing", "reduce(SUM)", "reduce(MEAN)", "gather(axis 0)",
                                                      "assign()"};
  return kNames.at(static_cast<std::size_t>(after));
}

std::string DrawnProgram::text_of_variable(int variable) const {
  const DrawnVariable& drawn = variables[static_cast<std::size_t>(variable)];
  return fmt::format("variable 'v{}' ({}, {}, {})", variable, tandem::name_of(drawn.dtype),
                     tandem::name_of(drawn.synchronization), tandem::name_of(drawn.aggregation));
}

std::string DrawnProgram::text() const {
  std::string text;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    const DrawnVariable& variable = variables[v];
    text += fmt::format("v{}: {}, {}, {}\n", v, tandem::name_of(variable.dtype),
                        tandem::name_of(variable.synchronization), tandem::name_of(variable.aggregation));
  }
  for (std::size_t s = 0; s < steps.size(); ++s) {
    text += fmt::format("step {}\n", s);
    for (std::size_t i = 0; i < steps[s].statements.size(); ++i) {
      text += "  " + text_of(steps[s].statements[i]);
      if (oddity && oddity->step == s && oddity->statement == i) {
        text += fmt::format(" -- replica {} {}", oddity->replica, name_of(oddity->kind));
      }
      text += "\n";
    }
    text += fmt::format("  then {} (v{}, {})\n", name_of(steps[s].after), steps[s].variable, text_of(steps[s].amount));
  }
  return text;
}

std::optional<Statement> DrawnProgram::of_replica(int replica, std::size_t step, std::size_t index) const {
  Statement statement = steps[step].statements[index];
  if (statement.rotates) {
    const auto by = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(replica) % statement.variables.size());
    std::rotate(statement.variables.begin(), statement.variables.begin() + by, statement.variables.end());
  }
  if (!oddity || oddity->replica != replica || oddity->step != step || oddity->statement != index) return statement;
  switch (oddity->kind) {
    case Oddity::Kind::skips:
      return std::nullopt;
    case Oddity::Kind::other_operation:
      statement.op = statement.op == ReduceOp::sum ? ReduceOp::mean : ReduceOp::sum;
      statement.change = statement.change == Change::add ? Change::subtract : Change::add;
      break;
    case Oddity::Kind::other_variable:
      statement.variable = (statement.variable + 1) % static_cast<int>(variables.size());
      break;
    case Oddity::Kind::lacks_a_gradient:
      if (!statement.variables.empty()) statement.variables.erase(statement.variables.begin());
      break;
  }
  return statement;
}

DrawnProgram drawn_program(fuzz::Draws& draw, const ProgramWorld& world) {
  DrawnProgram program;
  const std::size_t variables = 1 + draw.index(3), steps = 1 + draw.index(3);
  for (std::size_t v = 0; v < variables; ++v) program.variables.push_back(drawn_variable(draw));
  for (std::size_t s = 0; s < steps; ++s) {
    ProgramStep& step = program.steps.emplace_back();
    const std::size_t statements = 1 + draw.index(4);
    for (std::size_t i = 0; i < statements; ++i) step.statements.push_back(drawn_statement(draw, program, world));
    using After = ProgramStep::After;
    step.after = draw.of({After::nothing, After::reduce_sum, After::reduce_mean, After::gather, After::assign});
    step.amount = drawn_amount(draw);
    if (step.after == After::assign) step.amount.by_replica = 0;
    step.variable = static_cast<int>(draw.index(variables));
  }
  if (world.replicas == 1 || !draw.one_in(3)) return program;
  Oddity oddity{.step = draw.index(steps)};
  oddity.statement = draw.index(program.steps[oddity.step].statements.size());
  oddity.replica = static_cast<int>(draw.index(static_cast<std::size_t>(world.replicas)));
  oddity.kind = draw.of({Oddity::Kind::skips, Oddity::Kind::other_operation, Oddity::Kind::other_variable,
                         Oddity::Kind::lacks_a_gradient});
  program.oddity = oddity;
  return program;
}

ExpectedProgram::ExpectedProgram(const DrawnProgram& program, const ProgramWorld& world)
    : program_(program),
      world_(world),
      components_(program.variables.size(), std::vector<Elements>(static_cast<std::size_t>(world.replicas))) {}

const Elements& ExpectedProgram::component(int variable, int replica) const {
  return components_[static_cast<std::size_t>(variable)][static_cast<std::size_t>(replica)];
}

// A sync-on-read variable changes in each replica by itself, where it has a component for each.
bool ExpectedProgram::is_local(const Statement& statement) const {
  if (statement.kind != Kind::change || !world_.replicates_variables) return false;
  return program_.variables[static_cast<std::size_t>(statement.variable)].synchronization ==
         VariableSynchronization::on_read;
}

// What the replicas must agree on; the end where there is no statement.
std::string ExpectedProgram::meeting(const std::optional<Statement>& statement, int replica) const {
  if (!statement) return "the end";
  switch (statement->kind) {
    case Kind::change:
      return fmt::format("{} of v{}", tandem::name_of(statement->change), statement->variable);
    case Kind::all_reduce:
      return fmt::format("all_reduce by {}", tandem::name_of(statement->op));
    case Kind::all_gather:
      return "all_gather";
    case Kind::apply_gradients: {
      if (statement->variables.empty()) return fmt::format("no gradient on replica {}", replica);
      std::vector<int> sorted = statement->variables;
      std::sort(sorted.begin(), sorted.end());
      return fmt::format("apply_gradients to {}{}", fmt::join(sorted, ","), statement->is_sparse ? ", sparse" : "");
    }
  }
  return "";
}

void ExpectedProgram::change(int variable, int replica, Change change, double value) {
  for (double& element : components_[static_cast<std::size_t>(variable)][static_cast<std::size_t>(replica)]) {
    element = change == Change::assign ? value : change == Change::add ? element + value : element - value;
  }
}

void ExpectedProgram::meet(const std::vector<Statement>& statements, Step& step) {
  const Statement& first = statements.front();
  double sum = 0;
  for (int r = 0; r < world_.replicas; ++r) sum += statements[static_cast<std::size_t>(r)].amount.of(r);
  switch (first.kind) {
    case Kind::change: {
      const VariableAggregation by = program_.variables[static_cast<std::size_t>(first.variable)].aggregation;
      const double value = by == VariableAggregation::sum    ? sum
                           : by == VariableAggregation::mean ? sum / world_.replicas
                                                             : first.amount.of(0);
      for (int r = 0; r < world_.replicas; ++r) change(first.variable, r, first.change, value);
      return;
    }
    case Kind::all_reduce:
      step.results.push_back(std::vector<double>(2, first.op == ReduceOp::sum ? sum : sum / world_.replicas));
      return;
    case Kind::all_gather: {
      std::vector<double>& all = step.results.emplace_back();
      for (int r = 0; r < world_.replicas; ++r) {
        all.insert(all.end(), static_cast<std::size_t>(first.amount.base + first.amount.by_replica * r), r + 1);
      }
      return;
    }
    case Kind::apply_gradients:
      for (const int v : first.variables) {
        for (int r = 0; r < world_.replicas; ++r) {
          Elements& elements = components_[static_cast<std::size_t>(v)][static_cast<std::size_t>(r)];
          if (!first.is_sparse) elements[0] -= sum;
          elements[1] -= sum;
        }
      }
      return;
  }
}

ExpectedProgram::Step ExpectedProgram::next_step() {
  const ProgramStep& drawn = program_.steps[step_];
  Step step;
  std::vector<std::size_t> at(static_cast<std::size_t>(world_.replicas));
  while (true) {
    std::vector<Statement> statements;
    std::vector<std::string> meetings;
    for (int r = 0; r < world_.replicas; ++r) {
      std::optional<Statement> next;
      for (std::size_t& i = at[static_cast<std::size_t>(r)]; i < drawn.statements.size() && !next;) {
        next = program_.of_replica(r, step_, i++);
        if (!next || !is_local(*next)) continue;
        change(next->variable, r, next->change, next->amount.of(r));
        next.reset();
      }
      meetings.push_back(meeting(next, r));
      if (next) statements.push_back(*next);
    }
    const bool is_end = statements.empty();
    step.is_refused = std::any_of(meetings.begin(), meetings.end(), [&](const std::string& meeting) {
      return meeting != meetings.front() || meeting.starts_with("no gradient");
    });
    if (step.is_refused) return step;
    if (is_end) break;
    meet(statements, step);
  }
  ++step_;
  using After = ProgramStep::After;
  double sum = 0;
  for (int r = 0; r < world_.replicas; ++r) sum += drawn.amount.of(r);
  if (drawn.after == After::reduce_sum) step.after = {sum, sum};
  if (drawn.after == After::reduce_mean) step.after = {sum / world_.replicas, sum / world_.replicas};
  for (int r = 0; drawn.after == After::gather && r < world_.replicas; ++r) {
    step.after.insert(step.after.end(), 2, drawn.amount.of(r));
  }
  if (drawn.after != After::assign) return step;
  const DrawnVariable& variable = program_.variables[static_cast<std::size_t>(drawn.variable)];
  const bool is_shared = world_.replicates_variables && variable.aggregation == VariableAggregation::sum &&
                         variable.synchronization == VariableSynchronization::on_read;
  const double whole = drawn.amount.of(0);
  for (int r = 0; r < world_.replicas; ++r) {
    change(drawn.variable, r, Change::assign, is_shared ? whole / world_.replicas : whole);
  }
  return step;
}

bool is_refused(const DrawnProgram& program, const ProgramWorld& world) {
  ExpectedProgram expected(program, world);
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [&](const ProgramStep&) { return expected.next_step().is_refused; });
}

double ExpectedProgram::read(int variable, int first_replica) const {
  const DrawnVariable& drawn = program_.variables[static_cast<std::size_t>(variable)];
  if (!world_.replicates_variables || drawn.synchronization != VariableSynchronization::on_read ||
      drawn.aggregation == VariableAggregation::only_first_replica) {
    return component(variable, first_replica)[0];
  }
  double sum = 0;
  for (int r = 0; r < world_.replicas; ++r) sum += component(variable, r)[0];
  return drawn.aggregation == VariableAggregation::sum ? sum : sum / world_.replicas;
}

}  // namespace tandem
