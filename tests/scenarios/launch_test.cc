// TF_CONFIG beside a launch: what contradicts it is refused, with both.
#include "scenarios/job/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<WorkerSpec> kTasks = {
    {.job = "worker", .task = 0}, {.job = "worker", .task = 1}, {.job = "ps", .task = 0}};

FixedEnvironment with(const std::string& config) {
  return {{"TF_CONFIG", config}};
}

std::string config(const std::string& workers, const std::string& type, int index) {
  return R"({"cluster": {"worker": [)" + workers + R"(], "ps": ["c:1"]}, "task": {"type": ")" + type +
         R"(", "index": )" + std::to_string(index) + "}}";
}

const std::string kTwo = R"("a:1", "b:1")";

TEST(Launch, ATfConfigThatSaysTheSameIsFine) {
  for (int rank = 0; rank < 3; ++rank) {
    const WorkerSpec& task = kTasks[static_cast<std::size_t>(rank)];
    EXPECT_NO_THROW(check_tf_config(kTasks, {rank, 3}, with(config(kTwo, task.job, task.task))));
  }
  EXPECT_NO_THROW(check_tf_config(kTasks, {0, 3}, FixedEnvironment()));
  EXPECT_NO_THROW(check_tf_config(kTasks, {0, 3}, with("{}")));
}

TEST(Launch, AProcessThatWasLaunchedAloneIsAloneInItsTfConfig) {
  EXPECT_THAT(([] {
                check_tf_config(kTasks, {0, 1}, with(config(kTwo, "ps", 0)));
              }),
              ThrowsMessage<UnavailableError>(
                  "TF_CONFIG says that this process is ps 0 of a cluster of 1 x ps and 2 x worker; it was launched "
                  "alone, and would do the work of all tasks; launch all of them with mpirun or srun, or this process "
                  "without TF_CONFIG"));
  const std::string alone = R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})";
  EXPECT_NO_THROW(check_tf_config(kTasks, {0, 1}, with(alone)));
  EXPECT_NO_THROW(check_tf_config(kTasks, {0, 1}, with("{}")));
  EXPECT_NO_THROW(check_tf_config(kTasks, {0, 1}, FixedEnvironment()));
  EXPECT_NO_THROW(check_tf_config(kTasks, {0, 1}, with(config(kTwo, "evaluator", 0)))) << "it runs by itself";
}

TEST(Launch, AnEvaluatorIsNoTaskOfTheLaunch) {
  const std::string text = R"({"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"], "evaluator": ["d:1"]},
                               "task": {"type": "worker", "index": 1}})";
  EXPECT_NO_THROW(check_tf_config(kTasks, {1, 3}, with(text)));
}

TEST(Launch, AnEvaluatorAmongTheRanksIsNamed) {
  EXPECT_THAT(
      ([] {
        check_tf_config(kTasks, {2, 3}, with(config(kTwo, "evaluator", 0)));
      }),
      ThrowsMessage<UnavailableError>(
          "TF_CONFIG says that this process is evaluator 0, and the launch has made it rank 2 of 3; an evaluator "
          "is no task of the cluster: start it by itself, without mpirun and srun, and launch a rank for each of "
          "the other tasks (1 x ps and 2 x worker)"));
}

TEST(Launch, RanksWithoutAScenarioAreAsManyAsTheTasks) {
  EXPECT_NO_THROW(check_tf_config({0, 3}, with(config(kTwo, "worker", 0))));
  EXPECT_NO_THROW(check_tf_config({0, 3}, FixedEnvironment()));
  EXPECT_THAT(([] {
                check_tf_config({0, 2}, with(config(kTwo, "worker", 0)));
              }),
              ThrowsMessage<UnavailableError>(
                  "TF_CONFIG describes a cluster of 1 x ps and 2 x worker, and 2 ranks were launched"));
}

TEST(Launch, AllRanksHaveTheAddressesOfOneCluster) {
  const std::string name = "cluster in its TF_CONFIG";
  EXPECT_EQ(tf_config_of_all(with(config(kTwo, "worker", 1))).at(name), "ps [c:1] and worker [a:1, b:1]");
  EXPECT_EQ(tf_config_of_all(with(config(kTwo, "ps", 0))), tf_config_of_all(with(config(kTwo, "worker", 1))));
  EXPECT_EQ(tf_config_of_all(FixedEnvironment()).at(name), "none");
}

TEST(Launch, AnotherTaskIsRefused) {
  EXPECT_THAT(
      ([] {
        check_tf_config(kTasks, {1, 3}, with(config(kTwo, "worker", 0)));
      }),
      ThrowsMessage<UnavailableError>(
          "TF_CONFIG says that this process is worker 0 of a cluster of 1 x ps and 2 x worker; the launch has made "
          "it rank 1 of 3, which is worker 1 of a cluster of 1 x ps and 2 x worker; start each rank with its own "
          "TF_CONFIG, or without one"));
  EXPECT_THAT(([] {
                check_tf_config(kTasks, {2, 3}, with(config(kTwo, "worker", 1)));
              }),
              ThrowsMessage<UnavailableError>(AllOf(HasSubstr("is worker 1 of"), HasSubstr("is ps 0 of"))));
}

TEST(Launch, AnotherClusterIsRefused) {
  EXPECT_THAT(([] {
                check_tf_config(kTasks, {0, 3}, with(config(R"("a:1")", "worker", 0)));
              }),
              ThrowsMessage<UnavailableError>(AllOf(HasSubstr("worker 0 of a cluster of 1 x ps and 1 x worker"),
                                                    HasSubstr("1 x ps and 2 x worker"))));
}

TEST(Launch, ATfConfigThatIsNoneIsNamed) {
  EXPECT_THAT(([] {
                check_tf_config(kTasks, {0, 3}, with("{"));
              }),
              ThrowsMessage<UnavailableError>(testing::StartsWith("TF_CONFIG is not JSON")));
}

}  // namespace
}  // namespace tandem
