// The memory that programs take: on emulated GPUs what the simulator says of them, whatever is late.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>

#include "engine/engine.h"
#include "scenarios/job/job.h"
#include "scenarios/run/parallel_training.h"
#include "scenarios/run/training.h"
#include "strategies/strategies.h"
#include "tests/cuda_emulation/emulation.h"

namespace tandem {
namespace {

using Peaks = std::map<std::string, std::int64_t>;  // by device

// The example at sizes that the emulation computes in seconds. Where it names this machine, it is simulated on another.
Scenario small_example(const std::string& name) {
  const std::string file = std::string(TANDEM_SOURCE_DIR) + "/scenarios/examples/" + name + ".yaml";
  std::stringstream stream;
  stream << std::ifstream(file).rdbuf();
  std::string text = stream.str();
  const bool has_two_workers = text.find("workers: 2,") != std::string::npos;
  for (const auto& [part, other] : std::initializer_list<std::pair<const char*, const char*>>{
           {"4096", "48"},
           {"512", "64"},
           {"batch: [0-9]+", "batch: 32"},
           {"steps: [0-9]+\nwarmup", "steps: 5\nwarmup"},
           {"warmup_steps: [0-9]+", "warmup_steps: 1"},
           {"type: cpu", "type: gpu"},
           {"topology: this machine",
            has_two_workers ? "topology: {cluster: {node: dgx-a100, workers: 2}}" : "topology: dgx-a100"},
           {"model: bert_large",
            "model: bert_large\n  sizes: {hidden: 32, heads: 4, layers: 3, vocabulary: 60, tokens: 16, predictions: "
            "4}"},
           {"sizes: .hidden: 3072, heads: 32, layers: 30.",
            "sizes: {hidden: 64, heads: 8, layers: 6, vocabulary: 64, tokens: 16}"},
           {"expect:\n[^]*", ""}}) {
    text = std::regex_replace(text, std::regex(part), other);
  }
  return parse_scenario(text, file);
}

// Both engines carry values where they can, since what is learned takes memory at the end.
Peaks peaks_of(Scenario scenario, const std::string& engine) {
  scenario.engine = {.name = engine, .values = {}, .collectives = {}};
  EngineOptions options;
  const Job job = job_of(scenario);
  options.workers = job.tasks;
  if (engine != "cuda") {
    options.topology = scenario.topology;
    if (!std::holds_alternative<LayersSettings>(scenario.workload.kind)) options.values = ValueMode::real;
  }
  Peaks peaks;
  std::mutex mutex;
  open_engine(engine, std::move(options))->run([&](Worker& worker) {
    TrainingResult result;
    if (job.divides_model) {
      train_parallel(worker, job, {}, result.report);
    } else {
      train(worker, job, {}, result);
    }
    const std::lock_guard lock(mutex);
    for (const Device* device : worker.devices()) peaks[device->id().text()] = device->memory_peak_bytes();
  });
  return peaks;
}

class ExampleMemory : public testing::TestWithParam<std::string> {};

TEST_P(ExampleMemory, IsOnGpusWhatTheSimulatorSays) {
  const Scenario scenario = small_example(GetParam());
  const Peaks simulated = peaks_of(scenario, "sim");
  ASSERT_FALSE(simulated.empty());
  for (const auto& [device, bytes] : simulated) EXPECT_GT(bytes, 0) << device;
  for (const std::uint64_t seed : {4, 5}) {
    emulation::start({.gpus = 4, .delay_seed = seed});
    EXPECT_EQ(peaks_of(scenario, "cuda"), simulated);
  }
  emulation::start({});
}

std::string name_of_example(const testing::TestParamInfo<std::string>& info) {
  return std::regex_replace(info.param, std::regex("-"), "_");
}

// Not those of parameter servers, whose workers come in any order; nor ResNet-50, which takes minutes here.
INSTANTIATE_TEST_SUITE_P(Examples, ExampleMemory,
                         testing::Values("bert-large-fully-sharded", "bert-large-hgx-h100", "digits", "digits-gpu",
                                         "digits-multi-worker", "digits-sim", "fully-sharded", "gpt-mesh",
                                         "layers-small", "mesh", "pipeline-parallel", "tensor-parallel"),
                         name_of_example);

}  // namespace
}  // namespace tandem
