#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CollectivesCommand : public CommandLine {
 protected:
  static std::string log(const std::string& name) {
    return std::string(TANDEM_SOURCE_DIR) + "/tests/reports/nccl_tests/" + name;
  }
};

TEST_F(CollectivesCommand, MeasuresThisMachine) {
  const Outcome outcome = tandem({"collectives", "-b", "1K", "-e", "16K", "-f", "4", "-g", "2", "-n", "3", "-w", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("# nThread 1 nGpus 2 minBytes 1024 maxBytes 16384 step: 4(factor) warmup iters: 1 "
                                     "iters: 3 agg iters: 1 validation: 1 graph: 0\n"));
  for (const char* row :
       {"\n        1024           256     float     sum      -1  ", "\n        4096  ", "\n       16384  "}) {
    EXPECT_THAT(outcome.out, HasSubstr(row));
  }
  EXPECT_THAT(outcome.out, HasSubstr("# Out of bounds values : 0 OK\n"));
}

TEST_F(CollectivesCommand, PredictsASimulatedMachineToTheByte) {
  const std::vector<std::string> command = {"collectives", "all_gather_perf",
                                            "--topology",  "hgx-h100",
                                            "--workers",   "2",
                                            "-b",          "1M",
                                            "-e",          "4M",
                                            "-f",          "2",
                                            "-d",          "half"};
  const Outcome outcome = tandem(command);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("#  Rank 15 Group  0 Pid     15 on    worker1 device  7 "));
  EXPECT_THAT(outcome.out, HasSubstr("\n     1048576         32768      half    none      -1  "));
  EXPECT_EQ(tandem(command).out, outcome.out);
}

TEST_F(CollectivesCommand, PrintsTheJsonOfNcclTests) {
  const Outcome outcome = tandem(
      {"collectives", "broadcast", "--topology", "dgx-a100", "-g", "4", "-b", "8", "-e", "8", "-r", "3", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto json = outcome.json();
  EXPECT_EQ(json["version"], 3);
  EXPECT_EQ(json["config"]["ngpus"], 1);
  EXPECT_EQ(json["config"]["devices"].size(), 4u);
  const auto result = json["results"].at(0);
  EXPECT_EQ(result["size"], 8);
  EXPECT_EQ(result["type"], "float");
  EXPECT_EQ(result["redop"], "none");
  EXPECT_EQ(result["root"], "     3");
  EXPECT_GT(result["out_of_place"]["time"], 0.0);
  EXPECT_NEAR(result["out_of_place"]["bus_bw"], result["out_of_place"]["alg_bw"], 1e-12);
  EXPECT_TRUE(result["out_of_place"]["nwrong"].is_null());
}

TEST_F(CollectivesCommand, StandsBesideAnEarlierRunOfItsOwn) {
  for (const bool json : {false, true}) {
    std::vector<std::string> command = {
        "collectives", "reduce_scatter", "--topology", "hgx-h100", "-b", "1K", "-e", "1M", "-f", "4", "-o", "own"};
    if (json) command.emplace_back("--json");
    ASSERT_EQ(tandem(command).exit_code, 0);
    const Outcome outcome = tandem({"collectives", "--topology", "hgx-h100", "--against", "own", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.json()["args"].at(0), "reduce_scatter_perf");
    ASSERT_EQ(outcome.json()["results"].size(), 6u);
    for (const auto document = outcome.json(); const auto& result : document["results"]) {
      EXPECT_NEAR(result["against"]["error"], 0, 0.005);  // the text has two decimals
    }
  }
}

TEST_F(CollectivesCommand, ShowsTheErrorsAgainstALog) {
  const Outcome outcome = tandem({"collectives", "--topology", "dgx-a100", "--against", log("good/plain.txt")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  |   against     error"));
  EXPECT_THAT(outcome.out, HasSubstr("  |     20.11  "));
  EXPECT_THAT(outcome.out, HasSubstr("# Error against        : median "));
  EXPECT_THAT(outcome.out, HasSubstr(" of 6 sizes\n"));
}

TEST_F(CollectivesCommand, NamesWhatALogLeavesOut) {
  const Outcome outcome = tandem({"collectives", "--topology", "hgx-h200", "--against", log("good/elided.md")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("the table is not whole, left out are ranks (line 8) and rows (line 16)"));
}

TEST_F(CollectivesCommand, RefusesLogsThatDoNotFit) {
  const auto against = [&](const std::string& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {"collectives", "--topology", "hgx-h100", "--against", file};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = tandem(command);
    EXPECT_EQ(outcome.exit_code, 3) << file;
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_THAT(against(log("broken/cut_in_row.txt")), HasSubstr("cut_in_row.txt:21:7: a row of 7 columns"));
  EXPECT_THAT(
      against(log("good/several.txt")),
      HasSubstr("holds several tables that fit: all_reduce of float on 8 devices (line 15), all_gather of float on "
                "8 devices (line 40); name the collective, -d or -g"));
  EXPECT_THAT(against(log("good/plain.txt"), {"-g", "4"}),
              HasSubstr("holds no table that fits, only all_reduce of float"));
  EXPECT_THAT(against("nowhere.txt"), HasSubstr("nowhere.txt"));
}

// A file of measurements names the machine, and any table the number of machines.
TEST_F(CollectivesCommand, TakesTheMachineFromTheTable) {
  const std::string folder = std::string(TANDEM_SOURCE_DIR) + "/tests/validation/collectives/";
  const Outcome own = tandem({"collectives", "--against", folder + "h100x16_2node_ndr_dell_all_reduce.json", "--json"});
  ASSERT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(own.json()["engine"], "sim");
  EXPECT_THAT(own.json()["settings"]["nccl"].get<std::string>(), HasSubstr("model of 2.26.2"));
  const Outcome named = tandem({"collectives", "--topology", "hgx-h100", "--against",
                                folder + "h100x16_2node_ndr_dell_all_reduce.json", "--json"});
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(named.json()["config"]["devices"].size(), 16);
  const Outcome explicit_two = tandem({"collectives", "--topology", "hgx-h100", "--workers", "2", "-g", "8",
                                       "--against", folder + "h100x16_2node_ndr_dell_all_reduce.json", "--json"});
  EXPECT_EQ(named.out, explicit_two.out);
  const Outcome unnamed = tandem({"collectives", "--against", folder + "awseks_x2_2node_tcp_all_reduce.json"});
  EXPECT_EQ(unnamed.exit_code, 3);
  EXPECT_THAT(unnamed.err, HasSubstr("; name the machine by --topology"));
  EXPECT_THAT(unnamed.err, testing::ContainsRegex("awseks_x2_2node_tcp_all_reduce.json:[0-9]+: does not state "));
}

TEST_F(CollectivesCommand, PrintsTheSizesThatWereAsked) {
  const Outcome outcome = tandem({"collectives", "--topology", "hgx-h100", "-b", "1K", "-e", "1M", "-f", "3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("minBytes 1024 maxBytes 1048576 step: 3(factor)"));
}

TEST_F(CollectivesCommand, SaysThatTheEnvironmentIsNotRead) {
  ASSERT_EQ(setenv("NCCL_ALGO", "ring", 1), 0);
  const std::vector<std::string> command = {"collectives", "--topology", "hgx-h100", "-b", "1M", "-e", "1M"};
  const Outcome unread = tandem(command);
  const Outcome run = tandem({"run", example("resnet50-hgx-h100.yaml")});
  ASSERT_EQ(unsetenv("NCCL_ALGO"), 0);
  EXPECT_EQ(unread.err, "note: NCCL_ALGO in the environment is not read; use --nccl NAME=VALUE\n");
  EXPECT_THAT(run.err, HasSubstr("note: NCCL_ALGO in the environment is not read"));
  EXPECT_EQ(tandem(command).err, "");
}

TEST_F(CollectivesCommand, RefusesVariablesThatLeaveNothing) {
  const Outcome outcome = tandem(
      {"collectives", "--topology", "hgx-h100", "-b", "1M", "-e", "1M", "--nccl", "NCCL_ALGO=allreduce:collnetchain"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.err,
            "tandem: NCCL has no algorithm and protocol left for this all_reduce: NCCL_ALGO and NCCL_PROTO exclude "
            "those it can "
            "use here\n");
}

TEST_F(CollectivesCommand, NotesThatANetworkHasNoSharp) {
  const Outcome outcome = tandem({"collectives", "--topology", "aws-p5", "--workers", "2", "-b", "256M", "-e", "256M",
                                  "--nccl", "NCCL_COLLNET_ENABLE=1", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.json()["notes"].dump(),
              HasSubstr("NCCL_COLLNET_ENABLE has no effect: only switches of InfiniBand "
                        "reduce (SHARP), and the network is 'efa'"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("CollNet ")));
}

TEST_F(CollectivesCommand, NamesWhatIsWrongOnTheCommandLine) {
  const auto refused = [&](std::vector<std::string> arguments, int exit_code, const std::string& message) {
    arguments.insert(arguments.begin(), "collectives");
    const Outcome outcome = tandem(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << message;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_THAT(outcome.out, IsEmpty());
  };
  refused({"all_redcue"}, 2, "did you mean 'all_reduce'?");
  refused({"-b", "1X"}, 2, "expected a size such as 8, 64K or 128M, found '1X'");
  refused({"-b", "2K", "-e", "1K"}, 2, "-b is larger than -e");
  refused({"-g", "2", "-b", "1", "-e", "2"}, 2,
          "no size from 1 to 2 bytes holds an element of float for each of 2 devices");
  refused({"-b", "8", "-i", "8", "-e", "8G"}, 2, "more than 10000 sizes from 8 to 8589934592 bytes: use a larger -i");
  refused({"-d", "f32"}, 2, "'f32' is no element type of nccl-tests");
  refused({"--topology", "hgx-h100", "-g", "9"}, 2, "-g 9: 'hgx-h100' has 8 GPUs in a machine");
  refused({"broadcast", "-g", "2", "-r", "2"}, 2, "-r 2: there are 2 devices");
  refused({"--engine", "sim"}, 4, "engine 'sim' needs --topology NAME or FILE");
  refused({"--topology", "hgx-h10"}, 3, "unknown catalog node 'hgx-h10'; did you mean 'hgx-h100'?");
  refused({"--topology", "./none.yaml"}, 3, "none.yaml");
}

// Eight bytes over as many devices are no whole element for each of their parts.
TEST_F(CollectivesCommand, SizesThatRoundDownToNothingHaveNoBandwidth) {
  const Outcome outcome = tandem(
      {"collectives", "all_to_all", "--topology", "quadro-rtx8000", "--workers", "2", "-b", "8", "-e", "8", "-q"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(testing::AnyOf(testing::HasSubstr("inf"), testing::HasSubstr("nan"))));
}

TEST_F(CollectivesCommand, NamesFlagsWithoutEffect) {
  const auto notes = [this](std::vector<std::string> flags, const std::string& operation = "all_reduce") {
    std::vector<std::string> command{"collectives", operation, "--topology", "hgx-h100", "-b",
                                     "1M",          "-e",      "1M",         "--json"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Outcome outcome = tandem(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::string text;
    const auto document = outcome.json();
    for (const auto& note : document["notes"]) text += note.get<std::string>() + "\n";
    return text;
  };
  EXPECT_THAT(notes({}), Not(HasSubstr("no effect")));
  EXPECT_THAT(notes({"-r", "1"}), HasSubstr("has no effect here: --root: all_reduce has no root\n"));
  EXPECT_THAT(notes({"-r", "1"}, "broadcast"), Not(HasSubstr("--root")));
  EXPECT_THAT(notes({"--op", "max"}, "all_gather"),
              HasSubstr("has no effect here: --op: all_gather reduces nothing\n"));
  EXPECT_THAT(notes({"-i", "1K", "-f", "2"}), HasSubstr("--stepbytes: --stepfactor takes its place\n"));
  EXPECT_THAT(notes({"-c", "1"}), HasSubstr("--check: tensors of a model hold no values\n"));
  EXPECT_THAT(notes({"--nccl", "NCCL_PROTO=Simple"}), Not(HasSubstr("--nccl")));
  EXPECT_THAT(notes({"--nccl", "NCCL_MAX_NCHANNELS=64"}),
              HasSubstr("has no effect here: --nccl NCCL_MAX_NCHANNELS: NCCL does the same without it\n"));
  EXPECT_THAT(notes({"--nccl", "NCCL_PROTO=Simple", "--collectives", "message"}), Not(HasSubstr("--nccl")));
  EXPECT_THAT(notes({"--nccl", "NCCL_PROTO=LL", "--device-type", "cpu"}),
              HasSubstr("has no effect here: --nccl NCCL_PROTO: no collective here is one of NCCL's\n"));
}

TEST_F(CollectivesCommand, NamesKeysOfAClusterWithoutEffect) {
  write("cluster.yaml",
        "schema_version: 1\nname: c\ncluster: {node: hgx-h100, workers: 2, fabric: {kind: fat_tree, spines: 2}, "
        "overrides: "
        "{gpu: {peak_flops: {f64: 1TFLOPS}}, network: {bandwidth: 25GB/s}}}\n");
  const Outcome outcome =
      tandem({"collectives", "all_reduce", "--topology", "./cluster.yaml", "-b", "1M", "-e", "1M", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("has no effect here: cluster.overrides.gpu.peak_flops.f64: no time of this run "
                                     "depends on it"));
  EXPECT_THAT(outcome.out, HasSubstr("may have no effect here: cluster.fabric.kind, cluster.fabric.spines: no data "
                                     "crosses links between switches of the network"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("network.bandwidth")));
}

}  // namespace
}  // namespace tandem
