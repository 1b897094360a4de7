// Shared experts that are computed while tokens go to other experts and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "scenarios/model/model_reader.h"
#include "strategies/parallel/layout/shared_experts.h"
#include "tests/scenarios/blocks.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

Model packaged_model(const std::string& name) {
  return read_model(find_data("scenarios/models/" + name + ".yaml"));
}

RunResult run_shared_experts(const std::string& strategy, const std::string& workload = "", int width = 4096) {
  const Scenario scenario = read_scenario(
      "workload: {kind: layers, model: files/shared_expert.yaml, sizes: {tokens: 4096, hidden: 4096, shared: " +
      std::to_string(width) + "}, batch: 64, dtype: bf16, optimizer: adam" + workload + "}\nstrategy: {name: mesh, " +
      strategy +
      "}\nengine: {name: sim}\ntopology: hgx-h100\ndevices: {type: gpu, per_worker: 8}\nsteps: 2\nwarmup_steps: 1\n");
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(scenario, options);
}

// The records of the second step on the first GPU.
std::vector<Record> records_of(const RunResult& result) {
  std::vector<Record> records;
  for (const Record& record : result.timeline.records) {
    const bool is_on_first =
        record.device >= 0 && result.timeline.devices[static_cast<std::size_t>(record.device)].name.ends_with("GPU:0");
    if (is_on_first && record.step == 1) records.push_back(record);
  }
  return records;
}

bool is_of_shared(const Record& record) {
  return record.kind == RecordKind::op && record.name.text().find("shared_") != std::string::npos;
}
bool is_all_to_all(const Record& record) {
  return record.kind == RecordKind::collective && record.name.text() == "all_to_all";
}

double time_of(const std::vector<Record>& records, bool (*is_meant)(const Record&)) {
  double sum = 0;
  for (const Record& record : records) {
    if (is_meant(record)) sum += static_cast<double>(record.end_ns - record.start_ns);
  }
  return sum;
}

double bytes_of(const std::vector<Record>& records, bool (*is_meant)(const Record&)) {
  double sum = 0;
  for (const Record& record : records) sum += is_meant(record) ? record.bytes : 0;
  return sum;
}

// What runs beside something of the other kind.
Nanoseconds beside_all_to_alls(const std::vector<Record>& records, const std::string& layer) {
  Nanoseconds sum = 0;
  for (const Record& op : records) {
    if (!is_of_shared(op) || op.name.text().find(layer) == std::string::npos) continue;
    for (const Record& exchange : records) {
      if (!is_all_to_all(exchange)) continue;
      sum += std::max<Nanoseconds>(0, std::min(op.end_ns, exchange.end_ns) - std::max(op.start_ns, exchange.start_ns));
    }
  }
  return sum;
}

TEST(SharedExperts, AreTheLayersBetweenARouterAndDispatch) {
  const Model model = packaged_model("deepseek_v3");
  const std::vector<SharedExpert> all = shared_experts(model.layers);
  ASSERT_EQ(all.size(), 59u) << "of 58 blocks and the predictor's";
  for (const SharedExpert& one : all) {
    EXPECT_THAT(model.layers[one.first - 1].name, testing::EndsWith(".router"));
    EXPECT_THAT(model.layers[one.first].name, testing::EndsWith(".shared_gate"));
    EXPECT_THAT(model.layers[one.activated].name, testing::EndsWith(".shared_down"));
    EXPECT_THAT(model.layers[one.end].name, testing::EndsWith(".dispatch"));
    EXPECT_THAT(model.layers[one.first_of_experts].name, testing::EndsWith(".expert_gate"));
    EXPECT_THAT(model.layers[one.last_of_experts].name, testing::EndsWith(".expert_down"));
  }
  EXPECT_TRUE(shared_experts(packaged_model("mixtral").layers).empty());
  EXPECT_TRUE(shared_experts(packaged_model("llama").layers).empty());
}

// Whatever divides the model: the same work and the same exchanges in less time, of which no more is saved than the
// shorter one of the two takes.
TEST(SharedExperts, AreHiddenBehindExchangesOfTokens) {
  struct DividedJob {
    std::string mesh, workload;
  };
  const std::vector<DividedJob> jobs = {
      {"data: 8, expert: 8", ""},
      {"data: 8, expert: 4, micro_batches: 2, distributed_optimizer: true, overlap_gather: true", ""},
      {"data: 8, expert: 8, micro_batches: 2, shard_parameters: true", ""},
      {"data: 8, expert: 8, micro_batches: 2", ", activation_checkpointing: true"},
      {"data: 8, expert: 8", ", activation_checkpointing: {layers: [shared_gate, shared_up]}"},
      {"data: 8, expert: 8", ", activation_checkpointing: {layers: [expert_up, expert_down]}"},
      {"data: 8, expert: 8",
       ", activation_checkpointing: {layers: [shared_gate, shared_up, shared_down, dispatch, expert_up]}"},
      {"data: 4, expert: 4, tensor: 2", ", sequence_parallel: true"},
      {"data: 4, expert: 8, tensor: 2, expert_tensor: 1", ", sequence_parallel: true"},
      {"data: 4, expert: 4, pipeline: 2, micro_batches: 4", ""},
      {"data: 4, expert: 4, pipeline: 2, micro_batches: 4, schedule: zero_bubble", ""},
      {"data: 8, expert: 8", ", experts: {dispatch: deepep, dispatch_dtype: fp8}"},
      {"data: 8, expert: 8", ", overlap: false, precision: {compute: fp8}"},
  };
  for (const DividedJob& one : jobs) {
    const RunResult apart = run_shared_experts(one.mesh, one.workload),
                    beside = run_shared_experts(one.mesh + ", overlap_shared_expert: true", one.workload);
    const std::string name = one.mesh + one.workload;
    const std::vector<Record> of_apart = records_of(apart), of_beside = records_of(beside);
    EXPECT_NEAR(flops(beside), flops(apart), 1e-9 * flops(apart)) << name;
    EXPECT_EQ(bytes_of(of_beside, is_all_to_all), bytes_of(of_apart, is_all_to_all)) << name;
    EXPECT_EQ(bytes_of(of_beside, is_of_shared), bytes_of(of_apart, is_of_shared)) << name;
    const double saved = step_of(apart) - step_of(beside);
    EXPECT_GT(saved, 0) << name;
    EXPECT_LE(saved, time_of(of_apart, is_all_to_all)) << name;
    // What tensor-parallel devices exchange for a shared expert is hidden, too.
    if (name.find("tensor") == std::string::npos) {
      EXPECT_LE(saved, time_of(of_apart, is_of_shared)) << name;
    }
  }
}

// Kernels that begin beside an exchange are slower, and those of a wide expert last much longer than it.
TEST(SharedExperts, TakeNoLongerWhereTheyAreWide) {
  for (const int width : {512, 16384}) {
    for (const char* mesh : {"data: 8, expert: 2", "data: 8, expert: 8"}) {
      const RunResult apart = run_shared_experts(mesh, "", width);
      const RunResult beside = run_shared_experts(std::string(mesh) + ", overlap_shared_expert: true", "", width);
      EXPECT_LT(step_of(beside), step_of(apart)) << mesh << ", " << width;
    }
  }
}

// Forward and backward: what comes before the activation beside one of the two exchanges, the rest beside the other.
TEST(SharedExperts, RunBesideBothExchanges) {
  const std::vector<Record> apart = records_of(run_shared_experts("data: 8, expert: 8")),
                            beside = records_of(run_shared_experts("data: 8, expert: 8, overlap_shared_expert: true"));
  for (const char* layer : {"shared_gate", "shared_up", "shared_down"}) {
    EXPECT_EQ(beside_all_to_alls(apart, layer), 0);
    EXPECT_GT(beside_all_to_alls(beside, layer), 0) << layer;
  }
}

}  // namespace
}  // namespace tandem
