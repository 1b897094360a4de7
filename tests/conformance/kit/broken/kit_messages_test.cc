// What the kit says of strategies with one fault each: the call, the values per replica, what is right, and where it
// ran; never the text of an assertion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/conformance/worlds.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Fault {
  std::string strategy;            // of broken_strategies.cc
  std::string test;                // of the kit
  std::vector<std::string> parts;  // of the message
  std::string tested = "_2_sim_fluid";
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) {
  return out << fault.strategy << " in " << fault.test;
}

const std::string kTwoWorkers = "_2_in_2_workers_sim_fluid", kAtScale;
const std::string kReduced = " of what run() returned, on replica r 3 elements of 4 * (r + 1): the result: found ";
const std::string kChanged = "assign_add(4 * (id + 1)) of variable 'v' (synchronization ";

const std::vector<Fault> kFaults = {
    {"forgets_the_all_reduce",
     "ReductionsAndGathersAreExact",
     {"reduce(SUM)" + kReduced + "[4, 4, 4], must be [12, 12, 12]", "reduce(MEAN)",
      "all_reduce(SUM) of 2 elements of id + 1 in a replica context",
      "  replica 0: found [1, 1], must be [3, 3]\n  replica 1: found [1, 1], must be [3, 3]\n",
      "combines the values of all replicas, each once"}},
    {"forgets_the_all_reduce",
     "TrainsOn64GpusWithEqualValuesAndEqualTimes",
     {"read() of variable 'w' after 12 steps of gradient descent", "must be within 0.01 of 8", "with 64 replicas"},
     kAtScale},
    {"averages_instead_of_adding",
     "TrainingDescends",
     {"begin_batch_reduce_to(SUM) of the gradients (to variable 'w') in step 1 of 12",
      "  replica 0: found [-4], must be [-8]\n  replica 1: found [-4], must be [-8]\n"}},
    {"reduces_twice",
     "DrawnProgramsComeToWhatTheyMust",
     {"changes of variable 'v0' (f32, AUTO, SUM) in step 0: the components of the variable are wrong",
      "  replica 1: found [48, 48], must be [24, 24]\n", "aggregates the values of all replicas",
      "TANDEM_DRAWN_SEED=1 in its simplest form", "v0.assign_add() with 12"}},
    {"updates_only_replica_0",
     "TrainingDescends",
     {"update() of variable 'w'", "  replica 0: found [4], must be [4]\n  replica 1: found [0], must be [4]\n",
      "calls the function once for each component of the variable"}},
    {"updates_only_replica_0",
     "VariablesAggregate",
     {kChanged + "AUTO, aggregation SUM", "  replica 1: found [0], must be [12]\n", "changes every component alike"}},
    {"reduces_to_the_wrong_device",
     "ReductionsAndGathersAreExact",
     {"reduce(SUM)",
      "the device of the result: found /job:worker/replica:0/task:0/device:GPU:1, must be "
      "/job:worker/replica:0/task:0/device:CPU:0"}},
    {"reduces_to_the_wrong_device",
     "TrainingDescends",
     {"begin_batch_reduce_to(SUM)", "the devices of the result: found", "on every device of the variable"}},
    {"deadlocks",
     "EveryReplicaRunsOnceAndKnowsItself",
     {"run(): ended with an error: deadlock", "worker 0 waits for a replica that never comes"}},
    {"drops_the_last_batch",
     "EveryElementOfADatasetComesOnce",
     {"experimental_distribute_dataset() of Dataset::range(22).batch(8)",
      "came 0 times: rows [16, 17, 18, 19, 20, 21]\n", "gives every row to one replica", "input_workers()"}},
    {"ignores_on_read_aggregation",
     "VariablesAggregate",
     {kChanged + "ON_READ, aggregation SUM, at first 0): read() after it: found [4], must be [12]",
      "adds the values of all replicas when the variable is read"}},
    {"says_another_number_of_replicas",
     "EveryReplicaRunsOnceAndKnowsItself",
     {"num_replicas_in_sync(): the strategy's: found [3], must be [2]"}},
    {"throws_in_run",
     "TrainingDescends",
     {"run() in step 1 of 12", "ended with an error: replicas of unequal devices"}},
    {"reverses_results",
     "EveryReplicaRunsOnceAndKnowsItself",
     {"experimental_local_results() of what run() returned",
      "  replica 0: found [1], must be [0]\n  replica 1: found [0], must be [1]\n", "in the order of the replicas"}},
    {"gathers_in_reverse",
     "ReductionsAndGathersAreExact",
     {"gather(axis 0)" + kReduced + "[8, 8, 8, 4, 4, 4], must be [4, 4, 4, 8, 8, 8]", "in the order of their ids"}},
    {"runs_replica_0_alone",
     "EveryReplicaRunsOnceAndKnowsItself",
     {"run(): the ids of the replicas that the function was called for: found [0], must be [0, 1]"}},
    {"runs_replica_0_alone",
     "MergeCallsMeetAndASkippedOneIsAnError",
     {"merge_call() three times in each replica", "lets all replicas of a worker meet"}},
    {"swallows_exceptions",
     "AnExceptionReachesTheCaller",
     {"run() in which replica 1 throws", "threw nothing, must throw the replica's exception",
      "rethrows the first exception of a replica"}},
    {"remembers_earlier_runs",
     "RandomCallsEndAlikeInEveryWorld",
     {"of random_calls(seed 7, 30 calls): found [", "as in world ", "in every run and under every schedule"}},
    {"remembers_earlier_runs",
     "RandomCallsDoNotDependOnTheSchedule",
     {"of random_calls(seed 1, 6 calls): found [", "as in the run without a schedule seed", "(schedule seed 1)"},
     kAtScale},
    {"remembers_earlier_runs",
     "TrainingResumesFromItsCheckpointAfterEveryCall",
     {"3 steps of training with a checkpoint after each, and worker 0 lost before call ", " as in the undisturbed run",
      "goes on from the last checkpoint, with every step done exactly once"}},
    {"swallows_exceptions",
     "ExceptionsReachTheCallerFromEveryPoint",
     {"random_calls(seed 1, 2 calls) with an exception at point 0 of its functions: the exception of the function did "
      "not reach the caller",
      "TANDEM_FAILURE_SEED=1 TANDEM_FAILURE_SEEDS=1"}},
    {"rewords_losses",
     "LostWorkersEndTheRunAtEveryCall",
     {"with /job:worker/task:0 lost before call ", "worker 0 got another error: the strategy has lost its worker",
      "lets no failure hang the run"}},
    {"asks_the_clock",
     "SlowDevicesChangeNoValue",
     {"random_calls(seed 1, 2 calls) with ", " slow", ": worker 0 saw [", " as in the undisturbed run"}},
    {"meets_in_another_order",
     "VariablesAggregate",
     {"assign_add(", "all workers of a group must make the same calls in the same order", "in 2 workers"},
     kTwoWorkers},
    {"counts_own_replicas",
     "EveryReplicaRunsOnceAndKnowsItself",
     {"num_replicas_in_sync(): the strategy's: found [1], must be [2]", "counts the replicas of all workers",
      "seen by worker 1"},
     kTwoWorkers},
    {"forgets_a_micro_batch",
     "LearnsWhatOneDeviceLearns",
     {"the losses from step 0 on: found [", "], those of one device", "computes the whole model on the whole batch"},
     "_pipeline2_sim"},
    {"keeps_no_activations",
     "SayWhatADeviceKeeps",
     {"the activations that a device keeps, by shares(): found none", "says in shares() which layers a device has"},
     "_tensor2_sim"},
    {"refuses_every_model",
     "DivideAmongSomeDevices",
     {"meshes on which a model is divided: found none: division.yaml:", "today is a holiday",
      "divides a small GPT among some numbers of devices"},
     kAtScale},
};

// What the program with the broken strategies prints, and that it fails.
std::string output_for(const Fault& fault) {
  const std::string command = std::string(TANDEM_BROKEN_STRATEGIES) + " --gtest_brief=1 --gtest_color=no" +
                              " --gtest_filter='*." + fault.test + "/" + fault.strategy + fault.tested + "' 2>&1";
  FILE* const program = popen(command.c_str(), "r");
  if (program == nullptr) return "cannot start " + command;
  std::string output;
  for (int c = std::fgetc(program); c != EOF; c = std::fgetc(program)) output.push_back(static_cast<char>(c));
  EXPECT_NE(pclose(program), 0) << "the kit did not find the fault";
  return output;
}

class KitMessages : public testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    for (const World& world : built_worlds()) {
      if (world.name == "sim_fluid") return;
    }
    GTEST_SKIP() << "the sim engine was not built";
  }
};

TEST_P(KitMessages, SayWhatIsWrongInTheStrategysTerms) {
  const std::string output = output_for(GetParam());
  for (const std::string& part : GetParam().parts) EXPECT_THAT(output, HasSubstr(part));
  EXPECT_THAT(output, HasSubstr("\nA correct strategy "));
  EXPECT_THAT(output, HasSubstr("\nTested: strategy '" + GetParam().strategy + "' with "));
  for (const std::string assertion : {"Which is:", "Expected equality", "Value of:", "path.back()", "C++ exception"}) {
    EXPECT_THAT(output, Not(HasSubstr(assertion)));
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, KitMessages, testing::ValuesIn(kFaults),
                         [](const auto& fault) { return fault.param.strategy + "_in_" + fault.param.test; });

}  // namespace
}  // namespace tandem
