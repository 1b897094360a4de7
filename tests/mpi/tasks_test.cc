// Tasks that are started one by one, each with its TF_CONFIG and no launcher, as TensorFlow's are.
#include "tests/mpi/tasks_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Tasks, TwoAndThreeWorkersLearnWhatOneProcessDoes) {
  for (const int count : {2, 3}) {
    start_workers(free_addresses(count));
    const Ended first = end_of("0");
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const nlohmann::json report = nlohmann::json::parse(first.out);
    EXPECT_EQ(report["workers"], count);
    EXPECT_EQ(report["settings"]["connections"], "TCP");
    const nlohmann::json alone = in_one_process(kDigits, std::to_string(count));
    for (std::size_t step = 0; step < alone["loss"].size(); ++step) {
      EXPECT_NEAR(report["loss"].at(step).get<double>(), alone["loss"][step].get<double>(), 1e-5) << step;
    }
    for (int other = 1; other < count; ++other) {
      const Ended ended = end_of(std::to_string(other));
      EXPECT_EQ(ended.exit_code, 0) << ended.err;
      EXPECT_EQ(ended.out, "") << "the first task reports";
    }
  }
}

TEST_F(Tasks, AChiefAndAServerAreWhatTfConfigSays) {
  const Addresses at = free_addresses(3);
  const nlohmann::json cluster = {{"chief", {at[0]}}, {"worker", {at[1]}}, {"ps", {at[2]}}};
  std::ifstream in(kServers);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string scenario = (folder_ / "servers.yaml").string();
  std::ofstream(scenario) << text.substr(0, text.find("expect:"));  // what more steps would reach
  start_run("server", config(cluster, "ps", 0), scenario);
  start_run("worker", config(cluster, "worker", 0), scenario);
  start_run("chief", config(cluster, "chief", 0), scenario);
  const Ended chief = end_of("chief");
  ASSERT_EQ(chief.exit_code, 0) << chief.err;
  EXPECT_EQ(nlohmann::json::parse(chief.out)["workers"], 2);
  EXPECT_EQ(nlohmann::json::parse(chief.out)["loss"].size(), 12U);
  for (const char* other : {"server", "worker"}) EXPECT_EQ(end_of(other).exit_code, 0);
}

// docs/examples/tf_config.cc
TEST_F(Tasks, AProgramTakesItsTaskFromTfConfig) {
  const Addresses at = free_addresses(3);
  const nlohmann::json cluster = {{"worker", {at[0], at[1]}}, {"ps", {at[2]}}};
  start("ps", config(cluster, "ps", 0), {TANDEM_TF_CONFIG_PROGRAM});
  start("0", config(cluster, "worker", 0), {TANDEM_TF_CONFIG_PROGRAM});
  start("1", config(cluster, "worker", 1), {TANDEM_TF_CONFIG_PROGRAM});
  for (const char* worker : {"0", "1"}) {
    const Ended ended = end_of(worker);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    EXPECT_EQ(ended.out, std::string("worker ") + worker + " of 3 tasks: weight 3.0\n");
  }
  EXPECT_EQ(end_of("ps").exit_code, 0);
}

TEST_F(Tasks, ATaskThatIsKilledEndsTheOthersWithItsName) {
  const Addresses at = free_addresses(3);
  start_workers(at, "1000000");
  std::this_thread::sleep_for(std::chrono::seconds(2));  // wherever it is by then
  signal("1", SIGKILL);
  for (const char* other : {"0", "2"}) {
    const Ended ended = end_of(other);
    EXPECT_EQ(ended.exit_code, 5);
    EXPECT_THAT(ended.err, HasSubstr("tandem: worker 1 at " + at[1] + " has ended before"));
  }
}

TEST_F(Tasks, ASignalToOneTaskEndsAllOfThem) {
  const Addresses at = free_addresses(2);
  start("0", config(workers(at), "worker", 0),
        {TANDEM_BINARY, "run", kDigits, "--engine", "mpi", "--steps", "1000000", "-q", "--trace", "trace.json"});
  start("1", config(workers(at), "worker", 1),
        {TANDEM_BINARY, "run", kDigits, "--engine", "mpi", "--steps", "1000000", "-q", "--trace", "trace.json"});
  std::this_thread::sleep_for(std::chrono::seconds(3));
  signal("1", SIGTERM);
  for (const char* task : {"0", "1"}) {
    const Ended ended = end_of(task);
    EXPECT_EQ(ended.exit_code, 130) << ended.err;
    EXPECT_THAT(ended.err, testing::StartsWith("tandem: worker 1 at " + at[1] + " was interrupted (SIGTERM)"));
  }
}

TEST_F(Tasks, AMissingTaskIsNamedAndMayComeLate) {
  const Addresses at = free_addresses(2);
  start_run("late", config(workers(at), "worker", 1));
  wait_for("late", "tandem: worker 1 at " + at[1] + " waits for worker 0 at " + at[0] + " (Connection refused)\n");
  start_run("0", config(workers(at), "worker", 0));
  for (const char* task : {"0", "late"}) EXPECT_EQ(end_of(task).exit_code, 0);
  join_s_ = "1";
  start_run("alone", config(workers(at), "worker", 0));
  const Ended ended = end_of("alone");
  EXPECT_EQ(ended.exit_code, 5);
  EXPECT_EQ(ended.err,
            "tandem: worker 0 at " + at[0] + " has waited 1 s for worker 1 at " + at[1] +
                "; start each task of the cluster, with its own index in TF_CONFIG, or correct its address\n");
}

TEST_F(Tasks, ATaskThatEndsBeforeAllAreThereMayBeStartedAgain) {
  const Addresses at = free_addresses(3);
  start_run("0", config(workers(at), "worker", 0));
  start_run("first", config(workers(at), "worker", 1));
  wait_for("first", "waits for worker 2 at " + at[2] + "\n");
  signal("first", SIGKILL);
  end_of("first");
  start_run("1", config(workers(at), "worker", 1));
  start_run("2", config(workers(at), "worker", 2));
  for (const char* task : {"0", "1", "2"}) {
    const Ended ended = end_of(task);
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
  }
}

TEST_F(Tasks, AnotherClusterIsRefusedWithBoth) {
  const Addresses at = free_addresses(3);
  start_run("0", config(workers({at[0], at[1]}), "worker", 0));
  start_run("1", config(workers({at[0], at[2]}), "worker", 1));
  for (const char* task : {"0", "1"}) {
    const Ended ended = end_of(task);
    EXPECT_EQ(ended.exit_code, 5);
    EXPECT_EQ(ended.err, "tandem: worker 0 at " + at[0] +
                             " and a process that connects to it as worker 1 have different clusters in TF_CONFIG: "
                             "worker 0 " +
                             at[0] + ", worker 1 " + at[1] + " here, and there worker 0 " + at[0] + ", worker 1 " +
                             at[2] + "; all tasks of a job have the same\n");
  }
}

TEST_F(Tasks, OneIndexTwiceIsRefused) {
  const Addresses at = free_addresses(2);
  start_run("0", config(workers(at), "worker", 0));
  wait_for("0", "waits for worker 1");
  start_run("twice", config(workers(at), "worker", 0));
  const Ended twice = end_of("twice");
  EXPECT_EQ(twice.exit_code, 4);
  EXPECT_THAT(twice.err, AllOf(testing::StartsWith("tandem: worker 0 cannot listen at its address " + at[0]),
                               HasSubstr("another process that is worker 0")));
  start_run("1", config(workers(at), "worker", 1));
  for (const char* task : {"0", "1"}) EXPECT_EQ(end_of(task).exit_code, 0);
}

TEST_F(Tasks, APortThatIsTakenIsNamed) {
  const Listener other;
  start_run("0", config(workers({other.address(), free_addresses(1)[0]}), "worker", 0));
  const Ended ended = end_of("0");
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_THAT(ended.err, HasSubstr("worker 0 cannot listen at its address " + other.address() + ": the port is taken"));
}

TEST_F(Tasks, AddressesThatAreNoneOfThisMachineAreNamed) {
  const std::string here = free_addresses(1)[0];
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"192.0.2.1:4000",
       "worker 1 cannot listen at its address 192.0.2.1:4000: 192.0.2.1 is no address of this machine"},
      {"no-such-host.invalid:4000",
       "worker 1 cannot listen at its address no-such-host.invalid:4000: its host is not known here"},
      {"127.0.0.1", "the address of worker 1 is '127.0.0.1', must be host:port"},
      {"127.0.0.1:0", "the address of worker 1 is '127.0.0.1:0', must be host:port"}};
  for (const auto& [address, message] : cases) {
    start_run("1", config(workers({here, address}), "worker", 1));
    const Ended ended = end_of("1");
    EXPECT_EQ(ended.exit_code, 4) << address;
    EXPECT_THAT(ended.err, HasSubstr(message));
  }
}

// Scanners and browsers are no reason to end.
TEST_F(Tasks, AStrangerIsIgnored) {
  const Addresses at = free_addresses(2);
  start_run("0", config(workers(at), "worker", 0));
  wait_for("0", "waits for worker 1");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(at[0].substr(at[0].rfind(':') + 1))));
  const int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string text = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(write(stranger, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  start_run("1", config(workers(at), "worker", 1));
  for (const char* task : {"0", "1"}) EXPECT_EQ(end_of(task).exit_code, 0);
  close(stranger);
}

TEST_F(Tasks, ScenariosThatDifferAreRefused) {
  const Addresses at = free_addresses(2);
  start_run("0", config(workers(at), "worker", 0));
  start_run("1", config(workers(at), "worker", 1), kDigits, "13");
  EXPECT_EQ(end_of("1").exit_code, 5);
  EXPECT_THAT(end_of("0").err, HasSubstr("worker 1 at " + at[1] + " has another number of steps than worker 0"));
}

// It is no task that the others wait for, and waits for none.
TEST_F(Tasks, AnEvaluatorRunsByItself) {
  const Addresses at = free_addresses(3);
  nlohmann::json cluster = workers({at[0], at[1]});
  cluster["evaluator"] = {at[2]};
  start_run("evaluator", config(cluster, "evaluator", 0));
  EXPECT_EQ(end_of("evaluator").exit_code, 0);
  for (int i = 0; i < 2; ++i) start_run(std::to_string(i), config(cluster, "worker", i));
  for (const char* task : {"0", "1"}) EXPECT_EQ(end_of(task).exit_code, 0);
}

// Other engines run all tasks in each process, which has one TF_CONFIG: that of the run, or refused.
TEST_F(Tasks, OneProcessOfSeveralWorkersChecksTheCluster) {
  const nlohmann::json two = workers({"a:1", "b:1"});
  const std::vector<std::string> command = {TANDEM_BINARY, "run", kDigits, "--steps", "12", "-q"};
  start("same", config(two, "worker", 1), command);
  const Ended same = end_of("same");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  start("other", config(workers({"a:1", "b:1", "c:1"}), "worker", 1), command);
  const Ended other = end_of("other");
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err,
              HasSubstr("TF_CONFIG describes the tasks worker 0, worker 1, worker 2, and the run has worker 0, "
                        "worker 1; give the run those tasks, or unset TF_CONFIG"));
}

}  // namespace
}  // namespace tandem
