// Traces of a profiler, a rank each, as a job that is replayed.
#include <fmt/format.h>

#include "reports/blame/blame.h"
#include "scenarios/import/traces/recorded_jobs.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = TraceOp::Kind;

constexpr double kNear = 1e-9;

// A forward and a backward kernel, a sum over all ranks of what the first half of the backward pass gave, which runs
// beside the second half, and an optimizer's kernel. Times in microseconds.
struct TracedStep {
  std::int64_t forward = 100, first = 80, second = 60, sum = 50, optimizer = 30;
};

class TracedRank {
 public:
  TracedRank(int rank, int world) {
    trace_.file = fmt::format("rank{}.json", rank);
    trace_.rank = rank;
    trace_.world = world;
    trace_.names = {"forward", "first", "second", "sum", "optimizer"};
    trace_.groups.emplace_back();
    for (int i = 0; i < world; ++i) trace_.groups.back().push_back(i);
    trace_.streams = 2;
  }

  // `summed_from`: when the last rank has begun to sum, since the step began.
  void add(const TracedStep& step, std::int64_t summed_from, std::int64_t begin) {
    const std::int64_t ready = step.forward + step.first;
    const int forward = kernel(0, begin, step.forward);
    const int first = kernel(1, begin + step.forward, step.first);
    TraceOp sum{.kind = Kind::collective, .name = 3, .stream = 1, .bytes = 1000, .group = 0};
    sum.start_ns = (begin + ready) * 1000;
    sum.duration_ns = (summed_from - ready + step.sum) * 1000;
    sum.after = {first};
    trace_.ops.push_back(sum);
    kernel(2, begin + ready, step.second);
    const std::int64_t done = std::max(ready + step.second, summed_from + step.sum);
    const int optimizer = kernel(4, begin + done, step.optimizer);
    trace_.ops[static_cast<std::size_t>(optimizer)].after = {forward + 2};
    ++trace_.steps;
  }

  const RankTrace& trace() const { return trace_; }

 private:
  int kernel(int name, std::int64_t start, std::int64_t duration) {
    trace_.ops.push_back(
        {.kind = Kind::kernel, .name = name, .start_ns = start * 1000, .duration_ns = duration * 1000});
    return static_cast<int>(trace_.ops.size()) - 1;
  }

  RankTrace trace_;
};

std::vector<RankTrace> traced_job(const std::vector<TracedStep>& ranks, int steps) {
  std::int64_t summed_from = 0;
  for (const TracedStep& step : ranks) summed_from = std::max(summed_from, step.forward + step.first);
  std::vector<RankTrace> traces;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    TracedRank traced(static_cast<int>(rank), static_cast<int>(ranks.size()));
    // Each profiler counts from a time of its own.
    for (int step = 0; step < steps; ++step)
      traced.add(ranks[rank], summed_from, 7000 * step + 11 * static_cast<int>(rank));
    traces.push_back(traced.trace());
  }
  return traces;
}

TEST(TraceJob, OneSlowRankOfFour) {
  std::vector<TracedStep> ranks(4);
  ranks[1] = {.forward = 150, .first = 120, .second = 90};
  const Blame found = blame(job_of_traces(traced_job(ranks, 3)));
  EXPECT_EQ(found.replicas, 4u);
  EXPECT_EQ(found.stages, 1u);
  EXPECT_THAT(found.steps, ElementsAre(0, 1, 2));
  EXPECT_THAT(found.notes, IsEmpty());
  // 270 to the sum, which the second half of the backward pass outlasts on the slow rank; ideally 1.125 of 180 and 60.
  EXPECT_NEAR(found.replayed_s, (270 + 90 + 30) * 1e-6, kNear);
  EXPECT_NEAR(found.ideal_s, (1.125 * 240 + 30) * 1e-6, kNear);
  EXPECT_NEAR(found.recorded_s, found.replayed_s, kNear);
  EXPECT_NEAR(found.launch_slowdown, 1, 1e-6);
  EXPECT_NEAR(found.clocks_s, 33e-6, kNear);
  EXPECT_EQ(found.workers[static_cast<std::size_t>(found.worst_worker)].rank, 1);
  EXPECT_EQ(found.by_type.front().name, "compute");
  EXPECT_NEAR(found.fixes.front().share, 1, 1e-6);
}

// Steps that do not do the same are one step together.
TEST(TraceJob, StepsThatDiffer) {
  std::vector<RankTrace> traces = traced_job(std::vector<TracedStep>(2), 2);
  for (RankTrace& trace : traces) trace.ops.back().name = 0;
  const RecordedJob job = job_of_traces(traces);
  EXPECT_THAT(job.steps, ElementsAre(0));
  EXPECT_THAT(
      job.notes,
      ElementsAre("steps differ in what they do, those of rank 0 among others: the whole record is taken as one "
                  "step"));
  EXPECT_EQ(job.ops.size(), 20u);
}

TEST(TraceJob, StepsHaveTheNumbersOfTheProfiler) {
  std::vector<RankTrace> traces = traced_job(std::vector<TracedStep>(2), 3);
  for (RankTrace& trace : traces) trace.first_step = 12;
  EXPECT_THAT(job_of_traces(traces).steps, ElementsAre(12, 13, 14));
}

// Two replicas of two stages: rank 0 sends to rank 1, and rank 2 to rank 3.
std::vector<RankTrace> traced_pipeline() {
  std::vector<RankTrace> traces;
  for (int rank = 0; rank < 4; ++rank) {
    const bool sends = rank % 2 == 0;
    RankTrace trace;
    trace.file = fmt::format("rank{}.json", rank);
    trace.rank = rank;
    trace.world = 4;
    trace.names = {"work", "exchange"};
    trace.streams = 1;
    const std::int64_t work = rank == 2 ? 400 : 200;
    const auto add = [&](Kind kind, std::int64_t start, std::int64_t end) {
      trace.ops.push_back(
          {.kind = kind, .name = kind == Kind::kernel ? 0 : 1, .start_ns = start, .duration_ns = end - start});
      if (kind == Kind::kernel) return;
      trace.ops.back().bytes = 64;
      trace.ops.back().peer = sends ? rank + 1 : rank - 1;
    };
    const std::int64_t sent = (rank >= 2 ? 400 : 200) + 10;
    if (sends) add(Kind::kernel, 0, work);
    add(sends ? Kind::send : Kind::receive, sends ? work : 0, sent);
    if (!sends) add(Kind::kernel, sent, sent + 200);
    traces.push_back(trace);
  }
  return traces;
}

TEST(TraceJob, RanksThatSendToEachOtherAreStages) {
  const Blame found = blame(job_of_traces(traced_pipeline()));
  EXPECT_EQ(found.replicas, 2u);
  EXPECT_EQ(found.stages, 2u);
  EXPECT_NEAR(found.replayed_s, 610e-9, kNear);
  EXPECT_NEAR(found.ideal_s, (250 + 10 + 250) * 1e-9, kNear);
  EXPECT_EQ(found.workers[static_cast<std::size_t>(found.worst_worker)].rank, 2);
}

TEST(TraceJob, EverySendNeedsItsReceive) {
  std::vector<RankTrace> traces = traced_pipeline();
  traces[3].ops.erase(traces[3].ops.begin());
  try {
    job_of_traces(traces);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank2.json"));
    EXPECT_THAT(error.what(), HasSubstr("a send to rank 3 has no peer in the trace of that rank"));
  }
  traces.pop_back();  // where that rank was not recorded, the send is taken as it is
  EXPECT_EQ(job_of_traces(traces).stages(), 1u);
  EXPECT_THAT(job_of_traces(traces).notes, ElementsAre("3 of 4 ranks of the job were recorded"));
}

class TraceFiles : public ImportFiles {
 protected:
  std::filesystem::path trace(int rank, double work) const {
    const std::string facts = R"("Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
      "dtype": "Float", "Group size": 2, "Process Group Ranks": "[0, 1]")";
    const auto event = [](const char* name, double start, double duration, int stream, const std::string& more) {
      return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {}, "dur": {},
        "args": {{"stream": {}, "device": 0{}}}}})",
                         name, stream, start, duration, stream, more);
    };
    return write(fmt::format("rank{}.json", rank),
                 fmt::format(R"({{"distributedInfo": {{"rank": {}, "world_size": 2}}, "traceEvents": [{}, {}]}})", rank,
                             event("gemm", 1000, work, 7, ""),
                             event("ncclDevKernel_AllReduce", 1000 + work, 350 - work, 9, ", " + facts)));
  }
};

TEST_F(TraceFiles, OfSeveralRanks) {
  const Blame found = blame(read_recorded_job({trace(1, 300), trace(0, 100)}));
  EXPECT_EQ(found.name, "rank1");
  EXPECT_NEAR(found.replayed_s, 350e-6, kNear);
  EXPECT_NEAR(found.ideal_s, 250e-6, kNear);
  EXPECT_EQ(found.workers[static_cast<std::size_t>(found.worst_worker)].rank, 1);
  EXPECT_THAT(refusal([&] { read_recorded_job({trace(0, 100)}); }),
              HasSubstr("rank0.json:1:1: is the only trace: expected those of several ranks"));
}

}  // namespace
}  // namespace tandem
