// Traces re-timed: what stays as recorded, what is made anew, and what is refused.
#include "scenarios/import/traces/retime.h"

#include <numeric>

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

std::int64_t host_ns(const RankTrace& trace) {
  return std::accumulate(trace.ops.begin(), trace.ops.end(), std::int64_t{0},
                         [](std::int64_t sum, const TraceOp& op) { return sum + op.issue_ns; });
}

std::vector<std::int64_t> bytes_of(const RankTrace& trace, CollectiveKind kind) {
  std::vector<std::int64_t> bytes;
  for (const TraceOp& op : trace.ops) {
    if (op.kind == Kind::collective && op.collective == kind) bytes.push_back(op.bytes);
  }
  return bytes;
}

void expect_kernels_as_recorded(const RankTrace& changed, const RankTrace& recorded) {
  EXPECT_EQ(changed.count(Kind::kernel), recorded.count(Kind::kernel));
  EXPECT_EQ(changed.kernel_ns(), recorded.kernel_ns());
  EXPECT_EQ(host_ns(changed), host_ns(recorded));
  for (std::size_t i = 0; i < changed.ops.size(); ++i) {
    for (const int other : changed.ops[i].after) {
      EXPECT_GE(other, 0);
      EXPECT_LT(other, static_cast<int>(i));
    }
  }
}

TEST(Retiming, NothingAskedForChangesNothing) {
  EXPECT_TRUE(Retiming{}.is_none());
  const std::vector<RankTrace> same = retimed({one_step()}, {.bucket_bytes = 0});
  EXPECT_EQ(same.front().ops.size(), one_step().ops.size());
}

TEST(Retiming, LargerBucketsAreReducedWithTheirLastGradient) {
  const RankTrace recorded = one_step();
  const RankTrace changed = retimed({recorded}, {.bucket_bytes = 100 * kMB}).front();
  expect_kernels_as_recorded(changed, recorded);
  EXPECT_THAT(bytes_of(changed, CollectiveKind::all_reduce), ElementsAre(60 * kMB));
  ASSERT_EQ(changed.ops.size(), 11u);
  EXPECT_EQ(changed.ops[9].kind, Kind::collective);
  EXPECT_THAT(changed.ops[9].after, ElementsAre(8));
  EXPECT_THAT(changed.ops[10].after, ElementsAre(9));
}

TEST(Retiming, SmallerBucketsAreReducedWhileTheKernelsOfALargerOneRun) {
  const RankTrace recorded = one_step();
  const RankTrace changed = retimed({recorded}, {.bucket_bytes = 15 * kMB}).front();
  expect_kernels_as_recorded(changed, recorded);
  EXPECT_THAT(bytes_of(changed, CollectiveKind::all_reduce), ElementsAre(15 * kMB, 15 * kMB, 15 * kMB, 15 * kMB));
  // The first ends in the second recorded bucket, at a quarter of its kernels, so behind the first of them.
  EXPECT_EQ(changed.ops[6].kind, Kind::collective);
  EXPECT_THAT(changed.ops[6].after, ElementsAre(5));
}

TEST(Retiming, EqualBucketsStayWhereTheyAre) {
  RankTrace recorded = one_step();
  for (TraceOp& op : recorded.ops) op.bytes = op.kind == Kind::collective ? 10 * kMB : 0;
  const RankTrace changed = retimed({recorded}, {.bucket_bytes = 10 * kMB}).front();
  ASSERT_EQ(changed.ops.size(), recorded.ops.size());
  for (std::size_t i = 0; i < recorded.ops.size(); ++i) {
    EXPECT_EQ(changed.ops[i].kind, recorded.ops[i].kind);
    EXPECT_EQ(changed.ops[i].bytes, recorded.ops[i].bytes);
    EXPECT_EQ(changed.ops[i].after, recorded.ops[i].after);
    EXPECT_EQ(changed.ops[i].issue_ns, recorded.ops[i].issue_ns);
  }
}

TEST(Retiming, BucketsDoNotReachIntoTheNextStep) {
  RankTrace two = one_step();
  const RankTrace second = one_step();
  const auto first_size = static_cast<int>(two.ops.size());
  for (TraceOp op : second.ops) {
    for (int& other : op.after) other += first_size;
    two.ops.push_back(op);
  }
  const std::vector<std::int64_t> whole{60 * kMB, 60 * kMB};
  // By the optimizer that waits, and by the profiler's count of steps where nothing waits.
  EXPECT_EQ(bytes_of(retimed({two}, {.bucket_bytes = 1000 * kMB}).front(), CollectiveKind::all_reduce), whole);
  two.ops[static_cast<std::size_t>(first_size) - 1].after.clear();
  two.steps = 2;
  EXPECT_EQ(bytes_of(retimed({two}, {.bucket_bytes = 1000 * kMB}).front(), CollectiveKind::all_reduce), whole);
}

TEST(Retiming, DividedParametersAreGatheredTwiceAndGradientsScattered) {
  const RankTrace recorded = one_step();
  const RankTrace changed = retimed({recorded}, {.is_divided = true}).front();
  expect_kernels_as_recorded(changed, recorded);
  EXPECT_EQ(changed.collective_bytes(CollectiveKind::all_reduce), 0);
  EXPECT_THAT(bytes_of(changed, CollectiveKind::reduce_scatter), ElementsAre(10 * kMB, 20 * kMB, 30 * kMB));
  // The forward pass begins with the layers whose gradients come last.
  EXPECT_THAT(bytes_of(changed, CollectiveKind::all_gather),
              ElementsAre(30 * kMB, 20 * kMB, 10 * kMB, 10 * kMB, 20 * kMB, 30 * kMB));
  for (std::size_t i = 0; i < changed.ops.size(); ++i) {
    const TraceOp& gather = changed.ops[i];
    if (gather.kind != Kind::collective || gather.collective != CollectiveKind::all_gather) continue;
    const bool is_awaited = std::any_of(changed.ops.begin(), changed.ops.end(), [&](const TraceOp& op) {
      return std::find(op.after.begin(), op.after.end(), static_cast<int>(i)) != op.after.end();
    });
    EXPECT_TRUE(is_awaited) << "gather " << i;
  }
}

TEST(Retiming, MoreReplicasKeepTheGroupsWithinOne) {
  std::vector<RankTrace> recorded;
  for (int rank = 0; rank < 4; ++rank) {
    recorded.push_back(one_step(rank, {rank % 2, rank % 2 + 2}));
    recorded.back().groups.push_back({rank / 2 * 2, rank / 2 * 2 + 1});
  }
  EXPECT_EQ(replica_size(recorded.front()), 2);
  const std::vector<RankTrace> more = retimed(recorded, {.replicas = 4});
  ASSERT_EQ(more.size(), 4u);
  EXPECT_EQ(more[1].world, 8);
  EXPECT_THAT(more[1].groups, ElementsAre(ElementsAre(1, 3, 5, 7), ElementsAre(0, 1)));
  EXPECT_EQ(more[1].collective_bytes(CollectiveKind::all_reduce), 60 * kMB);
  EXPECT_EQ(trace_of(more, 6, 2).rank, 2);
  EXPECT_EQ(trace_of(more, 7, 2).rank, 3);
  EXPECT_THAT(group_for(more[3].groups[1], 3, 7, 8), ElementsAre(6, 7));
  EXPECT_EQ(retimed({recorded[0], recorded[1]}, {.replicas = 2}).front().world, 4);
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

TEST_F(RetimedFiles, DividedParametersRunAndSayWhatIsAssumed) {
  const RunResult result = run_scenario(scenario(", gradients: divided, bucket_bytes: 50MB", "hgx-h100", 8));
  EXPECT_GT(result.report.summary.step_time.median, 0);
  const std::string notes = testing::PrintToString(result.report.notes);
  EXPECT_THAT(notes, HasSubstr("gradients in buckets of 50000000 bytes"));
  EXPECT_THAT(notes, HasSubstr("assumed: the forward pass is a third of the kernels"));
}

TEST_F(RetimedFiles, WhatCannotBeRetimedIsRefused) {
  RankTrace sends = one_step();
  sends.ops.push_back({.kind = Kind::send, .peer = 1});
  EXPECT_THAT(refusal([&] { retimed({sends}, {.replicas = 8}); }),
              HasSubstr("exchanges with rank 1, which is in another replica of 1 ranks"));
  RankTrace odd = one_step();
  odd.groups.push_back({0, 1, 3});
  EXPECT_THAT(refusal([&] { retimed({odd}, {.replicas = 8}); }), HasSubstr("the group [0, 1, 3] is neither within"));
  RankTrace alone = one_step(0, {0}, 1);
  EXPECT_THAT(refusal([&] { retimed({alone}, {.replicas = 8}); }),
              HasSubstr("has no collective of a group that spans"));
  EXPECT_THAT(refusal([&] { retimed({alone}, {.bucket_bytes = 8}); }), HasSubstr("has no all-reduce of a group"));
  EXPECT_THAT(refusal([&] { retimed({one_step()}, {.bucket_bytes = 1}); }),
              HasSubstr("buckets of 1 bytes, and 2000 are the most: give larger buckets"));
  EXPECT_THAT(refusal([&] { scenario(", replicas: 16", "hgx-h100", 8); }),
              HasSubstr("a trace of 16 ranks needs as many devices, found 8"));
}

}  // namespace
}  // namespace tandem
