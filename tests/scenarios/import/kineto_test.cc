#include "scenarios/import/traces/kineto.h"

#include <fmt/format.h>

#include "scenarios/import/traces/trace_ranks.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = TraceOp::Kind;

// What the model of an H100 takes to synchronize: at the end of a step, and where the host waits.
constexpr std::int64_t kSynchronization_ns = 3500;

std::string kernel(const char* name, double start, double duration, int stream, int id, const std::string& more = "") {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {}, "dur": {},
    "args": {{"stream": {}, "device": 0, "correlation": {}{}}}}})",
                     name, stream, start, duration, stream, id, more);
}

std::string call(const char* name, double start, double duration, int id) {
  return fmt::format(R"({{"ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": 9, "tid": 9, "ts": {}, "dur": {},
    "args": {{"correlation": {}}}}})",
                     name, start, duration, id);
}

const char* const kSumOfTwo = R"(, "Collective name": "allreduce", "In msg nelems": 1000000,
  "Out msg nelems": 1000000, "dtype": "Float", "Group size": 2, "Process Group Ranks": "[0, 1]")";

class Kineto : public ImportFiles {
 protected:
  std::filesystem::path trace(const std::vector<std::string>& events, int rank = 0, int world = 1,
                              const std::string& device = "NVIDIA H100 80GB HBM3") const {
    return write(fmt::format("rank{}.json", rank),
                 fmt::format(R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "{}"}}],
      "distributedInfo": {{"rank": {}, "world_size": {}}}, "traceEvents": [{}]}})",
                             device, rank, world, fmt::join(events, ", ")));
  }
  std::string problem(const std::string& text) const {
    return refusal([&] { read_kineto(write("x.json", text)); });
  }
  static std::int64_t simulated_ns(const Imported& imported, const std::filesystem::path& beside) {
    return run_scenario(parse_scenario(imported.scenario, beside.string())).report.summary.step_time.median;
  }
};

// Two kernels that the host issues early, a collective on another stream after the first, and a kernel that waits for
// it.
std::vector<std::string> small_step(double longer = 0) {
  return {call("cudaLaunchKernel", 100, 5, 1),
          call("cudaLaunchKernel", 110, 5, 2),
          call("cudaLaunchKernelExC", 120, 5, 3),
          call("cudaLaunchKernel", 130, 5, 4),
          kernel("a", 107, 100 + longer, 7, 1),
          kernel("b", 208 + longer, 50, 7, 2),
          kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 210 + longer, 500, 20, 3, kSumOfTwo),
          kernel("c", 712 + longer, 30, 7, 4)};
}

TEST_F(Kineto, KernelsStreamsAndWaitsAreKept) {
  const RankTrace trace = read_kineto(this->trace(small_step(), 0, 2));
  EXPECT_EQ(trace.count(Kind::kernel), 3);
  EXPECT_EQ(trace.kernel_ns(), 180'000);
  EXPECT_EQ(trace.collective_count(CollectiveKind::all_reduce), 1);
  EXPECT_EQ(trace.collective_bytes(CollectiveKind::all_reduce), 4'000'000);
  EXPECT_EQ(trace.streams, 2);
  EXPECT_EQ(trace.world, 2);
  EXPECT_THAT(trace.groups, ElementsAre(ElementsAre(0, 1)));
  EXPECT_EQ(trace.recorded_ns, 642'000);
  ASSERT_EQ(trace.ops.size(), 4u);
  EXPECT_EQ(trace.ops[2].kind, Kind::collective);
  EXPECT_THAT(trace.ops[2].after, ElementsAre(0));
  EXPECT_EQ(trace.ops[2].lag_ns, 3'000);
  EXPECT_THAT(trace.ops[3].after, ElementsAre(2));
  EXPECT_EQ(trace.ops[3].lag_ns, 2'000);
}

TEST_F(Kineto, ItsOwnMachineTakesTheRecordedTime) {
  std::vector<std::string> events = small_step();
  events[6] = kernel("other", 210, 500, 20, 3);
  const auto file = trace(events);
  const Imported imported = import_file(file, {}, "");
  EXPECT_EQ(simulated_ns(imported, file), 642'000 + kSynchronization_ns);
}

TEST_F(Kineto, CollectivesAreTimedAnew) {
  const auto file = trace(small_step(), 0, 2);
  const std::int64_t here = simulated_ns(import_traces({file}, {}, folder_), file);
  const std::int64_t there = simulated_ns(import_traces({file}, {.topology = "rtx2080ti-2gpu"}, folder_), file);
  EXPECT_LT(here, 642'000);  // 4 MB take less than 500 us over NVLink
  EXPECT_GT(there, here);
  EXPECT_GT(here, 107'000 + 30'000);
}

TEST_F(Kineto, TheHostWaitsWhereItSynchronizes) {
  const auto file =
      trace({call("cudaLaunchKernel", 0, 5, 1), kernel("a", 10, 100, 7, 1), call("cudaDeviceSynchronize", 6, 106, 9),
             call("cudaLaunchKernel", 120, 5, 2), kernel("b", 128, 10, 7, 2)});
  const RankTrace trace = read_kineto(file);
  EXPECT_EQ(trace.ops[1].host_waits_for, 0);
  EXPECT_EQ(trace.ops[1].issue_ns, 18'000);  // since the first kernel's end
  EXPECT_EQ(simulated_ns(import_file(file, {}, ""), file), 138'000 + 2 * kSynchronization_ns);
}

TEST_F(Kineto, FactsAreJoinedByTheHostsOperation) {
  const std::string facts =
      R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 1, "dur": 1,
    "args": {"External id": 77, "Collective name": "_allgather_base", "In msg nelems": 500, "Out msg nelems": 1000,
    "dtype": "BFloat16", "Group size": 2, "Global rank start": 0, "Global rank stride": 1}})";
  const auto gather = kernel("ncclKernel_AllGather_RING_LL_Sum_int8_t", 10, 5, 20, 1, ", \"External id\": 77");
  const RankTrace trace = read_kineto(write("x.json", fmt::format("[{}, {}]", facts, gather)));
  EXPECT_EQ(trace.collective_bytes(CollectiveKind::all_gather), 2000);
  EXPECT_EQ(trace.world, 2);
}

// As of PyTorch 1.13, where only the host's operation has sizes.
TEST_F(Kineto, SizesOfOlderTracesAreThoseOfTheHostsOperands) {
  const auto operation = [](const char* name, const char* dims, int id) {
    return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 9, "tid": 9, "ts": 1, "dur": 1,
      "args": {{"External id": {}, "Input Dims": {}, "Input type": ["TensorList", "c10::Half"]}}}})",
                       name, id, dims);
  };
  const RankTrace trace = read_kineto(this->trace(
      {operation("nccl:all_reduce", "[[100, 50], []]", 5), operation("c10d::_allgather_base_", "[[[3, 7]], [2]]", 6),
       kernel("ncclKernel_AllReduce_RING_LL_Sum_half", 10, 5, 20, 1, ", \"External id\": 5"),
       kernel("ncclKernel_AllGather_RING_LL_Sum_int8_t", 20, 5, 20, 2, ", \"External id\": 6")},
      0, 4));
  EXPECT_EQ(trace.collective_bytes(CollectiveKind::all_reduce), 10'000);
  EXPECT_EQ(trace.collective_bytes(CollectiveKind::all_gather), 4 * 42);
  EXPECT_THAT(trace.groups, ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST_F(Kineto, WhatIsNotKnownIsSaid) {
  const auto file = trace({kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 10, 5, 20, 1)});
  const RankTrace trace = read_kineto(file);
  EXPECT_EQ(trace.count(Kind::kernel), 1);
  EXPECT_THAT(trace.notes,
              testing::UnorderedElementsAre(HasSubstr("1 of 1 kernels have no call of the host"),
                                            HasSubstr("1 kernels of a communication library say no operation")));
}

TEST_F(Kineto, AListOfEventsIsATraceWithoutItsMetadata) {
  const auto list = write("list.json", fmt::format("[{}]", fmt::join(small_step(), ", ")));
  EXPECT_EQ(trace_kind_of(list), TraceKind::kineto);
  const RankTrace read = read_kineto(list), whole = read_kineto(trace(small_step(), 0, 2));
  EXPECT_EQ(read.ops.size(), whole.ops.size());
  EXPECT_EQ(read.kernel_ns(), whole.kernel_ns());
  EXPECT_EQ(read.recorded_ns, whole.recorded_ns);
  EXPECT_EQ(read.world, 2);  // by the group of its collective
  EXPECT_THAT(read.notes, ElementsAre("the file does not say its rank (distributedInfo): taken as rank 0 of 2"));
  EXPECT_THAT(import_traces({list}, {}, folder_).assumed,
              testing::Contains("machine hgx-h100: the trace names none (--topology)"));
  EXPECT_THAT(read_kineto(write("alone.json", fmt::format("[{}]", kernel("a", 1, 2, 7, 1)))).notes,
              testing::Contains("the file does not say its rank or how many ranks there are (distributedInfo): taken "
                                "as rank 0 of 1"));
  EXPECT_EQ(trace_kind_of(write("numbers.json", "[1, 2]")), TraceKind::none);
  EXPECT_EQ(trace_kind_of(write("things.json", R"([{"name": "a"}])")), TraceKind::none);
}

TEST_F(Kineto, EachRankHasAFile) {
  const auto first = trace(small_step(), 0, 2), second = trace(small_step(60), 1, 2);
  const Imported both = import_traces({second, first}, {}, folder_);
  const Imported one = import_traces({first}, {}, folder_);
  EXPECT_GT(simulated_ns(both, first), simulated_ns(one, first));  // the first rank waits for the second
  EXPECT_EQ(refusal([&] {
              import_traces({first, first}, {}, folder_);
            }),
            "rank0.json:1:1: is of rank 0, as rank0.json is");
}

TEST_F(Kineto, FilesAreOfOneJobAndItsRanks) {
  EXPECT_THAT(
      refusal([&] { read_kineto(trace(small_step(), 5, 2)); }),
      testing::ContainsRegex("^rank5.json:2:.*: distributedInfo: rank 5 of 2 ranks, which are the ranks 0 to 1$"));
  const auto two = trace(small_step(), 0, 2), four = trace(small_step(), 1, 4);
  EXPECT_EQ(refusal([&] {
              read_traces({two, four});
            }),
            "rank1.json:1:1: is of a job of 4 ranks, and rank0.json of one of 2: give the files of one job");
  const auto beyond =
      write("beyond.json", R"({"distributedInfo": {"rank": 5}, "traceEvents": [)" + kernel("a", 1, 2, 7, 1) + "]}");
  EXPECT_EQ(refusal([&] {
              read_traces({two, beyond});
            }),
            "beyond.json:1:1: is of a job of at least 6 ranks, and rank0.json of one of 2: give the files of one job");
  const auto silent = write("silent.json", fmt::format("[{}]", fmt::join(small_step(), ", ")));
  EXPECT_EQ(refusal([&] {
              read_traces({silent, two});
            }),
            "silent.json:1:1: does not say its rank (distributedInfo) and is taken as rank 0, as rank0.json is");
  std::vector<std::string> wide = small_step();
  wide.push_back(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 900, 500, 20, 5,
                        R"(, "Collective name": "allreduce", "In msg nelems": 1, "Out msg nelems": 1, "dtype": "Float",
                        "Group size": 2, "Process Group Ranks": "[0, 5]")"));
  EXPECT_EQ(refusal([&] { read_kineto(trace(wide, 0, 2)); }),
            "rank0.json:11:60: a collective is among the ranks 0 to 5, and the job has 2 ranks (distributedInfo)");
}

TEST_F(Kineto, GroupsMustMatch) {
  std::vector<std::string> more = small_step();
  more.push_back(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 900, 500, 20, 5, kSumOfTwo));
  const auto first = trace(small_step(), 0, 2), second = trace(more, 1, 2);
  EXPECT_EQ(refusal([&] {
              read_traces({first, second});
            }),
            "rank1.json:11:60: has 2 collectives of the group [0, 1], and rank0.json has 1: traces of the same steps "
            "are needed");
}

TEST(TraceRanks, GroupsOfOtherRanksHaveTheSameDistances) {
  EXPECT_THAT(group_for({0, 1}, 0, 5, 8), ElementsAre(4, 5));
  EXPECT_THAT(group_for({1, 3, 5, 7}, 1, 4, 8), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(group_for({0, 1, 2, 3}, 0, 2, 8), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(group_for({0, 1, 3}, 0, 2, 8), testing::IsEmpty());
  EXPECT_THAT(group_for({0, 4}, 0, 3, 6), testing::IsEmpty());
  EXPECT_THAT(group_for({1, 1}, 1, 3, 6), testing::IsEmpty()) << "a rank twice";
}

TEST_F(Kineto, BrokenTracesAreRefused) {
  EXPECT_EQ(problem(R"({"traceEvents": []})"),
            "x.json:1:1: has no kernels: record it with ProfilerActivity.CUDA among the activities");
  EXPECT_EQ(problem(R"({"a": 1})"), "x.json:1:8: has no traceEvents");
  EXPECT_EQ(problem(R"({"traceEvents": 3})"), "x.json:1:17: expected a list of events");
  EXPECT_EQ(problem(R"({"traceEvents": [3]})"), "x.json:1:18: expected an event");
  EXPECT_EQ(problem(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "dur": -3}]})"),
            "x.json:1:67: a duration is negative");
  EXPECT_EQ(problem(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": 3}]})"),
            "x.json:1:18: an event of a device needs ts and dur");
  EXPECT_EQ(problem(R"({"traceEvents": [{"ph": "X", "ts": "soon"}]})"), "x.json:1:36: expected a time in microseconds");
  EXPECT_EQ(problem(R"({"traceEvents": [{"ph": "X", "ts": 1e300}]})"), "x.json:1:36: is no time");
  EXPECT_EQ(problem(R"({"distributedInfo": {"rank": -1}, "traceEvents": []})"),
            "x.json:1:30: expected a rank from 0 to 1048576");
  EXPECT_EQ(problem("{\"traceEvents\": [{\"ph\": \"X\",\n\"cat\": \"ker"),
            "x.json:2:12: the file ends too early (in a string): it was cut short, or is still being written");
}

}  // namespace
}  // namespace tandem
