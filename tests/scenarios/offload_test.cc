// What devices keep on their host: the time of its copies and updates, and the memory that it leaves free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/estimates/device_memory.h"
#include "scenarios/model/model_reader.h"
#include "scenarios/workloads/activations.h"
#include "strategies/parallel/stages/streams.h"
#include "tests/scenarios/running.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

// One GPU and its host, joined by PCIe of 24 GB/s, or by links of another speed.
Scenario offloading_gpt(const std::string& offload, const std::string& mesh = "{name: mesh, data: 1, micro_batches: 2}",
                        const std::string& bandwidth = "24GB/s", int devices = 1) {
  return read_scenario(
      "workload: {kind: layers, model: gpt, sizes: {layers: 4}, batch: 8, dtype: bf16, optimizer: adam, stack: "
      "{attention: flash, loss: fused}" +
      (offload.empty() ? "" : ", offload: " + offload) + "}\nstrategy: " + mesh +
      "\nengine: {name: sim}\ntopology: {cluster: {node: dgx-a100, workers: 1, overrides: {pcie: {bandwidth: " +
      bandwidth + "}}}}\ndevices: {type: gpu, per_worker: " + std::to_string(devices) +
      "}\nsteps: 2\nwarmup_steps: 1\n");
}

std::vector<Record> host_copies_on(const RunResult& result, int stream) {
  std::vector<Record> copies;
  for (const Record& record : result.timeline.records) {
    const bool is_on_gpu =
        record.device >= 0 && result.timeline.devices[static_cast<std::size_t>(record.device)].name.ends_with("GPU:0");
    const bool is_it = record.kind == RecordKind::copy && record.stream == stream && record.step == 1;
    if (is_it && is_on_gpu) copies.push_back(record);
  }
  return copies;
}

std::int64_t kept_by_a_block(std::int64_t examples) {
  const auto bytes_of = [examples](int blocks) {
    const Model model = read_model(find_data("scenarios/models/gpt.yaml"), {{"layers", blocks}});
    return activation_bytes(model.layers, {.examples = examples, .dtype = DType::bf16, .keeps_scores = false});
  };
  return bytes_of(3) - bytes_of(2);
}

Nanoseconds mean_step_of(const RunResult& result) {
  return result.report.summary.step_time.mean;
}

RunResult run_offloading(const Scenario& scenario) {
  return run_scenario(scenario, {.measures_scaling = false});
}

TEST(Offload, TakesTheBytesOfABlockOverTheBandwidthOfTheLink) {
  const RunResult result = run_offloading(offloading_gpt("{activations: 2}"));
  for (const int stream : {kToHostStream, kFromHostStream}) {
    const std::vector<Record> copies = host_copies_on(result, stream);
    ASSERT_EQ(copies.size(), 2u * 2u) << "two blocks in two micro-batches";
    for (const Record& copy : copies) {
      const auto bytes = static_cast<double>(kept_by_a_block(4));
      EXPECT_EQ(copy.bytes, bytes);
      EXPECT_NEAR(static_cast<double>(copy.end_ns - copy.start_ns) / (bytes / 24e9 * 1e9), 1, 0.02);
    }
  }
}

// What is slower than the work beside it is waited for.
TEST(Offload, IsHiddenWhereTheWorkTakesLonger) {
  const Nanoseconds none = mean_step_of(run_offloading(offloading_gpt("")));
  const Nanoseconds fast = mean_step_of(
      run_offloading(offloading_gpt("{activations: 2}", "{name: mesh, data: 1, micro_batches: 2}", "2000GB/s")));
  const Nanoseconds slow = mean_step_of(
      run_offloading(offloading_gpt("{activations: 2}", "{name: mesh, data: 1, micro_batches: 2}", "2GB/s")));
  EXPECT_NEAR(static_cast<double>(fast) / static_cast<double>(none), 1, 0.01);
  const double copies_ns = 2 * 2 * 2 * static_cast<double>(kept_by_a_block(4)) / 2e9 * 1e9;
  EXPECT_GT(static_cast<double>(slow), copies_ns);
  EXPECT_LT(static_cast<double>(slow), static_cast<double>(none) + copies_ns);
}

TEST(Offload, SharesTheWayToTheHost) {
  const std::string mesh = "{name: mesh, data: 2}";
  const RunResult alone = run_offloading(offloading_gpt("{activations: 2}", "{name: mesh, data: 1, micro_batches: 2}"));
  const RunResult both =
      run_offloading(offloading_gpt("{activations: 2}", mesh, "24GB/s", 2));  // with GPU 1, behind the same switch
  const auto time_of = [](const Record& copy) { return static_cast<double>(copy.end_ns - copy.start_ns); };
  EXPECT_NEAR(
      time_of(host_copies_on(both, kToHostStream).front()) / time_of(host_copies_on(alone, kToHostStream).front()), 2,
      0.05);
}

TEST(Offload, IsAtTheNearestProcessor) {
  const std::string mesh = "{name: mesh, data: 8}";
  const RunResult two = run_offloading(offloading_gpt("{activations: 2}", "{name: mesh, data: 2}", "24GB/s", 2));
  const RunResult all = run_offloading(offloading_gpt("{activations: 2}", mesh, "24GB/s", 8));
  const Record few = host_copies_on(two, kToHostStream).front(), many = host_copies_on(all, kToHostStream).front();
  EXPECT_NEAR(static_cast<double>(many.end_ns - many.start_ns) / many.bytes,
              static_cast<double>(few.end_ns - few.start_ns) / few.bytes, 1e-3)
      << "every two GPUs have a way of their own";
}

TEST(Offload, OfActivationsLeavesTheirMemoryFree) {
  const auto activations = [](const std::string& offload) {
    const Scenario scenario = offloading_gpt(offload);
    return memory_need(job_of(scenario))->activations;
  };
  const std::int64_t none = activations(""), block = kept_by_a_block(4);
  EXPECT_EQ(none - activations("{activations: 1}"), block);
  EXPECT_EQ(none - activations("{activations: 2}"), 2 * block);
  // The third one comes back beside the fourth, when what the head keeps is gone.
  const Model model = read_model(find_data("scenarios/models/gpt.yaml"), {{"layers", 4}});
  const ActivationSettings settings{.examples = 4, .dtype = DType::bf16, .keeps_scores = false, .fuses_loss = true};
  const std::int64_t head = activation_bytes({&model.layers.back(), 1}, settings);
  EXPECT_EQ(none - activations("{activations: 3}"), 2 * block + head);
}

TEST(Offload, OfPipelinesLeavesThatOfEveryMicroBatchFree) {
  const auto activations = [](const std::string& offload) {
    const Scenario scenario = offloading_gpt(offload, "{name: mesh, pipeline: 2, micro_batches: 4}", "24GB/s", 2);
    return memory_need(job_of(scenario))->activations;
  };
  // The first stage has two blocks. At the peak the second one works, and the first one of that micro-batch is back.
  EXPECT_EQ(activations("") - activations("{activations: 1}"), kept_by_a_block(2));
}

TEST(Offload, OfTheOptimizerIsUpdatedAtTheRateOfTheHost) {
  const std::string mesh = "{name: mesh, data: 2, distributed_optimizer: true}";
  const Scenario whole = offloading_gpt("{optimizer: 1}", mesh, "24GB/s", 2),
                 half = offloading_gpt("{optimizer: 0.5}", mesh, "24GB/s", 2);
  const Scenario none = offloading_gpt("", mesh, "24GB/s", 2);
  const std::int64_t state = memory_need(job_of(none))->optimizer;
  EXPECT_EQ(memory_need(job_of(whole))->optimizer, 0);
  EXPECT_NEAR(static_cast<double>(memory_need(job_of(half))->optimizer), static_cast<double>(state) / 2, 2);
  const RunResult result = run_offloading(whole);
  double gradients = 0, parameters = 0, updated = 0;
  Nanoseconds update = 0;
  for (const Record& copy : host_copies_on(result, kToHostStream)) gradients += copy.bytes;
  for (const Record& copy : host_copies_on(result, kFromHostStream)) parameters += copy.bytes;
  for (const Record& record : result.timeline.records) {
    if (record.kind != RecordKind::op || record.category != Category::update || record.step != 1) continue;
    EXPECT_THAT(result.timeline.devices[static_cast<std::size_t>(record.device)].name, testing::HasSubstr("CPU:0"));
    updated += record.bytes;
    update += record.end_ns - record.start_ns;
  }
  EXPECT_EQ(gradients, parameters) << "both in bf16";
  EXPECT_NEAR(gradients / (static_cast<double>(state) / 12 * 2), 1, 0.01) << "of 12 bytes of state for each";
  EXPECT_NEAR(static_cast<double>(update) / (updated / 10e9 * 1e9), 1, 0.05) << "10 GB/s, the catalog's rate of a core";
  EXPECT_GT(mean_step_of(result), mean_step_of(run_offloading(half)));
  EXPECT_GT(mean_step_of(run_offloading(half)), mean_step_of(run_offloading(none)));
}

TEST(Offload, OfMomentsInFewerBitsMovesTheBytesThatTheyHave) {
  const auto updated = [](const std::string& moments, const std::string& offload) {
    const std::string text = offload + (moments.empty() ? "" : ", precision: {moments: " + moments + "}");
    const RunResult result = run_offloading(offloading_gpt(text, "{name: mesh, data: 2}", "24GB/s", 2));
    double bytes = 0;
    for (const Record& record : result.timeline.records) {
      const bool is_update = record.kind == RecordKind::op && record.category == Category::update;
      if (is_update && record.step == 1) bytes += record.bytes;
    }
    return bytes;
  };
  for (const char* offload : {"{optimizer: 1}", "{optimizer: 0.5}"}) {
    const double usual = updated("", offload), bf16 = updated("bf16", offload);
    EXPECT_EQ(updated("f32", offload), usual);
    // Moments are 16 of the 42 bytes for each parameter: each is read and written.
    EXPECT_NEAR((usual - bf16) / usual, 8.0 / 42, 0.001) << offload;
    EXPECT_NEAR((usual - updated("{first: fp8, second: f16}", offload)) / usual, 10.0 / 42, 0.001) << offload;
  }
}

// A device must not represent others, with which it shares the way to the host.
TEST(Offload, TakesTheSameTimeInRunsThatOnlyReport) {
  const Scenario scenario = offloading_gpt("{activations: 2, optimizer: 0.2}", "{name: mesh, data: 4}", "24GB/s", 4);
  const RunResult all = run_offloading(scenario);
  const RunResult only_report = run_scenario(scenario, {.measures_scaling = false, .only_report = true});
  EXPECT_EQ(mean_step_of(all), mean_step_of(only_report));
}

}  // namespace
}  // namespace tandem
