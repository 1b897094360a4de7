#include "tests/address_limit.h"
#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class ImportCommand : public CommandLine {
 protected:
  static std::string file(const std::string& name) { return std::string(TANDEM_SOURCE_DIR) + "/docs/examples/" + name; }
};

TEST_F(ImportCommand, WritesAScenarioAndTheTableOfItsLayers) {
  const Outcome outcome =
      tandem({"import", file("config.json"), "-o", "small.yaml", "--sequence-length", "256", "--batch", "8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("read a Hugging Face configuration\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nparameters: 122,962,944\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nassumed: machine hgx-h100 (--topology)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nwrote small.yaml and small.model.yaml\n"));
  EXPECT_THAT(read("small.model.yaml"), HasSubstr("\nparameters: 122962944\n"));
  const Outcome run = tandem({"run", "small.yaml", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["replicas"], 8);
}

TEST_F(ImportCommand, RunsAConfigurationAsTheScenarioThatItBecomes) {
  EXPECT_EQ(tandem({"import", file("config.json"), "-o", "small.yaml"}).exit_code, 0);
  const Outcome scenario = tandem({"run", "small.yaml", "--json"});
  const Outcome direct = tandem({"run", file("config.json"), "--json"});
  EXPECT_EQ(direct.exit_code, 0) << direct.err;
  EXPECT_THAT(direct.err, HasSubstr("tandem: assumed: sequences of 4096 tokens (--sequence-length)\n"));
  EXPECT_EQ(direct.json()["step_time_ns"], scenario.json()["step_time_ns"]);
}

TEST_F(ImportCommand, PrintsAScenarioThatNamesTheFile) {
  write("config.json", read(file("config.json")));
  const Outcome outcome = tandem({"import", "config.json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\n  model: \"config.json\"\n"));
  write("scenario.yaml", outcome.out);
  EXPECT_EQ(tandem({"run", "scenario.yaml"}).exit_code, 0);
}

constexpr const char* kLlama70b = R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
    "vocab_size": 128256, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "tie_word_embeddings": false})";

TEST_F(ImportCommand, TakesMachinesUntilTheModelFits) {
  write("config.json", kLlama70b);
  const Outcome outcome = tandem({"import", "config.json", "-o", "llama.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nparameters: 70,553,706,496\n"));
  EXPECT_THAT(outcome.out, HasSubstr("machines, the fewest that it fits (--workers)\n"));
  EXPECT_THAT(read("llama.yaml"), HasSubstr("activation_checkpointing: true"));
}

// A strategy of one machine takes no more, and the scenario is written with a warning.
TEST_F(ImportCommand, TakesOneMachineForStrategiesOfOne) {
  write("config.json", kLlama70b);
  const Outcome outcome = tandem({"import", "config.json", "--strategy", "mirrored", "-o", "llama.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("`tandem run` refuses that"));
  EXPECT_THAT(read("llama.yaml"), HasSubstr("topology: \"hgx-h100\""));
}

// A stated number of machines leaves the other choices open.
TEST_F(ImportCommand, ComputesActivationsAgainForStatedMachines) {
  write("config.json", kLlama70b);
  const Outcome alone = tandem({"import", "config.json", "-o", "alone.yaml"});
  const std::string chosen = read("alone.yaml");
  const std::size_t at = chosen.find("workers: ") + 9;
  const std::string workers = chosen.substr(at, chosen.find_first_not_of("0123456789", at) - at);
  const Outcome stated = tandem({"import", "config.json", "--workers", workers, "-o", "stated.yaml"});
  EXPECT_EQ(stated.exit_code, 0) << stated.err;
  EXPECT_EQ(stated.err, "") << "it fits";
  // What was assumed comes last, and differs.
  const auto job_of = [](const std::string& scenario) {
    const std::size_t begin = scenario.find("batch:");
    return scenario.substr(begin, scenario.find("\nassumed:") - begin);
  };
  EXPECT_EQ(job_of(read("stated.yaml")), job_of(chosen));
  EXPECT_THAT(stated.out, HasSubstr("\nassumed: activations are computed again in the backward pass, else they do not "
                                    "fit (--recompute)\n"));
}

TEST_F(ImportCommand, WarnsOfWhatRunRefusesForItsMemory) {
  write("config.json", kLlama70b);
  const Outcome outcome = tandem({"import", "config.json", "--workers", "1", "-o", "llama.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("^warning: config.json: a device needs [0-9.]+ GB of 80.00 GB: "));
  EXPECT_THAT(outcome.err, HasSubstr("; `tandem run` refuses that: give more machines (--workers), "));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("a device needs")));
  const Outcome to_stdout = tandem({"import", "config.json", "--workers", "1"});
  EXPECT_THAT(to_stdout.err, HasSubstr("\nwarning: config.json: a device needs"));
  const Outcome run = tandem({"run", "llama.yaml"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("workload: a device needs"));
  const Outcome fits = tandem({"import", file("config.json"), "-o", "small.yaml"});
  EXPECT_THAT(fits.out, HasSubstr("\na device needs"));
  EXPECT_EQ(fits.err, "");
}

TEST_F(ImportCommand, ListsFlagsThatAreNotModelled) {
  const Outcome outcome = tandem({"import", file("train.sh"), "-o", "train.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nnot modelled: --clip-grad 1.0: "));
  EXPECT_EQ(tandem({"run", "train.yaml", "--json"}).exit_code, 0);
}

TEST_F(ImportCommand, ATraceIsAnsweredForItsOwnMachineFirst) {
  const Outcome outcome = tandem({"import", file("trace.json"), "-o", "trace.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rank 0: 4 kernels and 0 memory operations on 2 streams, 3.300000 ms\n"));
  EXPECT_THAT(outcome.out, HasSubstr("rank 0: 2 all_reduce, 200000000 bytes\n"));
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("on the machine of the trace: simulated [0-9.]+ ms, recorded 3.8240 ms"));
  EXPECT_EQ(tandem({"run", "trace.yaml", "--json"}).exit_code, 0);
  const Outcome other = tandem({"import", file("trace.json"), "--topology", "dgx1-v100", "-o", "other.yaml"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_THAT(other.out, HasSubstr("on the machine of the trace: simulated"));
  EXPECT_THAT(other.out, HasSubstr("on dgx1-v100: simulated"));
  EXPECT_EQ(tandem({"import", file("trace.json"), file("config.json")}).exit_code, 3);
  EXPECT_EQ(tandem({"run", "trace.yaml", "--replicas", "4"}).exit_code, 3);
}

TEST_F(ImportCommand, ATraceOfMoreRanksThanThereIsMemoryForIsNotSimulated) {
  if (!kHasAddressLimits) GTEST_SKIP() << "sanitizers need all addresses";
  const AddressLimit limit(rlim_t{3} << 30);
  const Outcome outcome =
      tandem({"import", file("trace.json"), "--devices", "8", "--workers", "1000", "-o", "large.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("^warning: large.yaml:[0-9]+:[0-9]+: devices: 8000 devices, 8000 of "
                                                  "them simulated, need about .* address space; .*; not simulated\n$"));
  EXPECT_THAT(outcome.out, HasSubstr("wrote large.yaml\n"));
  EXPECT_EQ(tandem({"run", "large.yaml"}).exit_code, 5);
}

TEST_F(ImportCommand, RefusesOptionsThatAFileMakesNothingOf) {
  const auto refusal = [&](const std::string& name, std::vector<std::string> options) {
    options.insert(options.begin(), {"import", file(name), "-o", "x.yaml"});
    const Outcome outcome = tandem(options);
    EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
    EXPECT_THAT(outcome.err, testing::StartsWith(file(name) + ":1:1: "));
    return outcome.err.substr(std::min(outcome.err.size(), file(name).size() + 6));
  };
  for (const char* option : {"--batch", "--dtype", "--optimizer", "--recompute", "--strategy"}) {
    std::vector<std::string> words{option};
    if (words[0] != "--recompute") {
      words.emplace_back(words[0] == "--batch"      ? "8"
                         : words[0] == "--dtype"    ? "f16"
                         : words[0] == "--strategy" ? "mirrored"
                                                    : "adam");
    }
    const bool is_of_torchtitan = words[0] == "--batch" || words[0] == "--recompute";
    EXPECT_EQ(refusal("trace.json", words),
              std::string("is a trace, and ") + option + " is for a Hugging Face configuration" +
                  (is_of_torchtitan ? ", arguments of Megatron-LM or a configuration of torchtitan only\n"
                                    : " or arguments of Megatron-LM only\n"));
  }
  EXPECT_EQ(refusal("trace.json", {"--sequence-length", "8"}),
            "is a trace, and --sequence-length is for a Hugging Face configuration only\n");
  EXPECT_EQ(refusal("train.sh", {"--sequence-length", "8"}),
            "is arguments of Megatron-LM, and --sequence-length is for a Hugging Face configuration only\n");
  EXPECT_THAT(refusal("trace.json", {"--devices", "3"}),
              testing::StartsWith("is of a job of 8 ranks, which do not fill machines of 3 GPUs (--devices)"));
  EXPECT_THAT(refusal("trace.json", {"--workers", "3"}),
              testing::StartsWith("is of a job of 8 ranks, which cannot be divided among 3 machines (--workers)"));
  EXPECT_THAT(refusal("trace.json", {"--devices", "1", "--workers", "1"}),
              HasSubstr("cannot be run on 1 devices: it was recorded on 8, in replicas of 1"));
  EXPECT_FALSE(exists("x.yaml"));
}

TEST_F(ImportCommand, RanksAreDividedAmongTheMachinesThatAreAskedFor) {
  const auto devices = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"import", file("trace.json"), "-q", "-o", "x.yaml"};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = tandem(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string text = read("x.yaml");
    return text.substr(text.find("topology: "));
  };
  const auto cluster = [](int workers, int each) {
    return "topology: {cluster: {node: \"hgx-h100\", workers: " + std::to_string(workers) +
           "}}\ndevices: {type: gpu, per_worker: " + std::to_string(each) + "}\nsteps: 1\n";
  };
  EXPECT_EQ(devices({}), "topology: \"hgx-h100\"\ndevices: {type: gpu, per_worker: 8}\nsteps: 1\n");
  EXPECT_EQ(devices({"--devices", "4"}), cluster(2, 4));
  EXPECT_EQ(devices({"--workers", "4"}), cluster(4, 2));
  EXPECT_EQ(devices({"--devices", "4", "--workers", "4"}), cluster(4, 4));
}

TEST_F(ImportCommand, AFileOfChakraIsRunWithThoseOfTheOtherRanks) {
  const std::string files = std::string(TANDEM_SOURCE_DIR) + "/tests/bad_input/files/chakra/";
  write("job.0.et", read(files + "good.0.et"));
  write("job.1.et", read(files + "good.1.et"));
  const Outcome outcome = tandem({"run", "job.0.et", "--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("assumed: 1 files of other ranks by their names, job.1.et to job.1.et, are read"));
  EXPECT_EQ(tandem({"import", "job.1.et", "-q", "-o", "x.yaml"}).exit_code, 0);
  EXPECT_THAT(read("x.yaml"), HasSubstr("    - \"job.0.et\"\n    - \"job.1.et\"\n"));
}

TEST_F(ImportCommand, GpuNamesThoseOfATopologyFile) {
  write("config.json", read(file("config.json")));
  write("net.yml", "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
  const Outcome untold = tandem({"import", "config.json", "--topology", "./net.yml", "-o", "x.yaml"});
  EXPECT_EQ(untold.exit_code, 3);
  EXPECT_THAT(untold.err, HasSubstr("--gpu NAME"));
  std::filesystem::create_directory(folder() / "elsewhere");
  write("elsewhere/config.json", read(file("config.json")));
  const Outcome told =
      tandem({"import", "elsewhere/config.json", "--topology", "./net.yml", "--gpu", "h100", "-o", "x.yaml"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(read("x.yaml"), HasSubstr("topology: {cluster: {node: \"./net.yml\", workers: 1, gpu: \"h100\"}}\n"));
  EXPECT_EQ(tandem({"run", "x.yaml"}).exit_code, 0);
  const Outcome named = tandem({"import", "config.json", "--topology", "dgx1-v100", "--gpu", "h100"});
  EXPECT_EQ(named.exit_code, 3);
  EXPECT_THAT(named.err, HasSubstr("--gpu is for a topology file that does not tell its GPUs, found --topology dgx1"));
  for (const char* command : {"import", "run"}) {
    const Outcome alone = tandem({command, "config.json", "--gpu", "h100"});
    EXPECT_EQ(alone.exit_code, 2);
    EXPECT_THAT(alone.err, HasSubstr("--gpu requires --topology"));
  }
}

TEST_F(ImportCommand, WritesJobsOfOtherPrograms) {
  write("train.sh", read(file("train.sh")));
  const Outcome outcome = tandem({"import", "train.sh", "--format", "megatron", "-o", "again.sh"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out + outcome.err, "");
  const auto step = [this](const char* job) { return tandem({"run", job, "--json"}).json()["step_time"]; };
  EXPECT_EQ(step("train.sh"), step("again.sh"));
  const Outcome shown = tandem({"import", "again.sh", "--format", "megatron"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, testing::StartsWith("#!/bin/bash\n# again as arguments of Megatron-LM, by tandem.\n"));
  const Outcome other = tandem({"import", "train.sh", "--format", "torchtitan", "-o", "again.toml"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, testing::StartsWith("train.sh:3:"));
  EXPECT_THAT(other.err, HasSubstr("the flavors of torchtitan that are known here are 8B, 70B and 405B"));
  EXPECT_EQ(tandem({"import", "train.sh", "--format", "nemo"}).exit_code, 2);
}

TEST_F(ImportCommand, RefusesWhatItDoesNotKnow) {
  write("config.json", R"({"model_type": "rwkv"})");
  for (const char* command : {"import", "run"}) {
    const Outcome outcome = tandem({command, "config.json"});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, HasSubstr("config.json:1:16: model_type: unknown architecture 'rwkv'"));
  }
  write("words.txt", "nothing of use\n");
  const Outcome outcome = tandem({"import", "words.txt"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("words.txt:1:1: is nothing that tandem imports"));
  EXPECT_EQ(tandem({"import", "."}).exit_code, 3);
  EXPECT_EQ(tandem({"import", "words.txt", "--batch", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace tandem
