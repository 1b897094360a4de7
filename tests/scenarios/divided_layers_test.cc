// Tables of layers on a mesh, simulated: what dividing, accumulating and computing again cost and save.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/scenarios/blocks.h"
#include "tests/scenarios/collectives_of_step.h"

namespace tandem {
namespace {

// The block is split by columns (twice, of one input) and by rows once: one sum forward, one backward.
TEST(DividedLayers, SumOnceForEachPassOfAPair) {
  EXPECT_EQ(all_reduces(run_blocks("{name: tensor_parallel}", 4, 4)), 8 * 2);
  const std::string mesh = "{name: mesh, tensor: 4, micro_batches: 2}";
  EXPECT_EQ(all_reduces(run_blocks(mesh, 4, 4)), 2 * 8 * 2);
  EXPECT_EQ(all_reduces(run_blocks(mesh, 4, 4, ", activation_checkpointing: true")), 2 * 8 * 3);
  EXPECT_EQ(all_reduces(run_blocks(mesh, 4, 4, ", overlap_tensor: false")), 2 * 8 * 2);
}

TEST(DividedLayers, ReduceGradientsOnceForAllMicroBatches) {
  const std::string one_bucket = ", bucket_bytes: 1000GB";
  EXPECT_EQ(all_reduces(run_blocks("{name: mesh, data: 4, micro_batches: 1}", 8, 4, one_bucket)), 1);
  EXPECT_EQ(all_reduces(run_blocks("{name: mesh, data: 4, micro_batches: 2}", 8, 4, one_bucket)), 1);
  EXPECT_EQ(all_reduces(run_blocks("{name: mesh, data: 4, micro_batches: 2}", 8, 4, one_bucket + ", overlap: false")),
            1);
  EXPECT_EQ(all_reduces(run_blocks("{name: mesh, data: 2, pipeline: 2, micro_batches: 2, virtual_stages: 2}", 8, 4,
                                   one_bucket)),
            2);  // one for each stage of the device
}

RunResult run_gpt(const std::string& strategy, int devices, const std::string& more = "") {
  return run_scenario(read_scenario(
      "workload: {kind: layers, model: gpt, sizes: {layers: 2, tokens: 128}, batch: 4, dtype: f16" + more +
      "}\nstrategy: " + strategy + "\nengine: {name: sim}\ntopology: dgx-a100\ndevices: {per_worker: " +
      std::to_string(devices) + "}\nsteps: 2\nwarmup_steps: 1\n"));
}

// A block gathers the inputs of two layers forward and again backward, and the gradients of two outputs backward; it
// scatters two outputs and the gradients of two inputs. The embeddings and the loss add one each.
TEST(DividedLayers, GatherAndScatterRowsInPlaceOfSums) {
  const RunResult result = run_gpt("{name: tensor_parallel}", 2, ", sequence_parallel: true");
  EXPECT_EQ(count_of(result, "all_gather"), (2 * 2 + 1) + (2 * 2 + 1) + (2 * 2 + 1));
  EXPECT_EQ(count_of(result, "reduce_scatter"), (2 * 2 + 1) + (2 * 2 + 1));
  EXPECT_EQ(all_reduces(result), 3 + 1) << "of the loss, and the gradients of norms and biases";
  const double hidden = 2304;
  EXPECT_EQ(collectives_of_step(result, "all_reduce").back().bytes, 2 * 2 * 6 * hidden)
      << "f16; two biases and norms a block";
}

// Two machines of four GPUs, where a stage's devices are on both machines, or each stage has one of them.
TEST(DividedLayers, StagesOrReplicasAreOnOneMachine) {
  const auto times_of = [](const std::string& order, const std::string& kind) {
    const RunResult result = run_scenario(
        read_scenario("workload: {kind: layers, model: llama, sizes: {layers: 2, tokens: 128}, batch: 8, dtype: f16, "
                      "overlap: false}\n"
                      "strategy: {name: mesh, data: 4, pipeline: 2, micro_batches: 2, axis_order: " +
                      order +
                      "}\nengine: {name: sim, symmetry: off}\ntopology: {cluster: {node: dgx-a100, workers: 2}}\n"
                      "devices: {per_worker: 4, workers: 2}\nsteps: 1\nwarmup_steps: 0\n"));
    Nanoseconds busy = 0;
    for (const Record& record : result.timeline.records) {
      if (record.name == kind && record.device == 0) busy += record.end_ns - record.start_ns;
    }
    return busy;
  };
  const std::string usual = "tensor_data_pipeline", nearer = "tensor_pipeline_data";
  EXPECT_GT(times_of(usual, "send"), 2 * times_of(nearer, "send"));
  EXPECT_LT(times_of(usual, "all_reduce"), times_of(nearer, "all_reduce") / 2);
}

// The embeddings of the last stage are complete with its last layer, the first to go backward.
TEST(DividedLayers, ReduceTheTiedEmbeddingsFirst) {
  const RunResult result = run_gpt("{name: mesh, data: 2, pipeline: 2, micro_batches: 2}", 4, ", bucket_bytes: 1MB");
  const Record* first = nullptr;
  for (const Record& record : result.timeline.records) {
    const bool is_one = record.kind == RecordKind::collective && record.name == "all_reduce" && record.step == 1;
    if (!is_one ||
        result.timeline.devices[static_cast<std::size_t>(record.device)].name.find("GPU:3") == std::string::npos)
      continue;
    if (first == nullptr || record.start_ns < first->start_ns) first = &record;
  }
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->bytes, 2 * 51200 * 2304.0);
}

TEST(DividedLayers, SendPartsBetweenStagesAndGatherThem) {
  const auto bytes_of = [](const RunResult& result, const char* name) {
    std::vector<double> bytes;
    for (const Record& record : collectives_of_step(result, name)) bytes.push_back(record.bytes);
    return bytes;
  };
  const double matrix = 2 * 2 * 128 * 2304.0;  // of the two examples of a micro-batch
  const std::string mesh = "{name: mesh, tensor: 2, pipeline: 2, micro_batches: 2";
  const RunResult parts = run_gpt(mesh + "}", 4);
  EXPECT_THAT(bytes_of(parts, "send"), testing::ElementsAre(matrix / 2, matrix / 2));
  EXPECT_THAT(bytes_of(parts, "all_gather"), testing::ElementsAre(matrix, matrix)) << "gradients of two micro-batches";
  const RunResult whole = run_gpt(mesh + ", scatter_gather: false}", 4);
  EXPECT_THAT(bytes_of(whole, "send"), testing::ElementsAre(matrix, matrix));
  EXPECT_EQ(count_of(whole, "all_gather"), 0);
  // Divided rows are parts already.
  EXPECT_THAT(bytes_of(run_gpt(mesh + "}", 4, ", sequence_parallel: true"), "send"),
              testing::ElementsAre(matrix / 2, matrix / 2));
}

// A stage waits for its neighbours for much of a step, by receives that are under way while it computes.
TEST(DividedLayers, ComputeAtFullRateBesideReceives) {
  const RunResult result = run_blocks("{name: pipeline_parallel, micro_batches: 4}", 8, 2);
  std::map<std::tuple<std::string, double, double>, std::set<Nanoseconds>> durations;
  for (const Record& record : result.timeline.records) {
    if (record.kind != RecordKind::op || record.step != 1) continue;
    durations[{record.name, record.bytes, record.flops}].insert(record.end_ns - record.start_ns);
  }
  EXPECT_GT(count_of(result, "receive"), 0);
  for (const auto& [op, taken] : durations) {
    EXPECT_LE(*taken.rbegin() - *taken.begin(), 1) << std::get<0>(op) << ": dates are rounded, nothing else differs";
  }
}

// In each block keys and values go round forward and backward, and the sums of their gradients come back.
TEST(DividedLayers, PassKeysAndValuesAroundTheDevicesOfASequence) {
  const RunResult result = run_gpt("{name: mesh, context: 2}", 2);
  const double keys = 2 * 4 * 128 * 2304.0;  // of four sequences
  EXPECT_EQ(count_of(result, "all_gather"), 2 * (2 + 2));
  EXPECT_EQ(count_of(result, "reduce_scatter"), 2 * 2);
  for (const char* name : {"all_gather", "reduce_scatter"}) {
    for (const Record& record : collectives_of_step(result, name)) EXPECT_EQ(record.bytes, keys);
  }
  EXPECT_GT(all_reduces(result), 0) << "both have all parameters, and tokens of their own";
  EXPECT_DOUBLE_EQ(flops(result), flops(run_gpt("{name: mesh}", 1)));
  EXPECT_EQ(result.report.replicas, 1);
  EXPECT_EQ(count_of(run_gpt("{name: mesh, data: 2}", 2), "all_gather"), 0);
}

// Forward three messages for each of the two products of a block, backward four: the first one has keys, the last one
// sums of gradients, and those between have both.
TEST(DividedLayers, PassPiecesFromDeviceToDevice) {
  const RunResult result = run_gpt("{name: mesh, context: 4, context_exchange: ring}", 4);
  const double piece = 2 * 4 * (128 / 4) * 2304.0;
  EXPECT_EQ(count_of(result, "all_gather") + count_of(result, "reduce_scatter"), 0);
  for (const char* name : {"send", "receive"}) {
    std::map<double, int> messages;
    for (const Record& record : collectives_of_step(result, name)) ++messages[record.bytes];
    EXPECT_EQ(messages, (std::map<double, int>{{piece, 2 * 2 * (3 + 2)}, {2 * piece, 2 * 2 * 2}})) << name;
  }
  EXPECT_DOUBLE_EQ(flops(result), flops(run_gpt("{name: mesh}", 1)));
  EXPECT_EQ(count_of(run_gpt("{name: mesh, context: 2, context_exchange: ring}", 2), "send"), 2 * 2 * (1 + 2));
}

// Queries, keys, values and results in each block; backward the same.
TEST(DividedLayers, ExchangeHeadsForTokens) {
  const RunResult result = run_gpt("{name: mesh, context: 4, context_exchange: all_to_all}", 4);
  EXPECT_EQ(count_of(result, "all_gather") + count_of(result, "reduce_scatter") + count_of(result, "send"), 0);
  EXPECT_EQ(count_of(result, "all_to_all"), 2 * (4 + 4));
  for (const Record& record : collectives_of_step(result, "all_to_all")) {
    EXPECT_EQ(record.bytes, 2 * 4 * (128 / 4) * 2304.0) << "of the device's tokens";
  }
  EXPECT_DOUBLE_EQ(flops(result), flops(run_gpt("{name: mesh}", 1)));
}

// Heads that share keys and values exchange as many of these as there are.
TEST(DividedLayers, ExchangeSharedHeadsOnce) {
  const RunResult result = run_scenario(
      read_scenario("workload: {kind: layers, model: llama, sizes: {layers: 1, tokens: 1024}, batch: 1, dtype: bf16}\n"
                    "strategy: {name: mesh, tensor: 2, context: 2, context_exchange: all_to_all}\nengine: {name: sim}\n"
                    "topology: dgx-a100\ndevices: {per_worker: 4}\nsteps: 2\nwarmup_steps: 1\n"));
  std::map<double, int> messages;
  for (const Record& record : collectives_of_step(result, "all_to_all")) ++messages[record.bytes];
  const double of_queries = 2 * (1024 / 2) * (4096.0 / 2);
  EXPECT_EQ(messages, (std::map<double, int>{{of_queries, 4}, {of_queries / 4, 4}}));
}

TEST(DividedLayers, DivideTheStateOfADistributedOptimizer) {
  const std::string one_bucket = ", bucket_bytes: 1000GB, parameter_dtype: f32, optimizer: adam";
  const RunResult whole = run_gpt("{name: mesh, data: 2, tensor: 2}", 4, one_bucket);
  const RunResult divided = run_gpt("{name: mesh, data: 2, tensor: 2, distributed_optimizer: true}", 4, one_bucket);
  const double parameters = whole.report.metrics.at("parameters_per_device");
  EXPECT_EQ(divided.report.metrics.at("parameters_per_device"), parameters);
  ASSERT_EQ(count_of(divided, "reduce_scatter"), 1);
  ASSERT_EQ(count_of(divided, "all_gather"), 1);
  EXPECT_EQ(collectives_of_step(divided, "reduce_scatter").front().bytes, 4 * parameters) << "gradients in f32";
  EXPECT_EQ(collectives_of_step(divided, "all_gather").front().bytes, 2 * parameters) << "weights in f16";
  EXPECT_EQ(all_reduces(divided), all_reduces(whole) - 1);
  const auto update_ns = [](const RunResult& result) {
    Nanoseconds sum = 0;
    for (const Record& record : result.timeline.records) {
      if (record.step == 1 && record.category == Category::update) sum += record.end_ns - record.start_ns;
    }
    return static_cast<double>(sum);
  };
  EXPECT_NEAR(update_ns(divided) / update_ns(whole), 0.5, 0.02);
  const std::string small_buckets = ", bucket_bytes: 1MB, parameter_dtype: f32, optimizer: adam";
  const std::string mesh = "{name: mesh, data: 4, distributed_optimizer: true";
  EXPECT_LT(step_of(run_gpt(mesh + ", overlap_gather: true}", 4, small_buckets)),
            step_of(run_gpt(mesh + "}", 4, small_buckets)));
}

// The same is exchanged, but beside the products.
TEST(DividedLayers, CanExchangeBesideTheirProducts) {
  const std::string mesh = "{name: mesh, tensor: 4}", rows = ", sequence_parallel: true";
  const RunResult apart = run_gpt(mesh, 4, rows), beside = run_gpt(mesh, 4, rows + ", overlap_products: true");
  EXPECT_EQ(count_of(beside, "all_gather"), count_of(apart, "all_gather"));
  EXPECT_EQ(count_of(beside, "reduce_scatter"), count_of(apart, "reduce_scatter"));
  EXPECT_LT(step_of(beside), step_of(apart));
}

// Copy engines reach no device beyond a network.
TEST(DividedLayers, ComputeAtFullRateBesideGathersWithinAMachine) {
  const auto product_ns = [](const std::string& workers, const std::string& devices) {
    const RunResult result = run_scenario(read_scenario(
        "workload: {kind: layers, model: gpt, sizes: {layers: 2}, batch: 4, dtype: bf16, sequence_parallel: true, "
        "overlap_products: true}\nstrategy: {name: mesh, tensor: 4}\nengine: {name: sim}\ntopology: {cluster: {node: "
        "hgx-h100, workers: " +
        workers + "}}\ndevices: {per_worker: " + devices + "}\nsteps: 2\nwarmup_steps: 1\n"));
    const auto up = std::ranges::find(result.timeline.records, Name("block.0.intermediate"), &Record::name);
    return static_cast<double>(up->end_ns - up->start_ns);
  };
  EXPECT_NEAR(product_ns("2", "2") / product_ns("1", "4"), 1.16, 0.001);
}

// Everything of a block but its last layer is divided, and that one has 4 of its 6 units of flops.
TEST(DividedLayers, DoTheFlopsOfTheWholeModelTogether) {
  const double alone = flops(run_blocks("{name: mesh}", 8, 1));
  EXPECT_DOUBLE_EQ(flops(run_blocks("{name: mesh, data: 4}", 8, 4)) / alone, 1);
  EXPECT_DOUBLE_EQ(flops(run_blocks("{name: mesh, pipeline: 4, micro_batches: 4}", 8, 4)) / alone, 1);
  EXPECT_DOUBLE_EQ(
      flops(run_blocks("{name: mesh, pipeline: 2, data: 2, micro_batches: 4, virtual_stages: 4}", 8, 4)) / alone, 1);
  const double whole = 4 * 4096.0 * 4096;                     // of a block's weights
  const double divided = 2 * 4096.0 * 4096 + 16 * 256.0 * 8;  // and of its product without weights
  EXPECT_NEAR(flops(run_blocks("{name: tensor_parallel}", 8, 4)) / alone, (4 * whole + divided) / (whole + divided),
              0.001);
}

TEST(DividedLayers, HaveTheirPartOfTheParameters) {
  const double block = 6 * 4096.0 * 4096 + 4096;
  const auto parameters = [](const RunResult& result) { return result.report.metrics.at("parameters_per_device"); };
  EXPECT_EQ(parameters(run_blocks("{name: mesh}", 8, 1)), 8 * block + 4096);
  EXPECT_EQ(parameters(run_blocks("{name: pipeline_parallel, micro_batches: 4}", 8, 4)), 2 * block + 4096);
  EXPECT_EQ(parameters(run_blocks("{name: tensor_parallel}", 8, 4)), 8 * (4.5 * 4096 * 4096 + 4096) + 4096);
}

// The embeddings are those of the first stage and of the loss: both have them, and sum their gradients.
TEST(DividedLayers, KeepTheEmbeddingsAtBothEndsOfAPipeline) {
  const auto run = [](const std::string& strategy) { return run_gpt(strategy, 2); };
  const RunResult pipeline = run("{name: pipeline_parallel, micro_batches: 2}");
  EXPECT_EQ(all_reduces(pipeline), 1);
  const double hidden = 2304, words = 51200, positions = 128;
  const double block = 12 * hidden * hidden + 13 * hidden;
  EXPECT_EQ(pipeline.report.metrics.at("parameters_per_device"), block + (words + positions) * hidden);
  // Tensor parallel, they are shared on each device. Forward: embeddings, two a block, three small ones of the loss.
  EXPECT_EQ(all_reduces(run("{name: tensor_parallel}")), (1 + 2 * 2 + 3) + (2 * 2 + 1));
}

double bubble_of(const std::string& strategy, int micro_batches, int devices) {
  const RunResult result = run_blocks(strategy + std::to_string(micro_batches) + "}", micro_batches, devices);
  const PerStep& per_step = result.report.summary.per_step;
  return 1 - static_cast<double>(per_step.compute + per_step.update) / step_of(result);
}

class LayerBubble : public testing::TestWithParam<std::tuple<int, int>> {};

// With p devices, m micro-batches and v stages a device, (p-1)/v of m + (p-1)/v.
TEST_P(LayerBubble, ShrinksAsTheFormulaSays) {
  const auto [micro_batches, chunks] = GetParam();
  constexpr int kDevices = 4;
  const double idle = (kDevices - 1.0) / chunks;
  EXPECT_NEAR(bubble_of("{name: pipeline_parallel, virtual_stages: " + std::to_string(chunks) + ", micro_batches: ",
                        micro_batches, kDevices),
              idle / (micro_batches + idle), 0.03);
}
INSTANTIATE_TEST_SUITE_P(MicroBatchesAndStages, LayerBubble,
                         testing::Combine(testing::Values(4, 8, 16), testing::Values(1, 2)));

TEST(DividedLayers, InterleaveOnTwoDevices) {
  const auto run = [](int chunks, int micro_batches) {
    return bubble_of(
        "{name: pipeline_parallel, virtual_stages: " + std::to_string(chunks) + ", micro_batches: ", micro_batches, 2);
  };
  EXPECT_NEAR(run(1, 4), 1 / 5.0, 0.02);
  EXPECT_NEAR(run(2, 4), 0.5 / 4.5, 0.02);
  EXPECT_NEAR(run(4, 4), 0.25 / 4.25, 0.02);
}

TEST(DividedLayers, ComputeBlocksAgain) {
  for (const char* strategy : {"{name: mesh}", "{name: mirrored}", "{name: fully_sharded}"}) {
    const double once = flops(run_blocks(strategy, 4, 1));
    const double again = flops(run_blocks(strategy, 4, 1, ", activation_checkpointing: true"));
    const double forward = 2 * 4 * 412451078144.0;  // all products are in blocks
    EXPECT_NEAR((again - once) / forward, 1, 1e-9) << strategy;
  }
}

TEST(GradientAccumulation, ReducesOnceForAllPasses) {
  for (const char* strategy : {"{name: mirrored}", "{name: multi_worker_mirrored}"}) {
    const std::string one_bucket = ", bucket_bytes: 1000GB";
    const RunResult once = run_blocks(strategy, 16, 4, one_bucket);
    const RunResult often = run_blocks(strategy, 16, 4, one_bucket + ", gradient_accumulation_steps: 4");
    EXPECT_EQ(all_reduces(once), 1);
    EXPECT_EQ(all_reduces(often), 1);
    EXPECT_DOUBLE_EQ(flops(often) / flops(once), 1);
    EXPECT_GT(step_of(often), step_of(once));  // the gradients of three passes are added
  }
}

TEST(GradientAccumulation, TakesBatchesThatItDoesNotDivide) {
  const RunResult once = run_blocks("{name: mirrored}", 7, 2);
  EXPECT_DOUBLE_EQ(flops(run_blocks("{name: mirrored}", 7, 2, ", gradient_accumulation_steps: 3")) / flops(once), 1);
}

// ZeRO's third stage has no gradients to add to but the sharded ones: each pass gathers and scatters.
TEST(GradientAccumulation, ScattersInEveryPassWhereParametersAreSharded) {
  const auto scatters = [](const RunResult& result) {
    return std::count_if(result.timeline.records.begin(), result.timeline.records.end(), [](const Record& record) {
      return record.step == 1 && record.kind == RecordKind::collective && record.name == "reduce_scatter";
    });
  };
  const auto once = scatters(run_blocks("{name: fully_sharded}", 8, 2));
  EXPECT_GT(once, 0);
  EXPECT_EQ(scatters(run_blocks("{name: fully_sharded}", 8, 2, ", gradient_accumulation_steps: 4")), 4 * once);
}

// The same program with threads as devices, for which the sizes are small.
class DividedLayersForReal : public testing::TestWithParam<const char*> {};

TEST_P(DividedLayersForReal, Run) {
  EXPECT_GT(run_blocks_for_real(GetParam(), 8, ", activation_checkpointing: true").summary.per_step.compute, 0);
}
INSTANTIATE_TEST_SUITE_P(Ways, DividedLayersForReal,
                         testing::Values("{name: tensor_parallel}", "{name: pipeline_parallel, micro_batches: 4}",
                                         "{name: mesh, data: 2, tensor: 2, micro_batches: 2}",
                                         "{name: mesh, data: 2, pipeline: 2, micro_batches: 4, virtual_stages: 2}",
                                         "{name: mesh, tensor: 2, pipeline: 2, micro_batches: 2, virtual_stages: 4}"));

}  // namespace
}  // namespace tandem
