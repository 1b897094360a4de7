// The arithmetic of shared cores, and the order of dates, without a simulation around them.
#include "engine/sim/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "engine/sim/agenda.h"

namespace tandem::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Work on some nodes, and what has ended at which date.
class Machine {
 public:
  explicit Machine(const std::vector<HostSpec>& nodes) : processors_(nodes) {}

  void start(const char* name, NodeIndex node, double seconds, double alone_s = 0) {
    processors_.add(node, seconds, alone_s, [this, name] { log_ += std::string(name) + " "; });
    processors_.settle(now_s_);
  }
  double next_end_s() { return processors_.next_end_s(); }
  void go_to(double date_s) { now_s_ = date_s; }
  // Goes to the next end and names what ends there.
  std::string next() {
    go_to(next_end_s());
    std::vector<Processors::Then> ended;
    processors_.take_ended(now_s_, ended);
    log_.clear();
    for (const auto& then : ended) then();
    processors_.settle(now_s_);
    return log_;
  }

 private:
  Processors processors_;
  double now_s_ = 0;
  std::string log_;
};

TEST(Processors, WorkAloneTakesItsTime) {
  Machine machine({{.node = 3, .cores = 1}});
  EXPECT_EQ(machine.next_end_s(), kNever);
  machine.start("a", 3, 0.25);
  EXPECT_EQ(machine.next_end_s(), 0.25);
  EXPECT_EQ(machine.next(), "a ");
  EXPECT_EQ(machine.next_end_s(), kNever);
}

TEST(Processors, NodesShareNothing) {
  Machine machine({{.node = 0, .cores = 1}, {.node = 7, .cores = 1}});
  machine.start("a", 0, 2);
  machine.start("b", 7, 1);
  EXPECT_EQ(machine.next_end_s(), 1);
  EXPECT_EQ(machine.next(), "b ");
  EXPECT_EQ(machine.next_end_s(), 2);
}

TEST(Processors, MoreWorkThanCoresSharesThemFromItsStartToTheNextEnd) {
  Machine machine({{.node = 0, .cores = 2}});
  machine.start("a", 0, 4);
  machine.start("b", 0, 4);
  EXPECT_EQ(machine.next_end_s(), 4) << "a core each";
  machine.go_to(1);
  machine.start("c", 0, 1);  // two thirds of a core each from here on
  EXPECT_EQ(machine.next_end_s(), 2.5);
  EXPECT_EQ(machine.next(), "c ");
  EXPECT_EQ(machine.next_end_s(), 4.5) << "2 s of a core are left of both";
  EXPECT_EQ(machine.next(), "b a ") << "the newest first";
}

TEST(Processors, WhatOneCannotUseTheOthersShare) {
  Machine machine({{.node = 0, .cores = 1}});
  machine.start("slow", 0, 1, 10);  // a tenth of a core, at most
  EXPECT_EQ(machine.next_end_s(), 10);
  machine.start("a", 0, 9);
  machine.start("b", 0, 9);  // 0.45 of a core each
  EXPECT_EQ(machine.next_end_s(), 10);
  machine.go_to(10);
  machine.start("c", 0, 1);  // a tenth is free once "slow" has ended
  EXPECT_EQ(machine.next(), "slow ");
  EXPECT_DOUBLE_EQ(machine.next_end_s(), 13) << "a third of a core each";
}

TEST(Processors, SeveralLimitsAreMetFromTheSmallestUp) {
  Machine machine({{.node = 0, .cores = 1}});
  machine.start("a", 0, 1, 10);    // 0.1 of a core
  machine.start("b", 0, 1, 4);     // 0.25
  machine.start("c", 0, 0.65, 0);  // what is left: 0.65
  EXPECT_DOUBLE_EQ(machine.next_end_s(), 1);
  EXPECT_EQ(machine.next(), "c ");
  EXPECT_DOUBLE_EQ(machine.next_end_s(), 4);
  EXPECT_EQ(machine.next(), "b ");
  EXPECT_DOUBLE_EQ(machine.next_end_s(), 10);
}

TEST(Processors, EndsThatDifferByRoundingAreOneInstant) {
  Machine machine({{.node = 0, .cores = 1}, {.node = 1, .cores = 1}, {.node = 2, .cores = 1}});
  machine.start("a", 0, 1 + 5e-12);
  machine.start("b", 1, 1);
  machine.start("c", 2, 1 + 5e-11);
  EXPECT_EQ(machine.next(), "b a ");
  EXPECT_EQ(machine.next(), "c ");
}

TEST(Processors, EqualEndsOfDifferentNodesComeInTheOrderOfTheirStarts) {
  Machine machine({{.node = 0, .cores = 1}, {.node = 1, .cores = 1}, {.node = 2, .cores = 1}});
  machine.start("a", 2, 1);
  machine.start("b", 0, 1);
  machine.start("c", 1, 1);
  EXPECT_EQ(machine.next(), "a b c ");
}

// Nothing is lost or gained by the changes of rate in between.
TEST(Processors, ACoreThatIsNeverIdleDoesAllWorkInItsSum) {
  Machine machine({{.node = 0, .cores = 1}});
  double sum_s = 0;
  for (int i = 0; i < 100; ++i) {
    const double start_s = i * 0.5;
    while (machine.next_end_s() <= start_s) machine.next();
    machine.go_to(start_s);
    const double seconds = 1 + std::fmod(i * 0.37, 1.0);
    machine.start("x", 0, seconds);
    sum_s += seconds;
  }
  double last_s = 0;
  while (machine.next_end_s() != kNever) {
    last_s = machine.next_end_s();
    machine.next();
  }
  EXPECT_NEAR(last_s, sum_s, 1e-9);
}

TEST(Agenda, TakesTheEarliestAndEqualDatesInTheirOrder) {
  Agenda agenda;
  std::string log;
  const auto write = [&log](char what) { return [&log, what] { log += what; }; };
  for (const char what : {'d', 'e', 'f'}) agenda.add(2, write(what));
  for (const char what : {'a', 'b', 'c'}) agenda.add(1, write(what));
  EXPECT_EQ(agenda.first_date_s(), 1);
  agenda.take_first()();
  agenda.take_first()();
  agenda.add(1, write('x'));  // after those that wait for the same date
  agenda.add(3, write('z'));
  while (!agenda.empty()) agenda.take_first()();
  EXPECT_EQ(log, "abcxdefz");
}

TEST(Agenda, MayGrowWhileSomethingOfItIsCalled) {
  Agenda agenda;
  int calls = 0;
  std::function<void()> again = [&] {
    if (++calls < 1000) {
      agenda.add(calls, again);
      if (calls % 10 == 0) agenda.add(calls, [] {});
    }
  };
  agenda.add(0, again);
  while (!agenda.empty()) agenda.take_first()();
  EXPECT_EQ(calls, 1000);
}

}  // namespace
}  // namespace tandem::sim
