// tandem sweep: what people see, what is kept, and what happens when something goes wrong.
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/address_limit.h"
#include "tests/cli/sweep_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Sweep, ShowsTheBestAndTheFront) {
  const Outcome outcome = tandem({"sweep", write_small(), "--csv", "all.csv"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("small: 4 of 4 points on engine sim\nbest: "),
                                 HasSubstr("* on the front of devices against throughput: ")));
  EXPECT_EQ(lines_of("all.csv"), 5);
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 5);
}

TEST_F(Sweep, APointIsWhatRunReports) {
  write_small();
  const auto sweep = tandem({"sweep", "small.yaml", "--json"}).json();
  const auto run = tandem({"run", "small.yaml", "--workers", "2", "--json"}).json();
  EXPECT_EQ(sweep["points"][3]["values"]["devices.workers"], "2");
  EXPECT_EQ(sweep["points"][3]["step_time_ns"], run["step_time_ns"]["mean"]);
  EXPECT_EQ(sweep["points"][3]["per_step_ns"], run["per_step_ns"]);
  EXPECT_EQ(sweep["points"][3]["memory_bytes"], run["memory_bytes"]);
  EXPECT_EQ(sweep["points"][3]["devices"], 8);
}

TEST_F(Sweep, GivesTheSameBytesWithAnyNumberOfProcesses) {
  write_small();
  const Outcome one = tandem({"sweep", "small.yaml", "--json", "--no-results", "-j", "1"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(tandem({"sweep", "small.yaml", "--json", "--no-results", "-j", "3"}).out, one.out);
  EXPECT_FALSE(exists("small.sweep.jsonl"));
}

TEST_F(Sweep, RunsNoFinishedPointAgain) {
  write_small();
  ASSERT_EQ(tandem({"sweep", "small.yaml"}).exit_code, 0);
  std::string kept = read("small.sweep.jsonl");
  const std::string mark = "\"step_time_ns\":";
  const std::size_t at = kept.find(mark) + mark.size();
  kept.replace(at, kept.find(',', at) - at, "123456789");
  write("small.sweep.jsonl", kept);
  EXPECT_THAT(tandem({"sweep", "small.yaml", "--json"}).out, HasSubstr("\"step_time_ns\": 123456789"));
  // More values are the same scenario still.
  write_sweep("  values: {devices.workers: [1, 2], workload.bucket_bytes: [1MB, 25MB], workload.dtype: [bf16, f32]}\n");
  const Outcome more = tandem({"sweep", "small.yaml", "--json"});
  EXPECT_EQ(more.json()["points"].size(), 8u);
  EXPECT_THAT(more.out, HasSubstr("\"step_time_ns\": 123456789"));
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 9);
}

TEST_F(Sweep, GoesOnAfterALastLineThatIsCut) {
  write_small();
  const Outcome whole = tandem({"sweep", "small.yaml", "--json", "-j", "1"});
  const std::string kept = read("small.sweep.jsonl");
  write("small.sweep.jsonl", kept.substr(0, kept.size() - 20));
  const Outcome outcome = tandem({"sweep", "small.yaml", "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("small.sweep.jsonl: the last line was cut; its point runs again"));
  EXPECT_EQ(outcome.out, whole.out);
  EXPECT_EQ(read("small.sweep.jsonl"), kept);
}

TEST_F(Sweep, RefusesResultsThatAreNotItsOwn) {
  write_small();
  ASSERT_EQ(tandem({"sweep", "small.yaml"}).exit_code, 0);
  const std::string kept = read("small.sweep.jsonl");
  write_sweep("  values: {devices.workers: [1, 2]}\n", 3);
  const Outcome other = tandem({"sweep", "small.yaml"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("small.sweep.jsonl:1:1: has results of another scenario: of 'small' ("));
  EXPECT_EQ(read("small.sweep.jsonl"), kept) << "as it was";

  EXPECT_EQ(tandem({"sweep", "small.yaml", "--results", "small.yaml"}).exit_code, 3);
  write_small();
  EXPECT_THAT(tandem({"sweep", "small.yaml", "--results", "small.yaml"}).err,
              HasSubstr("small.yaml:1:1: is no results file of a sweep"));
  write("small.sweep.jsonl",
        kept.substr(0, kept.find('\n') + 1) + "{\"values\": 3}\n" + kept.substr(kept.find('\n') + 1));
  const Outcome broken = tandem({"sweep", "small.yaml"});
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_THAT(broken.err, HasSubstr("small.sweep.jsonl:2:12: "));
}

TEST_F(Sweep, SaysWhenADiskIsFull) {
  write_small();
  const Outcome results = tandem({"sweep", "small.yaml", "--results", "/dev/full"});
  EXPECT_EQ(results.exit_code, 5);
  EXPECT_THAT(results.err, HasSubstr("cannot write /dev/full: No space left on device"));
  const Outcome output = tandem({"sweep", "small.yaml", "-o", "/dev/full"});
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_THAT(output.err, HasSubstr("cannot write /dev/full: No space left on device"));
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 5) << "the points are kept all the same";
  EXPECT_EQ(tandem({"sweep", "small.yaml", "--results", "no/folder/file"}).exit_code, 5);
}

TEST_F(Sweep, ShowsWhatDoesNotFitAndWhatFails) {
  const std::string file =
      write_sweep("  values: {topology.cluster.overrides.gpu.memory: [80GB, 1MB], devices.workers: [1, 3]}\n");
  const Outcome outcome = tandem({"sweep", file, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto points = outcome.json()["points"];
  EXPECT_EQ(points[0]["state"], "done");
  EXPECT_EQ(points[1]["state"], "failed");
  EXPECT_THAT(points[1]["problem"],
              HasSubstr("small.yaml:10:85: devices.workers: more than the machines of the topology: 2"));
  EXPECT_EQ(points[2]["state"], "does not fit");
  EXPECT_EQ(points[2]["limit"], "memory");
  EXPECT_THAT(points[2]["problem"], HasSubstr("of 1.000 MB: parameters "));
  EXPECT_THAT(tandem({"sweep", file}).out, HasSubstr("1 of 4 points on engine sim, 1 does not fit, 2 failed"));
  const std::string none = write_sweep("  values: {devices.workers: [3, 4]}\n");
  const Outcome nothing = tandem({"sweep", none, "--no-results"});
  EXPECT_EQ(nothing.exit_code, 5);
  EXPECT_THAT(nothing.err, HasSubstr("no point of the sweep could run"));
}

TEST_F(Sweep, EndsAtASignalAndGoesOnLater) {
  write_long();
  const auto begin = std::chrono::steady_clock::now();
  const Outcome whole = tandem({"sweep", "small.yaml", "--json", "--no-results"});
  const std::chrono::duration<double> whole_s = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  int before = 1;  // the head
  for (const int signal : {SIGINT, SIGTERM}) {
    // Early enough on a fast machine; later if no point has ended by then, on one that has other things to do.
    for (double after_s = std::min(0.5, whole_s.count() / 4); lines_of("small.sweep.jsonl") <= before; after_s *= 1.5) {
      ASSERT_LT(after_s, 30) << "finished points are kept";
      const Outcome outcome = tandem_interrupted({"sweep", "small.yaml"}, after_s, signal);
      ASSERT_EQ(outcome.exit_code, 130) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr("tandem: interrupted\n"));
    }
    before = lines_of("small.sweep.jsonl");
  }
  const Outcome rest = tandem({"sweep", "small.yaml", "--json"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.out, whole.out);
}

// The number of a process's first child; 0 where it has none.
pid_t child_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream in("/proc/" + id + "/task/" + id + "/children");
  pid_t child = 0;
  in >> child;
  return child;
}

TEST_F(Sweep, LosesOnlyThePointWhoseProcessIsKilled) {
  write_long();
  const pid_t here = getpid();
  std::thread killer([here] {
    for (int i = 0; i < 1000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const pid_t command = child_of(here), worker = command > 0 ? child_of(command) : 0;
      if (worker == 0) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(worker, SIGKILL);
      return;
    }
  });
  const Outcome outcome = tandem({"sweep", "small.yaml", "--json"});
  killer.join();
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("tandem: 1 point was lost; the same command runs it again"));
  int lost = 0, done = 0;
  const nlohmann::json document = outcome.json();
  for (const auto& point : document["points"]) {
    if (point["state"] == "done") ++done;
    if (point["state"] != "lost") continue;
    ++lost;
    EXPECT_EQ(point["problem"], "its process was ended by signal 9 (Killed)");
  }
  EXPECT_EQ(lost, 1);
  EXPECT_EQ(done, 39);
  const Outcome again = tandem({"sweep", "small.yaml", "--json"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, tandem({"sweep", "small.yaml", "--json", "--no-results"}).out);
}

TEST_F(Sweep, APointForWhichThisMachineIsTooSmallRunsOnALargerOne) {
  if (!kHasAddressLimits) GTEST_SKIP() << "sanitizers need all addresses";
  write(
      "small.yaml",
      "schema_version: 1\nworkload: {kind: layers, model: gpt, batch: 1600, dtype: bf16, sizes: {hidden: 64, heads: 4, "
      "tokens: 32, layers: 1}}\nstrategy: {name: multi_worker_mirrored}\nengine: {name: sim, symmetry: off}\n"
      "topology: {cluster: {node: hgx-h100, workers: 200}}\ndevices: {type: gpu, workers: 1, per_worker: 8}\n"
      "steps: 1\nsweep:\n  values: {devices.workers: [1, 200]}\n");
  {
    const AddressLimit limit(rlim_t{1800} << 20);  // 1,600 devices need 1,947 MB, the libraries of CUDA 1,100
    const Outcome outcome = tandem({"sweep", "small.yaml", "-j", "1", "--json"});
    EXPECT_EQ(outcome.exit_code, 5) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("1 point was lost; the same command runs it again"));
    const auto points = outcome.json()["points"];
    EXPECT_EQ(points[0]["state"], "done");
    EXPECT_EQ(points[1]["state"], "lost");
    EXPECT_THAT(points[1]["problem"], HasSubstr("need about 1.94"));
  }
  const Outcome outcome = tandem({"sweep", "small.yaml", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json()["points"][1]["state"], "done");
}

TEST_F(Sweep, MergesResultsOfOtherMachines) {
  write_small();
  ASSERT_EQ(ranked(1, 2, {"sweep", "small.yaml", "--results", "there.jsonl"}).exit_code, 0);
  unsetenv("OMPI_COMM_WORLD_RANK");
  const Outcome merged = tandem({"sweep", "small.yaml", "--merge", "there.jsonl.rank1"});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_EQ(lines_of("small.sweep.jsonl"), 5);
  EXPECT_EQ(tandem({"sweep", "small.yaml", "--merge", "missing.jsonl"}).exit_code, 3);
}

TEST_F(Sweep, ListsPointsWithoutRunningThem) {
  const Outcome outcome = tandem({"sweep", write_small(), "--dry-run", "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.json()["points"].size(), 4u);
  EXPECT_EQ(outcome.json()["points"][0]["state"], "not run");
  EXPECT_FALSE(exists("small.sweep.jsonl"));
}

TEST_F(Sweep, EstimatesItsPointsWithoutRunningThem) {
  const std::string file =
      write_sweep("  values: {topology.cluster.overrides.gpu.memory: [80GB, 1MB], steps: [3, 3000]}\n");
  const Outcome outcome = tandem({"sweep", file, "--dry-run", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto document = outcome.json();
  const auto estimate = [&](int point) { return document["points"][point]["estimate"]; };
  EXPECT_GT(estimate(0)["cpu_s"], 0);
  EXPECT_GT(estimate(1)["cpu_s"], estimate(0)["cpu_s"]) << "a thousand times the steps";
  EXPECT_GT(estimate(1)["memory_bytes"], estimate(0)["memory_bytes"]);
  EXPECT_FALSE(document["points"][2].contains("estimate")) << "it does not fit";
  const Outcome text = tandem({"sweep", file, "--dry-run"});
  EXPECT_THAT(text.out, testing::ContainsRegex(
                            "small: 0 of 4 points on engine sim, 4 not run\n\n +memory +steps +CPU time +memory\n"
                            " +80GB +3 +[0-9.]+ ms +[0-9.]+ MB\n"));
  EXPECT_THAT(text.out, testing::ContainsRegex("1MB +3 +refused +-\n"));
  EXPECT_THAT(text.out, testing::ContainsRegex(
                            "\nabout [0-9.]+ m?s of CPU time in all, up to [0-9.]+ MB for a point \\(estimates\\)\n"));
}

TEST_F(Sweep, NeedsASweep) {
  const Outcome outcome = tandem({"sweep", write_small_scenario()});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("small.yaml:1:1: has no `sweep:`; docs/sweep.md describes it"));
}

TEST_F(Sweep, NamesSweptKeysWithoutEffect) {
  write_sweep("  values: {devices.workers: [1, 2], workload.overlap_tensor: [true, false]}\n");
  const std::string note = "has no effect here: workload.overlap_tensor: no layer is divided among devices";
  const Outcome outcome = tandem({"sweep", "small.yaml", "--json", "--html", "page.html"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto document = outcome.json();
  for (const auto& point : document["points"]) {
    EXPECT_THAT(point["notes"].dump(), HasSubstr(note));
    EXPECT_THAT(point["notes"].dump(), testing::Not(HasSubstr("sweep:")));
  }
  // One worker leaves a machine alone.
  EXPECT_THAT(document["notes"].dump(), HasSubstr("the job has tasks on 1 of 2 machines (2 of 4 points)"));
  EXPECT_THAT(tandem({"sweep", "small.yaml"}).out, HasSubstr("\nnotes\n"));
  EXPECT_THAT(read("page.html"), HasSubstr(note));
  EXPECT_THAT(tandem({"run", "small.yaml"}).out, HasSubstr("has no effect here: sweep: only `tandem sweep` reads it"));
}

}  // namespace
}  // namespace tandem
