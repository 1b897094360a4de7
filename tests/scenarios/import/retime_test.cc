// Traces re-timed: what stays as recorded, what is made anew, and what is refused.
#include "scenarios/import/traces/retime.h"

#include "scenarios/import/traces/trace_ranks.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = TraceOp::Kind;

constexpr std::int64_t kMB = 1'000'000;

// Three kernels of a forward pass, six of the backward pass with a bucket behind each second one, an optimizer's kernel
// that waits for the last bucket.
RankTrace one_step(int rank = 0, std::vector<int> group = {0, 1, 2, 3}, int world = 4) {
  RankTrace trace;
  trace.file = "rank" + std::to_string(rank) + ".json";
  trace.rank = rank;
  trace.world = world;
  trace.names = {"kernel", "all_reduce"};
  trace.groups = {std::move(group)};
  trace.streams = 2;
  const auto kernel = [&] { trace.ops.push_back({.kind = Kind::kernel, .duration_ns = 1'000'000, .issue_ns = 10}); };
  const auto bucket = [&](std::int64_t bytes) {
    TraceOp op{.kind = Kind::collective, .name = 1, .stream = 1, .duration_ns = 500'000, .issue_ns = 7};
    op.after = {static_cast<int>(trace.ops.size()) - 1};
    op.bytes = bytes;
    op.group = 0;
    trace.ops.push_back(op);
  };
  for (int i = 0; i < 3; ++i) kernel();
  for (const std::int64_t bytes : {10 * kMB, 20 * kMB, 30 * kMB}) {
    kernel();
    kernel();
    bucket(bytes);
  }
  kernel();
  trace.ops.back().after = {11};
  return trace;
}

TEST(Retiming, MoreReplicasKeepTheGroupsWithinOne) {
  std::vector<RankTrace> recorded;
  for (int rank = 0; rank < 4; ++rank) {
    recorded.push_back(one_step(rank, {rank % 2, rank % 2 + 2}));
    recorded.back().groups.push_back({rank / 2 * 2, rank / 2 * 2 + 1});
  }
  EXPECT_EQ(replica_size(recorded.front()), 2);
  const std::vector<RankTrace> more = retimed(recorded, 4);
  ASSERT_EQ(more.size(), 4u);
  EXPECT_EQ(more[1].world, 8);
  EXPECT_THAT(more[1].groups, ElementsAre(ElementsAre(1, 3, 5, 7), ElementsAre(0, 1)));
  EXPECT_EQ(more[1].collective_bytes(CollectiveKind::all_reduce), 60 * kMB);
  EXPECT_EQ(trace_of(more, 6, 2).rank, 2);
  EXPECT_EQ(trace_of(more, 7, 2).rank, 3);
  EXPECT_THAT(group_for(more[3].groups[1], 3, 7, 8), ElementsAre(6, 7));
  EXPECT_EQ(retimed({recorded[0], recorded[1]}, 2).front().world, 4);
}

class RetimedFiles : public ImportFiles {
 protected:
  Scenario scenario(const std::string& workload, const std::string& topology, int devices) const {
    const std::string trace = std::string(TANDEM_SOURCE_DIR) + "/docs/examples/trace.json";
    return parse_scenario("schema_version: 1\nname: x\nworkload: {kind: trace, files: [" + trace + "]" + workload +
                              "}\nstrategy: {name: multi_worker_mirrored}\nengine: {name: sim}\ntopology: " + topology +
                              "\ndevices: {type: gpu, per_worker: " + std::to_string(devices) + "}\nsteps: 1\n",
                          (folder_ / "x.yaml").string());
  }
  static std::int64_t step_ns(const Scenario& scenario) {
    return run_scenario(scenario).report.summary.step_time.median;
  }
};

TEST_F(RetimedFiles, MoreReplicasOverANetworkTakeLonger) {
  const std::int64_t recorded = step_ns(scenario("", "hgx-h100", 8));
  const std::int64_t more = step_ns(scenario(", replicas: 16", "{cluster: {node: hgx-h100, workers: 2}}", 8));
  const std::int64_t fewer = step_ns(scenario(", replicas: 2", "hgx-h100", 2));
  EXPECT_GT(more, recorded);
  EXPECT_LT(fewer, recorded);
}

TEST_F(RetimedFiles, WhatCannotBeRetimedIsRefused) {
  RankTrace sends = one_step();
  sends.ops.push_back({.kind = Kind::send, .peer = 1});
  EXPECT_THAT(refusal([&] { retimed({sends}, 8); }),
              HasSubstr("exchanges with rank 1, which is in another replica of 1 ranks"));
  RankTrace odd = one_step();
  odd.groups.push_back({0, 1, 3});
  EXPECT_THAT(refusal([&] { retimed({odd}, 8); }), HasSubstr("the group [0, 1, 3] is neither within"));
  RankTrace alone = one_step(0, {0}, 1);
  EXPECT_THAT(refusal([&] { retimed({alone}, 8); }), HasSubstr("has no collective of a group that spans"));
  EXPECT_THAT(refusal([&] { scenario(", replicas: 16", "hgx-h100", 8); }),
              HasSubstr("a trace of 16 ranks needs as many devices, found 8"));
}

}  // namespace
}  // namespace tandem
