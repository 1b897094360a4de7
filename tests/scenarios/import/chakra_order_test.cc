// Chakra orders nodes by dependencies only: what of a rank waits, and what does not.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/import/import.h"
#include "scenarios/import/traces/chakra.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/chakra_bytes.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using namespace chakra_bytes;
using testing::HasSubstr;
using Kind = TraceOp::Kind;

constexpr std::uint64_t kMessage = 131072;

std::string after(std::initializer_list<std::uint64_t> ids) {
  std::string deps;
  for (const std::uint64_t id : ids) deps += number(5, id);
  return deps;
}
std::string send(std::uint64_t id, int to, std::uint64_t bytes, const std::string& more = "") {
  return exchange(id, true, to, bytes, more);
}
std::string receive(std::uint64_t id, int from, std::uint64_t bytes, const std::string& more = "") {
  return exchange(id, false, from, bytes, more);
}
std::string tag(std::uint64_t value) {
  return attribute("comm_tag", 7, value);
}
std::string group(const std::string& name) {
  return text(10, text(1, "pg_name") + text(29, name));
}

class ChakraOrder : public ImportFiles {
 protected:
  // Writes job.0.et, job.1.et, ...
  std::vector<std::filesystem::path> job(const std::vector<std::string>& ranks) const {
    std::vector<std::filesystem::path> files;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      files.push_back(write(fmt::format("job.{}.et", rank), kMetadata + ranks[rank]));
    }
    return files;
  }
  std::int64_t step_ns(const std::vector<std::filesystem::path>& files, bool symmetry = true,
                       CollectiveFidelity fidelity = CollectiveFidelity::fluid,
                       const ImportChoices& choices = {}) const {
    const Imported imported = import_traces(files, choices, folder_);
    Scenario scenario = parse_scenario(imported.scenario, (folder_ / "x.yaml").string());
    scenario.engine.collectives = fidelity;
    scenario.engine.symmetry = symmetry;
    return run_scenario(scenario).report.summary.step_time.median;
  }
};

// Both ranks send first, and receive when they have sent: as ASTRA-sim's tests of pairs do.
TEST_F(ChakraOrder, RanksThatSendFirstExchangeAtTheSameTime) {
  const auto files = job({send(0, 1, kMessage) + receive(1, 1, kMessage, after({0})),
                          send(0, 0, kMessage) + receive(1, 0, kMessage, after({0}))});
  const auto one = std::vector{write("one.0.et", kMetadata + send(0, 1, kMessage)),
                               write("one.1.et", kMetadata + receive(0, 0, kMessage))};
  for (const CollectiveFidelity fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
    for (const bool symmetry : {true, false}) {
      const std::int64_t alone = step_ns(one, symmetry, fidelity), both = step_ns(files, symmetry, fidelity);
      EXPECT_GE(both, alone);
      EXPECT_LT(both, 1.5 * static_cast<double>(alone));
    }
  }
}

TEST_F(ChakraOrder, ARingOfMachinesThatSendFirstIsNoDeadlock) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(send(0, (rank + 1) % 4, kMessage) + receive(1, (rank + 3) % 4, kMessage, after({0})) +
                    compute(2, 10, after({1})));
  }
  ImportChoices machines;
  machines.devices = 1;
  machines.workers = 4;
  const std::int64_t ns = step_ns(job(ranks), true, CollectiveFidelity::fluid, machines);
  EXPECT_GT(ns, 10'000);
  EXPECT_EQ(step_ns(job(ranks), false, CollectiveFidelity::fluid, machines), ns);
}

// Rank 0 has a long kernel before its send; what does not depend on it takes no part in the wait.
TEST_F(ChakraOrder, WorkThatDependsOnNothingElseOverlaps) {
  const auto files = job({compute(0, 1000) + send(1, 1, kMessage, after({0})) + send(2, 1, kMessage, tag(2)),
                          receive(0, 0, kMessage) + receive(1, 0, kMessage, tag(2)) + compute(2, 900, after({1})) +
                              compute(3, 50, after({0}))});
  const std::int64_t ns = step_ns(files);
  EXPECT_GT(ns, 1'050'000);
  EXPECT_LT(ns, 1'100'000);  // one after the other, they would take 1,950 us
}

// The first kernel by its id waits for a message; the second one, which makes the other rank send it, does not.
TEST_F(ChakraOrder, AKernelThatWaitsDoesNotKeepOthersWaiting) {
  const auto files =
      job({receive(0, 1, kMessage) + compute(1, 100, after({0})) + compute(2, 200) + send(3, 1, kMessage, after({2})),
           receive(0, 0, kMessage) + compute(1, 300, after({0})) + send(2, 0, kMessage, after({1}))});
  const std::int64_t ns = step_ns(files);
  EXPECT_GT(ns, 600'000);
  EXPECT_LT(ns, 650'000);
}

TEST_F(ChakraOrder, MessagesMeetByTheirTags) {
  const auto files = job({send(0, 1, 1024, tag(5)) + send(1, 1, 4 << 20, tag(3) + after({0})),
                          receive(0, 0, 4 << 20, tag(3)) + compute(1, 10, after({0})) + receive(2, 0, 1024, tag(5))});
  const auto traces = read_traces(files);
  std::vector<std::int64_t> bytes;
  for (const TraceOp& op : traces->back().ops) {
    if (op.kind == Kind::receive) bytes.push_back(op.bytes);
  }
  EXPECT_THAT(bytes, testing::ElementsAre(1024, 4 << 20));  // as they are sent
  EXPECT_GT(step_ns(files), 10'000);
}

// Every rank has another first collective: on one stream each, all would wait.
TEST_F(ChakraOrder, CollectivesOfDifferentGroupsWaitForTheirDependenciesOnly) {
  const auto groups = write("groups.json", R"({"1": [0, 1], "2": [1, 2], "3": [0, 2]})");
  auto files =
      job({sum(0, 4096, group("1")) + sum(1, 4096, group("3")), sum(0, 4096, group("2")) + sum(1, 4096, group("1")),
           sum(0, 4096, group("3")) + sum(1, 4096, group("2"))});
  files.push_back(groups);
  EXPECT_GT(step_ns(files), 10'000);
}

TEST_F(ChakraOrder, WhatFollowsASendWaitsForIt) {
  const auto files = job({send(0, 1, 64 << 20) + compute(1, 100, after({0})), receive(0, 0, 64 << 20)});
  const auto alone = job({send(0, 1, 64 << 20), receive(0, 0, 64 << 20)});
  const std::int64_t without = step_ns(alone);
  EXPECT_GE(step_ns(job({send(0, 1, 64 << 20) + compute(1, 100, after({0})), receive(0, 0, 64 << 20)})),
            without + 100'000);
}

TEST_F(ChakraOrder, RanksThatWaitForEachOtherAreADeadlock) {
  const auto files = job({receive(0, 1, kMessage) + send(1, 1, kMessage, after({0})),
                          receive(4, 0, kMessage) + send(5, 0, kMessage, after({4}))});
  try {
    step_ns(files);
    FAIL() << "has ended";
  } catch (const DeadlockError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("deadlock: node 0 ('receive') of rank 0 waits for node 5 ('send') of rank 1, which "
                          "waits for node 4 ('receive') of rank 1, which waits for node 1 ('send') of rank "
                          "0, which waits for node 0 ('receive') of rank 0"));
  }
}

TEST_F(ChakraOrder, AMessageNeedsBothSides) {
  EXPECT_EQ(
      refusal([&] {
        read_traces(job({send(0, 1, 64), compute(0, 1)}));
      }),
      "job.0.et:byte 9: node 0 ('send') sends a message of 64 bytes with tag 0 to rank 1, which does not receive it: "
      "job.1.et has no such node, or fewer of them");
  EXPECT_THAT(refusal([&] {
                read_traces(job({send(0, 1, 64), receive(7, 0, 128)}));
              }),
              HasSubstr("job.0.et:byte 9: node 0 ('send') sends a message of 64 bytes"));
  EXPECT_THAT(
      refusal([&] {
        read_traces(job({compute(0, 1), receive(7, 0, 128, tag(9))}));
      }),
      HasSubstr(
          "job.1.et:byte 9: node 7 ('receive') waits for a message of 128 bytes with tag 9 from rank 0, which does "
          "not send it"));
}

TEST_F(ChakraOrder, AttributesWithoutEffectAreNamed) {
  const auto files =
      job({compute(0, 5, attribute("comm_priority", 7, 3) + attribute("rf_id", 7, 8) + attribute("is_timer_op", 27, 0)),
           compute(0, 5)});
  EXPECT_THAT(read_traces(files)->front().notes,
              testing::ElementsAre("1 nodes have 'comm_priority': has no effect here"));
}

}  // namespace
}  // namespace tandem
