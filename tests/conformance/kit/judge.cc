#include "tests/conformance/kit/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {
namespace {

std::string where_of(const StrategyUnderTest& tested, const Worker& worker) {
  std::ostringstream text;
  text << tested;
  return tested.workers > 1 ? fmt::format("{}, seen by worker {}", text.str(), worker.index()) : text.str();
}

std::string text_at(const ByReplica& values, std::size_t replica) {
  return replica < values.size() ? numbers_text(values[replica]) : "nothing";
}

}  // namespace

std::string numbers_text(const Numbers& numbers) {
  constexpr std::size_t kShown = 24;
  if (numbers.size() <= kShown) return fmt::format("[{}]", fmt::join(numbers, ", "));
  return fmt::format("[{}, ... ({} numbers)]", fmt::join(numbers.begin(), numbers.begin() + kShown, ", "),
                     numbers.size());
}

std::string lines_by_replica(const ByReplica& found, const ByReplica& expected, int first) {
  std::string lines;
  for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
    lines += fmt::format("  replica {}: found {}, must be {}\n", first + static_cast<int>(i), text_at(found, i),
                         text_at(expected, i));
  }
  return lines;
}

std::string message_of(const JudgedCall& call, std::string_view problem, std::string_view lines,
                       std::string_view where) {
  return fmt::format("{}: {}\n{}A correct strategy {}.\nTested: {}", call.call, problem, lines, call.rule, where);
}

void RunCalls::note(int worker, const JudgedCall& call) {
  const std::lock_guard lock(mutex_);
  calls_[worker] = call;
}

std::string RunCalls::message_of_error(std::string_view error, std::string_view where) const {
  const std::lock_guard lock(mutex_);
  if (calls_.empty()) return fmt::format("the run ended before its first call: {}\nTested: {}", error, where);
  std::string lines;
  for (const auto& [worker, call] : calls_) {
    if (call != calls_.begin()->second) lines += fmt::format("  worker {} was in {}\n", worker, call.call);
  }
  return message_of(calls_.begin()->second, fmt::format("ended with an error: {}", error), lines, where);
}

Judge::Judge(const StrategyUnderTest& tested, Worker& worker, RunCalls& run)
    : where_(where_of(tested, worker)),
      worker_(worker.index()),
      replicas_(tested.replicas),
      first_replica_(worker.index() * tested.local_replicas()),
      local_replicas_(tested.local_replicas()),
      run_(run) {}

void Judge::asks(std::string call, std::string rule) {
  call_ = {std::move(call), std::move(rule)};
  run_.note(worker_, call_);
}

void Judge::fail(std::string_view problem, std::string_view lines) {
  has_failed_ = true;
  ADD_FAILURE() << message_of(call_, problem, lines, where_);
}

bool Judge::expect(std::string_view what, const Numbers& found, const Numbers& expected) {
  if (found != expected)
    fail(fmt::format("{}: found {}, must be {}", what, numbers_text(found), numbers_text(expected)));
  return found == expected;
}

bool Judge::expect_text(std::string_view what, const std::string& found, const std::string& expected) {
  if (found != expected) fail(fmt::format("{}: found {}, must be {}", what, found, expected));
  return found == expected;
}

bool Judge::expect_by_replica(std::string_view what, const ByReplica& found, const ByReplica& expected) {
  if (found != expected) fail(fmt::format("{} is wrong", what), lines_by_replica(found, expected, first_replica_));
  return found == expected;
}

}  // namespace tandem
