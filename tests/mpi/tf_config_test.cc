// Processes whose TF_CONFIG says which task of which cluster they are: `tandem`, and a program of one's own.
#include <nlohmann/json.hpp>

#include "tests/mpi/mpi_testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class TfConfig : public MpiCommand {};

// What every rank has as its TF_CONFIG: `cluster` and `task` are JSON, in which a shell replaces $RANK.
std::string tf_config(const std::string& cluster, const std::string& type, const std::string& index) {
  std::string text = R"({"cluster": )" + cluster + R"(, "task": {"type": ")" + type + R"(", "index": )" + index + "}}";
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return "export TF_CONFIG=\"" + text + "\"; ";
}

const std::string kTwoWorkers = R"({"worker": ["a:1", "b:1"]})";

TEST_F(TfConfig, ATfConfigIsThatOfTheLaunchOrRefused) {
  const auto with_config = [](const std::string& index) {
    return ranks(2, tf_config(kTwoWorkers, "worker", index) + "exec $TANDEM run " + kDigits +
                        " --engine mpi -q --steps 12 --json");
  };
  Ended ended = shell(with_config("$RANK"));
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["workers"], 2);
  ended = shell(with_config("0"));
  EXPECT_THAT(ended.exit_code, testing::AnyOf(4, 5)) << ended.err;  // rank 1's, or that of rank 0, which is told
  EXPECT_EQ(count_of(ended.err,
                     "TF_CONFIG says that this process is worker 0 of a cluster of 2 x worker; the launch has "
                     "made it rank 1 of 2, which is worker 1 of"),
            1)
      << ended.err;
}

TEST_F(TfConfig, TfConfigsOfOtherClustersAreNamed) {
  const Ended ended = shell(ranks(2, tf_config(R"({"worker": ["a:1", "b$RANK:1"]})", "worker", "$RANK") +
                                         "exec $TANDEM run " + kDigits + " --engine mpi -q --steps 12 --json"));
  EXPECT_EQ(ended.exit_code, 5) << ended.err;
  EXPECT_EQ(count_of(ended.err, "has another cluster in its TF_CONFIG than rank 0"), 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("worker [a:1, b1:1] instead of worker [a:1, b0:1]"));
}

TEST_F(TfConfig, ATaskThatWasStartedAloneWaitsForTheOthers) {
  const std::string config =
      "export TANDEM_MPI_JOIN_S=1; " + tf_config(R"({"worker": ["127.0.0.1:1", "127.0.0.1:47813"]})", "worker", "1");
  for (const std::string& command : {"run " + kDigits, std::string("calibrate --quick -o cluster.yaml")}) {
    const Ended ended = shell(config + "exec " TANDEM_BINARY " " + command + " --engine mpi -q");
    EXPECT_EQ(ended.exit_code, 5) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("tandem: worker 1 at 127.0.0.1:47813 has waited 1 s for worker 0 at 127.0.0.1:1"));
  }
  const Ended ended = shell(ranks(
      3, tf_config(kTwoWorkers, "worker", "0") + "exec $TANDEM calibrate --engine mpi --quick -q -o cluster.yaml"));
  EXPECT_EQ(ended.exit_code, 4) << ended.err;
  EXPECT_EQ(count_of(ended.err, "TF_CONFIG describes a cluster of 2 x worker, and 3 ranks were launched"), 1)
      << ended.err;
  EXPECT_FALSE(exists("cluster.yaml"));
}

// The evaluator is in the cluster's description, and runs by itself.
TEST_F(TfConfig, AChiefIsTheFirstRankAndAnEvaluatorIsNone) {
  std::ifstream in(kDigits);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.replace(text.find("workers: 2,"), 11, "chief: true, workers: 2,");
  std::ofstream(folder_ / "chief.yaml") << text;
  const std::string cluster = R"({"chief": ["a:1"], "worker": ["b:1"], "evaluator": ["c:1"]})";
  const std::string run = "exec $TANDEM run chief.yaml --engine mpi -q --steps 12 --json";
  Ended ended =
      shell(ranks(2, "[ $RANK = 0 ] && TYPE=chief || TYPE=worker; " + tf_config(cluster, "$TYPE", "0") + run));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(nlohmann::json::parse(ended.out)["workers"], 2);
  ended = shell(ranks(3, "TYPE=$(echo chief worker evaluator | cut -d\" \" -f$((RANK + 1))); " +
                             tf_config(cluster, "$TYPE", "0") + run));
  EXPECT_EQ(ended.exit_code, 4) << ended.err;
  EXPECT_EQ(count_of(ended.err, "an evaluator was launched as rank 2 of 3, whose other ranks would wait for it"), 1)
      << ended.err;
  ended = shell(tf_config(cluster, "evaluator", "0") + "TANDEM=" TANDEM_BINARY "; " + run);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
}

// docs/examples/tf_config.cc: two workers and a parameter server, whose server joins until the workers have ended.
TEST_F(TfConfig, AProgramTakesItsClusterFromTfConfig) {
  const std::string cluster = R"({"worker": ["localhost:0", "localhost:0"], "ps": ["localhost:0"]})";
  const auto with_tasks = [&](const std::string& jobs) {
    return shell(ranks(3, "set -- " + jobs + "; shift $((2 * RANK)); " + tf_config(cluster, "$1", "$2") +
                              "exec " TANDEM_TF_CONFIG_PROGRAM));
  };
  Ended ended = with_tasks("worker 0 worker 1 ps 0");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(count_of(ended.out, "worker 0 of 3 tasks: weight 3.0\n"), 1) << ended.out;
  EXPECT_EQ(count_of(ended.out, "worker 1 of 3 tasks: weight 3.0\n"), 1) << ended.out;
  expect_no_orphan(3);
  ended = with_tasks("worker 0 worker 0 ps 0");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.err, testing::ContainsRegex("rank 1 on .*: TF_CONFIG says that this is worker 0, and the run has "
                                                "made it worker 1\n"));
  ended = with_tasks("worker 0 worker 1 worker 1");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.err, HasSubstr("the server of worker 1 in the program of ps 0"));
}

}  // namespace
}  // namespace tandem
