// What a scenario needs on a device, against formulas of the literature and sums by hand.
#include "scenarios/estimates/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/estimates/step_memory.h"
#include "scenarios/workloads/activations.h"
#include "tests/scenarios/gpt_layers.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

std::optional<MemoryNeed> memory_need(const Scenario& scenario) {
  return tandem::memory_need(job_of(scenario));
}

using testing::HasSubstr;

TEST(DeviceMemory, OfAMeshHasAPartOfTheExpertsAndOfTheTokens) {
  const auto need = [](const std::string& mesh, int devices) {
    return *memory_need(read_scenario(
        "workload: {kind: layers, model: files/experts.yaml, batch: 4, dtype: f16}\nstrategy: {name: mesh, " + mesh +
        "}\nengine: {name: sim}\ntopology: dgx-a100\ndevices: {per_worker: " + std::to_string(devices) +
        "}\nsteps: 1\n"));
  };
  constexpr std::int64_t kExperts = 2 * 8 * 2 * 64 * 128;
  EXPECT_EQ(need("data: 4", 4).parameters - need("data: 4, expert: 4", 4).parameters, 2 * kExperts * 3 / 4);
  EXPECT_EQ(need("data: 2", 2).parameters, need("data: 2, context: 2", 4).parameters);
  EXPECT_EQ(need("data: 2", 2).activations, 2 * need("data: 2, context: 2", 4).activations);
  EXPECT_EQ(need("data: 2", 2).input, 2 * need("data: 2, context: 2", 4).input);
  for (const char* exchange : {"ring", "all_to_all"}) {
    const std::string mesh = std::string("data: 2, context: 2, context_exchange: ") + exchange;
    EXPECT_EQ(need("data: 2", 2).activations, 2 * need(mesh, 4).activations) << exchange;
  }
}

// Bytes of a parameter, of Megatron-LM's docs/distrib_optimizer.md: 6 + 12 / d where gradients are in
// f32 and weights in bf16, and 8 + 8 / d where everything is in f32.
TEST(DeviceMemory, OfADistributedOptimizerIsThatOfThePublishedTable) {
  const auto bytes_of = [](const std::string& types) {
    const MemoryNeed need = *memory_need(read_scenario(
        "workload: {kind: layers, model: files/experts.yaml, batch: 4, optimizer: adam, " + types +
        "}\nstrategy: {name: mesh, data: 4, distributed_optimizer: true}\nengine: {name: sim}\ntopology: dgx-a100\n"
        "devices: {per_worker: 4}\nsteps: 1\n"));
    return need.parameters + need.gradients + need.optimizer;
  };
  constexpr std::int64_t kParameters = 295'552;
  EXPECT_EQ(bytes_of("dtype: bf16, parameter_dtype: f32"), kParameters * (6 + 12 / 4));
  EXPECT_EQ(bytes_of("dtype: f32"), kParameters * (8 + 8 / 4));
}

// The devices along tensor are among those with the same experts, and divide what these need, too.
TEST(DeviceMemory, OfWholeExpertsIsDividedByAllDevicesThatHaveThem) {
  const auto bytes_of = [](const std::string& mesh) {
    const MemoryNeed need = *memory_need(read_scenario(
        "workload: {kind: layers, model: files/experts.yaml, batch: 4, optimizer: adam, dtype: bf16, parameter_dtype: "
        "f32, sequence_parallel: true}\nstrategy: {name: mesh, data: 2, tensor: 2, expert_tensor: 1, " +
        mesh + "}\nengine: {name: sim}\ntopology: dgx-a100\ndevices: {per_worker: 4}\nsteps: 1\n"));
    return need.parameters + need.gradients + need.optimizer;
  };
  constexpr std::int64_t kExperts = 2 * 8 * 2 * 64 * 128;
  const std::string state = "distributed_optimizer: true", pieces = "shard_parameters: true";
  // All experts on each of four devices, or half of them on each of two pairs.
  EXPECT_EQ(bytes_of(state) - bytes_of("expert: 2, " + state), kExperts * (6 + 12 / 4) - kExperts / 2 * (6 + 12 / 2));
  EXPECT_EQ(bytes_of(pieces), bytes_of("expert: 2, " + pieces)) << "a quarter of all experts";
}

// What a device keeps for experts is the same, whether all devices along tensor divide each of them or some.
TEST(DeviceMemory, OfExpertsThatSomeTensorParallelDevicesDivide) {
  const auto need = [](const std::string& mesh) {
    return *memory_need(read_scenario(
        "workload: {kind: layers, model: files/experts.yaml, batch: 4, optimizer: adam, dtype: bf16, parameter_dtype: "
        "f32, sequence_parallel: true}\nstrategy: {name: mesh, data: 2, tensor: 4, " +
        mesh + "}\nengine: {name: sim}\ntopology: dgx-a100\ndevices: {per_worker: 8}\nsteps: 1\n"));
  };
  const auto bytes_of = [&](const std::string& mesh) {
    const MemoryNeed all = need("expert_tensor: 2, " + mesh);
    return all.parameters + all.gradients + all.optimizer;
  };
  constexpr std::int64_t kExperts = 2 * 8 * 2 * 64 * 128;
  const std::string state = "distributed_optimizer: true", pieces = "shard_parameters: true";
  // Half of all experts on each of eight devices, four of which have the same half, or a quarter.
  EXPECT_EQ(bytes_of(state) - bytes_of("expert: 2, " + state),
            kExperts / 2 * (6 + 12 / 4) - kExperts / 4 * (6 + 12 / 2));
  EXPECT_EQ(bytes_of(pieces), bytes_of("expert: 2, " + pieces)) << "an eighth of all experts";
  const std::int64_t kept = need("expert_tensor: 4").activations;
  EXPECT_EQ(need("expert_tensor: 2").activations, kept);
  EXPECT_EQ(need("expert_tensor: 2, expert: 4").activations, kept);
  EXPECT_EQ(need("expert_tensor: 1, expert: 8").activations, kept);
}

TEST(DeviceMemory, OfPiecesInAMeshIsThatOfFullyShardedTraining) {
  const auto need = [](const std::string& strategy) {
    return *memory_need(read_scenario(
        "workload: {kind: layers, model: llama, sizes: {layers: 4}, batch: 8, dtype: bf16, optimizer: adam, "
        "bucket_bytes: 1MB}\nstrategy: " +
        strategy + "\nengine: {name: sim}\ntopology: dgx-a100\ndevices: {per_worker: 8}\nsteps: 1\n"));
  };
  const MemoryNeed mesh = need("{name: mesh, data: 8, shard_parameters: true}");
  const MemoryNeed sharded = need("{name: fully_sharded}");
  EXPECT_EQ(mesh.parameters, sharded.parameters);
  EXPECT_EQ(mesh.gradients, sharded.gradients);
  EXPECT_EQ(mesh.optimizer, sharded.optimizer);
  EXPECT_EQ(mesh.activations, sharded.activations);
  const MemoryNeed groups = need("{name: mesh, data: 8, shard_parameters: true, replicate: 4}");
  EXPECT_EQ(groups.parameters, 4 * sharded.parameters);
  EXPECT_EQ(groups.buckets, mesh.buckets);
}

Scenario gpt(const std::string& strategy, const std::string& more = "", const std::string& workload = "") {
  return read_scenario(R"(name: gpt
workload: {kind: layers, model: gpt, sizes: {layers: 24}, batch: 64, dtype: bf16, optimizer: adam)" +
                       workload + R"(}
strategy: )" + strategy +
                       R"(
engine: {name: sim}
topology: {cluster: {node: hgx-h100, workers: 1)" +
                       more + R"(}}
devices: {per_worker: 8}
steps: 2
warmup_steps: 1
)");
}

constexpr std::int64_t kParameters = 1'652'226'048;

TEST(DeviceMemory, OfAReplicaHasTheWholeModel) {
  const MemoryNeed need = *memory_need(gpt("{name: mirrored}"));
  EXPECT_EQ(need.parameters, 2 * kParameters);
  EXPECT_EQ(need.gradients, 2 * kParameters);
  EXPECT_EQ(need.optimizer, 12 * kParameters) << "two moments and the parameters, in f32";
  EXPECT_EQ(need.input, 2 * 8 * 2 * 2048) << "two batches of 8 examples";
  EXPECT_EQ(need.available, 80'000'000'000);
}

TEST(DeviceMemory, FollowsTheOptimizerAndTheTypes) {
  EXPECT_EQ(memory_need(gpt("{name: mirrored}", "", ", parameter_dtype: f32"))->optimizer, (8 + 2) * kParameters);
  const auto optimizer = [](const std::string& name) {
    Scenario scenario = gpt("{name: mirrored}");
    std::get<LayersSettings>(scenario.workload.kind).optimizer = name == "sgd" ? Optimizer::sgd : Optimizer::momentum;
    return memory_need(scenario)->optimizer;
  };
  EXPECT_EQ(optimizer("sgd"), 0);
  EXPECT_EQ(optimizer("momentum"), 8 * kParameters);
}

TEST(DeviceMemory, HasMomentsInTheirTypes) {
  const auto optimizer = [](const std::string& moments, const std::string& strategy = "{name: mirrored}",
                            const std::string& more = "") {
    return memory_need(gpt(strategy, "", ", precision: {moments: " + moments + "}" + more))->optimizer;
  };
  EXPECT_EQ(optimizer("f32"), 12 * kParameters) << "with a copy of the parameters in f32";
  EXPECT_EQ(optimizer("bf16"), (2 + 2 + 4) * kParameters);
  EXPECT_EQ(optimizer("{first: fp8, second: f16}"), (1 + 2 + 4) * kParameters);
  EXPECT_EQ(optimizer("{second: bf16}"), (4 + 2 + 4) * kParameters);
  EXPECT_EQ(optimizer("bf16", "{name: mirrored}", ", parameter_dtype: f64"), (2 + 2 + 2) * kParameters);
  EXPECT_EQ(optimizer("bf16", "{name: fully_sharded}"), 8 * kParameters / 8);
  EXPECT_EQ(optimizer("bf16", "{name: mesh, data: 8, distributed_optimizer: true}"), 8 * kParameters / 8);
  EXPECT_EQ(optimizer("bf16", "{name: mesh, data: 8}", ", offload: {optimizer: 0.5}"), 4 * kParameters);
  Scenario momentum = gpt("{name: mirrored}", "", ", precision: {moments: bf16}");
  std::get<LayersSettings>(momentum.workload.kind).optimizer = Optimizer::momentum;
  EXPECT_EQ(memory_need(momentum)->optimizer, (2 + 4) * kParameters);
}

TEST(DeviceMemory, OfFullyShardedDevicesIsAPartOfIt) {
  const MemoryNeed need = *memory_need(gpt("{name: fully_sharded}"));
  EXPECT_EQ(need.parameters, 2 * kParameters / 8);
  EXPECT_EQ(need.optimizer, 12 * kParameters / 8);
  EXPECT_GT(need.buckets, 0);
}

// The first device keeps most: the activations of as many micro-batches as there are stages, and the embeddings.
TEST(DeviceMemory, OfAPipelineCountsTheMicroBatchesThatAreUnderWay) {
  const auto activations = [](int micro_batches) {
    const std::string mesh = "{name: mesh, pipeline: 4, data: 2, micro_batches: " + std::to_string(micro_batches) + "}";
    return memory_need(gpt(mesh, "", ", stack: {attention: flash}"))->activations;
  };
  const ActivationSettings of_one{.examples = 1, .dtype = DType::bf16, .keeps_scores = false};
  const std::vector<Layer> six_blocks = gpt_layers(6);
  const std::vector<Layer> first_stage(six_blocks.begin(), six_blocks.end() - 1);
  EXPECT_EQ(activations(32), 4 * activation_bytes(first_stage, of_one)) << "32 examples in 32 micro-batches";
  EXPECT_GT(activations(4), 7 * activations(32)) << "of 8 examples each";
}

TEST(DeviceMemory, OfGradientAccumulationIsThatOfOnePass) {
  const MemoryNeed one = *memory_need(gpt("{name: mirrored}"));
  const MemoryNeed four = *memory_need(gpt("{name: mirrored}", "", ", gradient_accumulation_steps: 4"));
  EXPECT_EQ(4 * four.activations, one.activations);
  EXPECT_EQ(four.parameters, one.parameters);
}

// FSDP2 casts what it gathers, and keeps no copy of its pieces.
TEST(DeviceMemory, OfPiecesHasNoCopyOfTheTypeThatKernelsRead) {
  const auto optimizer = [](const std::string& strategy) {
    return memory_need(gpt(strategy, "", ", parameter_dtype: f32"))->optimizer;
  };
  EXPECT_EQ(optimizer("{name: mesh, data: 8}"), (8 + 2) * kParameters);
  EXPECT_EQ(optimizer("{name: mesh, data: 8, shard_parameters: true}"), 8 * kParameters / 8);
}

// Transformer Engine keeps an unused gradient for each shape of weights: queries, keys and values are one matrix, as
// are the two that meet in a gate.
TEST(DeviceMemory, OfProductsThatAddTheirGradientsHasOneMoreOfEachShape) {
  const auto workspace = [](const std::string& accumulation) {
    return memory_need(
               read_scenario("workload: {kind: layers, model: llama, sizes: {layers: 4}, batch: 8, dtype: bf16, "
                             "stack: {attention: flash, loss: fused, accumulation: " +
                             accumulation +
                             "}}\nstrategy: {name: mesh, data: 8}\nengine: {name: sim}\ntopology: dgx-a100\n"
                             "devices: {per_worker: 8}\nsteps: 1\n"))
        ->workspace;
  };
  constexpr std::int64_t kHiddenOfLlama = 4096, kGate = 14336, kVocabulary = 128256;
  constexpr std::int64_t kShapes = kHiddenOfLlama * (4096 + 2 * 1024 + 4096 + 2 * kGate + kVocabulary) + kGate * 4096;
  EXPECT_EQ(workspace("in_products") - workspace("separate"), 2 * kShapes);
}

// The loss of PyTorch's cross_entropy: the softmax, the gradients of its logarithms and those of the logits, in f32.
// The logits' own block is free then.
TEST(DeviceMemory, OfALossThatIsNotFusedHasItsGradientsTwiceInF32) {
  const auto need = [](const std::string& loss) {
    return *memory_need(read_scenario(
        "workload: {kind: layers, model: llama, sizes: {layers: 2}, batch: 8, dtype: bf16, stack: {attention: flash, "
        "loss: " +
        loss +
        "}}\nstrategy: {name: mesh, data: 8, shard_parameters: true}\nengine: {name: sim}\n"
        "topology: dgx-a100\ndevices: {per_worker: 8}\nsteps: 1\n"));
  };
  constexpr std::int64_t kLogits = 8192LL * 128256, kInput = 8192LL * 4096;
  const MemoryNeed separate = need("separate"), fused = need("fused");
  EXPECT_EQ(separate.workspace, 2 * (4 * kLogits + 2 * kInput));
  EXPECT_EQ(separate.cached, 2 * kLogits);
  EXPECT_EQ(separate.moment, "the backward pass, head");
  EXPECT_EQ(fused.cached, 0);
  EXPECT_LT(fused.total(), separate.total() - 8 * kLogits);
}

TEST(DeviceMemory, IsThatOfTheMomentAtWhichADeviceHoldsMost) {
  for (const char* const strategy :
       {"{name: mirrored}", "{name: fully_sharded}", "{name: mesh, pipeline: 4, data: 2, micro_batches: 8}",
        "{name: mesh, pipeline: 4, data: 2, micro_batches: 8, virtual_stages: 2}",
        "{name: mesh, pipeline: 4, data: 2, micro_batches: 8, schedule: zero_bubble}",
        "{name: mesh, pipeline: 4, data: 2, micro_batches: 8, schedule: dualpipe_v}"}) {
    for (const char* const more : {"", ", stack: {attention: flash, accumulation: in_products}"}) {
      const Scenario scenario = gpt(strategy, "", more);
      const Job job = job_of(scenario);
      const MemoryNeed need = *tandem::memory_need(job);
      const MemoryOfStep step = *memory_of_step(job);
      ASSERT_EQ(step.need, need);
      const auto most = std::ranges::max_element(step.moments, {}, &StepMoment::bytes);
      EXPECT_EQ(most->activations, need.activations) << strategy << more;
      EXPECT_LE(most->workspace, need.workspace) << strategy << more;
      EXPECT_EQ(moment_text(*most, step.share), need.moment) << strategy << more;
      EXPECT_EQ(step.moments.front().action.pass, PipelineAction::Pass::forward);
    }
  }
}

// The first moment holds what the first layer keeps, and the last one no more than that.
TEST(StepMemory, RisesAndFallsWithThePasses) {
  const std::vector<Layer> layers = gpt_layers(2);
  const ActivationSettings settings{.examples = 1, .dtype = DType::bf16};
  const std::int64_t whole = activation_bytes(layers, settings);
  using Pass = PipelineAction::Pass;
  const DeviceShare share{
      .stages = {{.layers = layers, .live = 2}},
      .actions = {{Pass::forward, 0}, {Pass::forward, 1}, {Pass::backward, 0}, {Pass::backward, 1}}};
  const std::vector<StepMoment> moments = StepMemory(share, settings).moments();
  const std::size_t n = layers.size();
  ASSERT_EQ(moments.size(), 4 * n);
  EXPECT_EQ(moments[n - 1].activations, whole);
  EXPECT_EQ(moments[2 * n - 1].activations, 2 * whole);
  EXPECT_EQ(moments[2 * n].activations, 2 * whole);
  EXPECT_EQ(moments[3 * n].activations, whole);
  EXPECT_EQ(moments[4 * n - 1].activations, moments[0].activations);
  EXPECT_LT(moments[0].activations, whole);
}

// The backward pass gives back what the forward pass beside it fills: together they keep one micro-batch, and what the
// forward pass is ahead.
TEST(StepMemory, OfPassesThatTakeTurnsIsHardlyMoreThanOfOne) {
  const auto memory = [](const std::string& more) {
    const Scenario scenario = read_scenario(
        "workload: {kind: layers, model: mixtral, sizes: {layers: 16, tokens: 512}, stack: {attention: flash}, batch: "
        "32, dtype: bf16}\nstrategy: {name: mesh, data: 8, expert: 8" +
        more + "}\nengine: {name: sim}\ntopology: hgx-h100\ndevices: {per_worker: 8}\nsteps: 1\n");
    return *memory_of_step(job_of(scenario));
  };
  const MemoryOfStep apart = memory(", micro_batches: 4"), beside = memory(", micro_batches: 4, overlap_experts: true");
  EXPECT_GT(beside.need.activations, apart.need.activations);
  EXPECT_LT(beside.need.activations, 1.1 * apart.need.activations) << "a 16th more";
  EXPECT_EQ(beside.moments.size(), apart.moments.size());
  const auto at_peak = std::ranges::max_element(beside.moments, {}, &StepMoment::bytes);
  EXPECT_EQ(at_peak->activations, beside.need.activations);
  EXPECT_EQ(moment_text(*at_peak, beside.share), beside.need.moment);
  EXPECT_EQ(beside.moments.front().activations, apart.moments.front().activations);
  EXPECT_EQ(beside.moments.back().activations, apart.moments.back().activations);
}

TEST(DeviceMemory, IsRefusedWithEachPartBeforeTheRun) {
  try {
    run_scenario(gpt("{name: mirrored}", ", overrides: {gpu: {memory: 40GB}}"));
    FAIL();
  } catch (const MemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("in_memory.yaml:3:11: workload: a device needs "));
    EXPECT_THAT(error.what(), HasSubstr(" of 40.00 GB: parameters 3.304 GB, gradients 3.304 GB, optimizer 19.83 GB, "));
    EXPECT_FALSE(error.need().fits());
  }
}

TEST(DeviceMemory, IsReportedWhereItFits) {
  const Scenario scenario = gpt("{name: fully_sharded}", "", ", activation_checkpointing: true");
  const Report report = run_unscaled(scenario);
  EXPECT_EQ(report.memory, memory_need(scenario));
  EXPECT_TRUE(report.memory->fits());
}

TEST(DeviceMemory, MoreDevicesThanThereCanBeAreRefused) {
  Scenario scenario = gpt("{name: multi_worker_mirrored}");
  scenario.topology = nullptr;  // of this machine, which all workers share
  scenario.devices.workers = 4096;
  scenario.devices.per_worker = 1 << 20;
  try {
    run_scenario(scenario);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("4096 workers of 1048576 devices are more than 1073741824 devices"));
  }
}

TEST(DeviceMemory, RefusesNothingWhereADeviceHasNone) {
  MemoryNeed need{.parameters = std::int64_t{1} << 50};
  EXPECT_TRUE(need.fits());
  need.available = std::int64_t{1} << 40;
  EXPECT_FALSE(need.fits());
}

TEST(DeviceMemory, HasWhatTheScenarioSaysThatIsReserved) {
  Scenario scenario = gpt("{name: mirrored}");
  const MemoryNeed none = *memory_need(scenario);
  EXPECT_EQ(none.reserved, 0);
  scenario.devices.reserved_bytes = 1'500'000'000;
  scenario.devices.reserved_share = 0.05;
  const MemoryNeed need = *memory_need(scenario);
  EXPECT_NEAR(static_cast<double>(need.reserved), 1.5e9 + 0.05 * static_cast<double>(none.total()), 1);
  EXPECT_EQ(need.total(), none.total() + need.reserved);
  EXPECT_THAT(memory_text(need), HasSubstr(", reserved "));
  EXPECT_THAT(memory_text(none), testing::Not(HasSubstr("reserved")));
}

TEST(DeviceMemory, IsSharedByTheDevicesOfOneGpu) {
  Scenario scenario = gpt("{name: mirrored}");
  scenario.devices.per_worker = 16;
  EXPECT_EQ(memory_need(scenario)->available, 40'000'000'000);
}

}  // namespace
}  // namespace tandem
