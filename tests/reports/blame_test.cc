#include "reports/blame/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "reports/blame/replay.h"
#include "tests/reports/made_pipeline.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = PipelineOpKind;

constexpr double kNear = 1e-12;

Blame blame_of(const std::vector<PipelineOp>& ops) {
  return blame(pipeline_job(ops, "job.csv", {.name = "job"}));
}

// The mean time of the passes of each direction.
std::pair<double, double> mean_passes(const std::vector<PipelineOp>& ops) {
  double sums[2] = {0, 0}, counts[2] = {0, 0};
  for (const PipelineOp& op : ops) {
    if (op.kind != Kind::forward_compute && op.kind != Kind::backward_compute) continue;
    sums[op.kind == Kind::forward_compute] += op.duration_s;
    counts[op.kind == Kind::forward_compute] += 1;
  }
  return {sums[1] / counts[1], sums[0] / counts[0]};
}

// Executes the pipeline with ideal times of the passes, except those that are chosen.
double made_time(MadePipeline made, const std::function<bool(const MadePass&)>& is_real) {
  const auto [forward_s, backward_s] = mean_passes(MadeStep(made).ops());
  const auto real_s = made.pass_s;
  made.pass_s = [=, forward = forward_s, backward = backward_s](const MadePass& pass) {
    return is_real(pass) ? real_s(pass) : pass.is_forward ? forward : backward;
  };
  return MadeStep(made).time_s();
}

bool none(const MadePass&) {
  return false;
}

MadePipeline with_jitter(int replicas, int stages, int parts, unsigned seed) {
  MadePipeline made{.replicas = replicas, .stages = stages, .parts = parts, .micro_batches = 2 * stages};
  made.pass_s = [seed](const MadePass& pass) {
    const unsigned place = (((static_cast<unsigned>(pass.replica) * 8 + static_cast<unsigned>(pass.stage)) * 8 +
                             static_cast<unsigned>(pass.part)) *
                                64 +
                            static_cast<unsigned>(pass.micro_batch)) *
                               2 +
                           (pass.is_forward ? 1U : 0U);
    std::minstd_rand draw(seed * 100'003 + place);
    draw.discard(3);
    return (pass.is_forward ? 1.0 : 2.0) * (1 + static_cast<double>(draw() % 1000) / 1000);
  };
  return made;
}

TEST(BlamedJobs, OneSlowWorkerOfFour) {
  MadePipeline made{.replicas = 4, .collective_s = 0, .optimizer_s = 0};
  made.pass_s = [](const MadePass& pass) { return (pass.is_forward ? 1.0 : 2.0) * (pass.replica == 2 ? 1.5 : 1); };
  const Blame found = blame_of(MadeStep(made).ops());
  // The slow worker takes 1.5; the mean of all is 1.125.
  EXPECT_NEAR(found.slowdown, 1.5 / 1.125, kNear);
  EXPECT_NEAR(found.launch_slowdown, 1, kNear);
  EXPECT_NEAR(found.ideal_s, 4 * 3 * 1.125, kNear);
  EXPECT_EQ(found.worst_worker, 2);
  EXPECT_NEAR(found.by_replica[2].slowdown, 1.5 / 1.125, kNear);
  EXPECT_NEAR(found.by_replica[0].slowdown, 1, kNear);  // the others' ideal ones are slower than it
  ASSERT_EQ(found.by_type.front().name, "backward-compute");
  EXPECT_NEAR(found.by_type.front().slowdown, (2 * 1.5 + 1.125) / (3 * 1.125), kNear);
  // Fixed, the slow worker is as fast as the mean, and the slowest one.
  EXPECT_THAT(found.fixes.front().what, HasSubstr("rank 2 (DP rank 2, stage 0)"));
  EXPECT_NEAR(found.fixes.front().step_s, found.ideal_s, kNear);
  EXPECT_NEAR(found.fixes.front().share, 1, kNear);
  EXPECT_NEAR(found.slowest_workers.share, 1, kNear);
  ASSERT_FALSE(found.path.empty());
  EXPECT_EQ(found.path.front().worker, 2);
  EXPECT_NEAR(found.path.front().step_s, 4 * 3, kNear);  // its backward passes
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(BlamedJobs, NothingIsSlower) {
  const Blame found = blame_of(MadeStep({.replicas = 2, .stages = 4, .micro_batches = 8}).ops());
  EXPECT_NEAR(found.slowdown, 1, kNear);
  for (const auto* parts : {&found.by_type, &found.by_stage, &found.by_replica}) {
    for (const BlamedPart& part : *parts) EXPECT_NEAR(part.slowdown, 1, kNear) << part.name;
  }
}

TEST(BlamedJobs, ASlowStage) {
  MadePipeline made{.replicas = 2, .stages = 4, .micro_batches = 8};
  made.pass_s = [](const MadePass& pass) { return (pass.is_forward ? 1.0 : 2.0) * (pass.stage == 3 ? 1.25 : 1); };
  const Blame found = blame_of(MadeStep(made).ops());
  const double ideal_s = made_time(made, none);
  EXPECT_NEAR(found.slowdown, MadeStep(made).time_s() / ideal_s, kNear);
  for (int stage = 0; stage < 4; ++stage) {
    const double expected = made_time(made, [=](const MadePass& pass) { return pass.stage == stage; }) / ideal_s;
    EXPECT_NEAR(found.by_stage[static_cast<std::size_t>(stage)].slowdown, expected, kNear) << stage;
  }
  EXPECT_EQ(found.workers[static_cast<std::size_t>(found.worst_worker)].stage, 3);
  EXPECT_EQ(found.fixes[1].what, "stage 3");
  const double fixed_s = made_time(made, [](const MadePass& pass) { return pass.stage != 3; });
  EXPECT_NEAR(found.fixes[1].step_s, fixed_s, kNear);
  EXPECT_NEAR(found.last_stage.step_s, fixed_s, kNear);
  EXPECT_NEAR(found.last_stage.share, (MadeStep(made).time_s() - fixed_s) / (MadeStep(made).time_s() - ideal_s), kNear);
}

// What was executed is the same when it is replayed, whatever the shape of the job: dependencies are all found, and
// none that are not there.
TEST(BlamedJobs, EveryShapeOfPipeline) {
  for (const int replicas : {1, 2, 3}) {
    for (const int stages : {1, 2, 4}) {
      for (const int parts : {1, 2, 3}) {
        for (const bool is_overlapped : {false, true}) {
          if (parts > 1 && stages == 1) continue;  // sends to itself, which no framework does
          MadePipeline made = with_jitter(replicas, stages, parts, 7);
          made.is_overlapped = is_overlapped;
          SCOPED_TRACE(testing::Message() << replicas << " x " << stages << " x " << parts << " " << is_overlapped);
          const MadeStep step(made);
          const Blame found = blame_of(step.ops());
          EXPECT_NEAR(found.replayed_s, step.time_s(), kNear);
          EXPECT_NEAR(found.launch_slowdown, 1, kNear);
          const double ideal_s = made_time(made, none);
          EXPECT_NEAR(found.ideal_s, ideal_s, 1e-9);
          const double first = made_time(made, [](const MadePass& pass) { return pass.replica == 0; });
          EXPECT_NEAR(found.by_replica.front().slowdown, first / ideal_s, 1e-9);
          const double forward = made_time(made, [](const MadePass& pass) { return pass.is_forward; });
          const auto type = std::find_if(found.by_type.begin(), found.by_type.end(),
                                         [](const BlamedPart& part) { return part.name == "forward-compute"; });
          EXPECT_NEAR(type->slowdown, forward / ideal_s, 1e-9);
          EXPECT_EQ(found.clocks_s, 0);
        }
      }
    }
  }
}

// An op that begins late because of its host delays the step, but is no slower.
TEST(BlamedJobs, DelaysAreRemoved) {
  MadePipeline made = with_jitter(2, 2, 1, 3);
  const Blame prompt = blame_of(MadeStep(made).ops());
  made.delay_s = [](const MadePass& pass) { return 0.125 * (1 + pass.stage); };
  const Blame late = blame_of(MadeStep(made).ops());
  EXPECT_GT(late.launch_slowdown, 1.05);
  EXPECT_NEAR(late.slowdown, prompt.slowdown, kNear);
  EXPECT_NEAR(late.replayed_s, prompt.replayed_s, kNear);
}

TEST(BlamedJobs, ClocksThatAreApart) {
  const MadePipeline made = with_jitter(3, 4, 1, 5);
  std::vector<PipelineOp> ops = MadeStep(made).ops();
  const Blame together = blame_of(ops);
  for (PipelineOp& op : ops) op.start_s += op.rank == 5 ? 0.004 : op.rank == 7 ? -0.003 : 0;
  const Blame apart = blame_of(ops);
  EXPECT_NEAR(apart.clocks_s, 0.007, kNear);
  EXPECT_NEAR(apart.slowdown, together.slowdown, kNear);
  EXPECT_NEAR(apart.recorded_s, together.recorded_s, kNear);
  for (std::size_t i = 0; i < together.by_worker.size(); ++i) {
    EXPECT_NEAR(apart.by_worker[i], together.by_worker[i], kNear);
  }
}

// Where what is exchanged ends later on one side by its nature, clocks are left as they are.
TEST(BlamedJobs, LateEndsAreNoClocks) {
  std::vector<PipelineOp> ops = MadeStep(with_jitter(1, 2, 1, 5)).ops();
  for (PipelineOp& op : ops) {
    if (op.kind == Kind::forward_recv || op.kind == Kind::backward_recv) op.duration_s += 0.05;
  }
  EXPECT_EQ(blame_of(ops).clocks_s, 0);
}

// What kinds of exchange say may contradict each other; no exchange can end before it has started on the other side.
TEST(BlamedJobs, ClocksAreBoundedByCauses) {
  MadePipeline made = with_jitter(1, 2, 1, 5);
  made.collective_s = 5;
  std::vector<PipelineOp> ops = MadeStep(made).ops();
  for (PipelineOp& op : ops) {
    if (op.stage == 0) continue;
    op.start_s += 3;
    if (op.kind == Kind::optimizer_clip_main_grad) op.duration_s -= 3.5;
  }
  EXPECT_NEAR(blame_of(ops).clocks_s, 3, made.exchange_s);
}

TEST(BlamedJobs, TimesOfAnotherUnitGiveTheSameSlowdowns) {
  std::vector<PipelineOp> ops = MadeStep(with_jitter(2, 4, 2, 11)).ops();
  const Blame found = blame_of(ops);
  for (PipelineOp& op : ops) {
    op.start_s *= 4;
    op.duration_s *= 4;
  }
  const Blame scaled = blame_of(ops);
  EXPECT_EQ(scaled.slowdown, found.slowdown);
  EXPECT_EQ(scaled.by_worker, found.by_worker);
  EXPECT_EQ(scaled.ideal_s, 4 * found.ideal_s);
}

TEST(BlamedJobs, DpRanksInAnotherOrder) {
  std::vector<PipelineOp> ops = MadeStep(with_jitter(3, 2, 1, 13)).ops();
  const Blame found = blame_of(ops);
  for (PipelineOp& op : ops) op.replica = (op.replica + 1) % 3;
  std::reverse(ops.begin(), ops.end());
  const Blame turned = blame_of(ops);
  EXPECT_NEAR(turned.slowdown, found.slowdown, kNear);
  for (std::size_t replica = 0; replica < 3; ++replica) {
    EXPECT_NEAR(turned.by_replica[(replica + 1) % 3].slowdown, found.by_replica[replica].slowdown, kNear);
  }
  EXPECT_EQ(turned.workers[static_cast<std::size_t>(turned.worst_worker)].rank,
            found.workers[static_cast<std::size_t>(found.worst_worker)].rank);
}

std::vector<PipelineOp> several_steps(MadePipeline made, const std::vector<int>& steps) {
  std::vector<PipelineOp> ops;
  const auto pass_s = made.pass_s;
  for (const int step : steps) {
    made.step = step;
    made.pass_s = [=](const MadePass& pass) { return pass_s(pass) * (step == steps.back() ? 2 : 1); };
    const MadeStep one(made);
    ops.insert(ops.end(), one.ops().begin(), one.ops().end());
  }
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i].place.line = static_cast<int>(i) + 2;
  return ops;
}

TEST(BlamedJobs, StepsWithGaps) {
  const Blame found = blame_of(
      several_steps({.replicas = 2, .stages = 2, .exchange_s = 0, .collective_s = 0, .optimizer_s = 0}, {3, 4, 90}));
  EXPECT_THAT(found.steps, ElementsAre(3, 4, 90));
  // The ideal time is the mean of 1, 1 and 2.
  EXPECT_THAT(found.step_slowdowns, ElementsAre(testing::DoubleNear(0.75, kNear), testing::DoubleNear(0.75, kNear),
                                                testing::DoubleNear(1.5, kNear)));
  EXPECT_NEAR(found.slowdown, 1, kNear);
}

TEST(BlamedJobs, OpsThatWereNotRecorded) {
  std::vector<PipelineOp> ops = several_steps(with_jitter(2, 2, 1, 17), {1, 2});
  const Blame whole = blame_of(ops);
  const auto lost = std::find_if(ops.begin(), ops.end(), [](const PipelineOp& op) {
    return op.step == 2 && op.replica == 1 && op.kind == Kind::backward_compute && op.order == 1;
  });
  ops.erase(lost);
  const Blame found = blame_of(ops);
  EXPECT_NEAR(found.slowdown, whole.slowdown, 0.1);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("1 of 160 ops were not recorded")));
  // A worker without any op of a step.
  std::erase_if(ops, [](const PipelineOp& op) { return op.step == 2 && op.rank == 3; });
  EXPECT_THAT(blame_of(ops).steps, ElementsAre(1));
  EXPECT_THAT(blame_of(ops).notes, ElementsAre("left out, because a worker has no op in them: 1 of 2 steps"));
}

TEST(BlamedJobs, StepsOfWhichMostIsMissing) {
  std::vector<PipelineOp> ops = several_steps(with_jitter(2, 2, 1, 17), {1, 2, 3});
  std::map<std::pair<int, int>, int> kept;  // of step 2, by worker
  std::erase_if(ops, [&](const PipelineOp& op) { return op.step == 2 && ++kept[{op.replica, op.stage}] > 3; });
  EXPECT_THAT(blame_of(ops).steps, ElementsAre(1, 3));
  EXPECT_THAT(blame_of(ops).notes, ElementsAre("left out, because most of their ops were not recorded: 1 of 3 steps"));
}

// Without exchanges nothing says how clocks differ, and the offset of one is no time of the job.
TEST(BlamedJobs, ClocksThatNothingJoins) {
  MadePipeline made{.replicas = 3, .collective_s = 0, .optimizer_s = 0};
  made.pass_s = [](const MadePass& pass) { return pass.replica == 2 ? 3.0 : 2.0; };
  std::vector<PipelineOp> ops = MadeStep(made).ops();
  std::erase_if(
      ops, [](const PipelineOp& op) { return op.kind != Kind::forward_compute && op.kind != Kind::backward_compute; });
  for (PipelineOp& op : ops) op.start_s += op.replica * 1000.0;
  const Blame found = blame_of(ops);
  EXPECT_NEAR(found.launch_slowdown, 1, 1e-9);
  EXPECT_EQ(found.clocks_s, 0);
  EXPECT_EQ(found.worst_worker, 2);
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("3 sets of ranks exchange nothing with each other")));
}

std::string problem_of_blame(std::vector<PipelineOp> ops) {
  try {
    blame_of(ops);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BlamedJobs, TimesWithoutAMeaningAreRefused) {
  const std::vector<PipelineOp> good = MadeStep({.replicas = 2}).ops();
  std::vector<PipelineOp> ops = good;
  for (PipelineOp& op : ops) op.duration_s = 0;
  EXPECT_THAT(problem_of_blame(ops), HasSubstr("job.csv:1:1: a step of its ops would take no time"));
  ops = good;
  ops[3].start_s = -1.7e9;
  EXPECT_THAT(problem_of_blame(ops),
              testing::ContainsRegex("starts 1[.]7e[+]09 s apart from line [0-9]+, on the same"));
  ops = good;
  ops[3].duration_s = 1e12;
  EXPECT_THAT(problem_of_blame(ops), HasSubstr("takes 1e+12 s: no op does"));
}

std::string pipeline_problem(const std::vector<PipelineOp>& ops, const PipelineSizes& sizes = {}) {
  try {
    pipeline_job(ops, "job.csv", sizes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(BlamedJobs, WhatDoesNotFitTogetherIsRefused) {
  const std::vector<PipelineOp> good = MadeStep({.replicas = 2, .stages = 2}).ops();
  EXPECT_EQ(pipeline_problem({}), "job.csv:1:1: has no ops");
  EXPECT_EQ(pipeline_problem(good, {.replicas = 2, .stages = 2, .parts = 1, .ranks = 4}), "");
  EXPECT_THAT(pipeline_problem(good, {.replicas = 4}), HasSubstr("job.csv:1:1: has ops of the DP ranks 0 to 1, and"));
  EXPECT_THAT(pipeline_problem(good, {.stages = 1}), HasSubstr(": stage 1 of a job that is stated to have 1"));
  EXPECT_THAT(pipeline_problem(good, {.ranks = 3}), HasSubstr(": rank 3 of a job that is stated to have 3"));

  std::vector<PipelineOp> ops = good;
  std::erase_if(ops, [](const PipelineOp& op) { return op.rank == 2; });
  EXPECT_THAT(pipeline_problem(ops), HasSubstr("job.csv:1:1: has no op of DP rank 1, stage 0"));
  ops = good;
  ops.push_back(ops[40]);
  ops.back().place.line = 777;
  EXPECT_THAT(pipeline_problem(ops), testing::ContainsRegex("^job.csv:777:1: .* occurs twice, first in line 42"));
  ops = good;
  std::erase_if(ops, [](const PipelineOp& op) { return op.kind == Kind::forward_recv && op.order > 0; });
  EXPECT_THAT(pipeline_problem(ops),
              HasSubstr("stage 1 has 1 forward-recv for 4 forward-compute: expected one for each"));
  ops = good;
  std::erase_if(ops, [](const PipelineOp& op) { return op.kind == Kind::forward_recv && op.order == 3; });
  EXPECT_THAT(pipeline_problem(ops),
              HasSubstr("forward-send 3 of stage 0 has no forward-recv on stage 1, which has 3"));
  ops = good;
  std::erase_if(ops, [](const PipelineOp& op) { return op.kind == Kind::forward_compute && op.stage == 0; });
  EXPECT_THAT(pipeline_problem(ops), HasSubstr("stage 0 has forward-send and no forward-compute"));
  ops = good;
  ops.back().rank = 0;
  EXPECT_THAT(pipeline_problem(ops), HasSubstr(", which was rank "));
  ops = good;
  for (PipelineOp& op : ops) op.rank = op.rank == 3 ? 1 : op.rank;
  EXPECT_THAT(pipeline_problem(ops), HasSubstr("rank 1 is DP rank 1, stage 1, but DP rank 0, stage 1 in line"));
}

TEST(Replay, RefusesACircle) {
  const RecordedJob job{.file = "job.csv",
                        .workers = {{.rank = 5}},
                        .steps = {0},
                        .types = {"send"},
                        .alikes = {{.name = "send"}},
                        .ops = {{}, {}},
                        .after = {{1}, {0}},
                        .start_s = {0, 0},
                        .duration_s = {1, 1}};
  try {
    const Replay replay(job);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("job.csv:1:1: its ops wait for each other in a circle, among them one of type "
                                        "send on rank 5"));
  }
}

}  // namespace
}  // namespace tandem
