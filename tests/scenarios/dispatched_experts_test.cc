// Rows on their way to experts and back: what is sent, what kernels order, and who has most of the work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "scenarios/estimates/device_memory.h"
#include "strategies/model/experts.h"
#include "tests/scenarios/blocks.h"

namespace tandem {
namespace {

// Four sequences of 32 tokens, each of which uses two of eight experts; one device of four has two of these.
RunResult run_experts(const std::string& experts, const std::string& more = "",
                      const std::string& machines = "topology: dgx-a100\ndevices: {per_worker: 4}\n",
                      const std::string& mesh = "data: 4, expert: 4", int batch = 4) {
  const std::string of_workload = experts.empty() ? "" : ", experts: " + experts;
  return run_scenario(read_scenario("workload: {kind: layers, model: files/routed_experts.yaml, dtype: f16, batch: " +
                                    std::to_string(batch) + of_workload + more + "}\nstrategy: {name: mesh, " + mesh +
                                    "}\nengine: {name: sim}\n" + machines + "steps: 2\nwarmup_steps: 1\n"));
}

// The last step's records on the first GPU.
std::vector<Record> records_of(const RunResult& result, const std::string& name) {
  std::vector<Record> found;
  const auto& devices = result.timeline.devices;
  const auto gpu =
      std::ranges::find_if(devices, [](const auto& device) { return device.name.find("GPU:0") != std::string::npos; });
  for (const Record& record : result.timeline.records) {
    if (record.step == 1 && record.device == gpu - devices.begin() && record.name == name) found.push_back(record);
  }
  return found;
}

double bytes_of_exchange(const RunResult& result) {
  const std::vector<Record> exchanges = records_of(result, "all_to_all");
  EXPECT_EQ(exchanges.size(), 2U * (2 + 2)) << "there and back, forward and backward";
  for (const Record& one : exchanges) EXPECT_EQ(one.bytes, exchanges.front().bytes);
  return static_cast<double>(exchanges.front().bytes);
}

constexpr double kAllCopies = 2 * (2 * 32) * 64.0;  // bytes of the rows of a sequence

TEST(PartsUsed, AreThoseOfDrawingWithoutReplacement) {
  EXPECT_DOUBLE_EQ(parts_used(8, 1, 4), 1);
  EXPECT_DOUBLE_EQ(parts_used(8, 2, 8), 2) << "each expert is a part";
  EXPECT_DOUBLE_EQ(parts_used(8, 2, 1), 1);
  EXPECT_DOUBLE_EQ(parts_used(8, 8, 4), 4) << "all of them";
  EXPECT_DOUBLE_EQ(parts_used(8, 16, 4), 4) << "more than there are";
  EXPECT_DOUBLE_EQ(parts_used(8, 2, 4), 4 * (1 - 6.0 / 8 * 5 / 7));
  EXPECT_NEAR(parts_used(128, 8, 8), 5.33, 0.01);
}

// With DeepSeek-V3's limit: 8 of 256 experts, all of them in 4 of 8 groups of 32.
TEST(PartsUsed, AreThoseOfTheChosenGroups) {
  const RoutingGroups groups{.count = 8, .used = 4};
  EXPECT_DOUBLE_EQ(parts_used(256, 8, 1, groups), 1);
  // A machine has a group: half of the groups are chosen, and one of them is missed with C(96, 8) / C(128, 8).
  double missed = 1;
  for (int i = 0; i < 8; ++i) missed *= (96.0 - i) / (128.0 - i);
  EXPECT_NEAR(parts_used(256, 8, 8, groups), 8 * 0.5 * (1 - missed), 1e-12);
  EXPECT_NEAR(parts_used(256, 8, 8, groups), 3.63, 0.01);
  EXPECT_NEAR(parts_used(256, 8, 8), 5.29, 0.01) << "without the limit";
  // Two groups in a part: both, one or none of them are chosen.
  const auto miss = [](double of_part) {
    double probability = 1;
    for (int i = 0; i < 8; ++i) probability *= (128 - of_part - i) / (128.0 - i);
    return probability;
  };
  const double both = 4.0 / 8 * 3 / 7, one = 2 * 4.0 / 8 * 4 / 7;
  EXPECT_NEAR(parts_used(256, 8, 4, groups), 4 * (both * (1 - miss(64)) + one * (1 - miss(32))), 1e-12);
  // A quarter of a group in each part.
  EXPECT_NEAR(parts_used(256, 8, 32, groups), 32 * 0.5 * (1 - miss(8)), 1e-12);
  // All groups: no limit. As many experts as the chosen groups have: all of these.
  EXPECT_NEAR(parts_used(256, 8, 8, {.count = 8, .used = 8}), parts_used(256, 8, 8), 1e-12);
  EXPECT_NEAR(parts_used(8, 4, 4, {.count = 4, .used = 2}), 2, 1e-12);
  // Parts that groups do not divide: 6 experts, 2 of 3 groups of two, all four used, halves of three experts.
  EXPECT_NEAR(parts_used(6, 4, 2, {.count = 3, .used = 2}), 2, 1e-12);
  EXPECT_NEAR(parts_used(6, 1, 2, {.count = 3, .used = 1}), 1, 1e-12);
}

TEST(FullestDevice, HasThePopularExperts) {
  EXPECT_DOUBLE_EQ(fullest_device({}, 8, 4), 1);
  EXPECT_DOUBLE_EQ(fullest_device({.popularity = {1, 2, 3, 4}}, 4, 2), 7.0 / 5);
  EXPECT_DOUBLE_EQ(fullest_device({.popularity = {1, 2, 3, 4}}, 4, 4), 4.0 / 2.5);
  EXPECT_DOUBLE_EQ(fullest_device({.popularity = {1, 2, 3, 4}}, 4, 1), 1) << "it has them all";
  EXPECT_DOUBLE_EQ(fullest_device({.capacity = 1.25}, 8, 4), 1.25);
}

TEST(DispatchedExperts, GetARowOnceForEachDeviceIfItIsCopiedThere) {
  EXPECT_EQ(bytes_of_exchange(run_experts("")), kAllCopies);
  EXPECT_EQ(bytes_of_exchange(run_experts("{dispatch: all_to_all}")), kAllCopies);
  const double once_a_device = parts_used(8, 2, 4) / 2;
  for (const char* dispatch : {"{dispatch: deepep}", "{dispatch: hybridep}"}) {
    const double bytes = bytes_of_exchange(run_experts(dispatch));
    EXPECT_NEAR(bytes, once_a_device * kAllCopies, 4 * 2) << "up to a whole number of elements for each device";
    EXPECT_LT(bytes, kAllCopies);
  }
}

// Between machines, a row goes to one device of each.
TEST(DispatchedExperts, CrossANetworkOnceForEachMachine) {
  const std::string machines = "topology: {cluster: {node: dgx-a100, workers: 2}}\ndevices: {per_worker: 2}\n";
  EXPECT_EQ(bytes_of_exchange(run_experts("", "", machines)), kAllCopies);
  EXPECT_NEAR(bytes_of_exchange(run_experts("{dispatch: hybridep}", "", machines)),
              parts_used(8, 2, 2) / 2 * kAllCopies, 4 * 2);
  const std::string rack = "topology: {cluster: {node: gb200-nvl72, workers: 2}}\ndevices: {per_worker: 2}\n";
  EXPECT_NEAR(bytes_of_exchange(run_experts("{dispatch: hybridep}", "", rack)), parts_used(8, 2, 4) / 2 * kAllCopies,
              4 * 2)
      << "NVLink joins them";
}

// Passes over both blocks, forward and backward.
TEST(DispatchedExperts, AreOrderedByKernelsOrByTheExchange) {
  const auto kernels = [](const std::string& experts, const std::string& mesh) {
    const RunResult result = run_experts(experts, "", "topology: dgx-a100\ndevices: {per_worker: 4}\n", mesh);
    return records_of(result, "block.0.dispatch").size() + records_of(result, "block.1.dispatch").size();
  };
  const std::string divided = "data: 4, expert: 4";
  EXPECT_EQ(kernels("", "data: 4"), 2U * 2);
  EXPECT_EQ(kernels("", divided), 2U * 2 * 2) << "before they go and, as a device has two experts, where they arrive";
  EXPECT_EQ(kernels("{dispatch: deepep}", divided), 2U * 2);
  EXPECT_EQ(kernels("{dispatch: hybridep}", divided), 0U);
  EXPECT_EQ(kernels("{dispatch: hybridep}", "data: 4"), 2U * 2) << "nothing is exchanged";
}

TEST(DispatchedExperts, WaitForTheDeviceWithMostRows) {
  const auto flops = [](const RunResult& result) {
    return static_cast<double>(records_of(result, "block.0.expert_up").front().flops);
  };
  const RunResult even = run_experts("");
  const RunResult uneven = run_experts("{imbalance: {counts: [4, 4, 4, 4, 8, 16, 12, 12]}}");
  EXPECT_DOUBLE_EQ(flops(uneven) / flops(even), 24.0 / 16) << "the third device has 24 of 64, not 16";
  EXPECT_DOUBLE_EQ(bytes_of_exchange(uneven), 1.5 * kAllCopies);
  EXPECT_DOUBLE_EQ(flops(run_experts("{imbalance: {counts: files/rows_of_experts.txt}}")) / flops(even), 90.0 / 64)
      << "of 64 rows, in whole rows";
  EXPECT_DOUBLE_EQ(flops(run_experts("{capacity: 1.25}")) / flops(even), 1.25);
  EXPECT_EQ(step_of(run_experts("{imbalance: {zipf: 0}}")), step_of(even));
  const double some = flops(run_experts("{imbalance: {zipf: 0.3}}")),
               much = flops(run_experts("{imbalance: {zipf: 1}}"));
  EXPECT_LT(flops(even), some);
  EXPECT_LT(some, much);
}

TEST(DispatchedExperts, NeedMemoryForTheRowsThatTheyGet) {
  const auto activations = [](const std::string& experts) {
    return memory_need(read_scenario(
                           "workload: {kind: layers, model: files/routed_experts.yaml, batch: 4, dtype: f16" + experts +
                           "}\nstrategy: {name: mesh, data: 4, expert: 4}\nengine: {name: sim}\ntopology: dgx-a100\n"
                           "devices: {per_worker: 4}\nsteps: 1\n"))
        ->activations;
  };
  // Inputs of both products and of GELU, of each of 32 tokens twice, in two blocks.
  constexpr std::int64_t kOfExperts = 2 * 2 * (2 * 32) * (64 + 128 + 128);
  EXPECT_EQ(activations(", experts: {capacity: 1.5}") - activations(""), kOfExperts / 2);
}

// The products of separate experts leave more of a GPU idle, and their biases are added in f32; a fused kernel adds
// biases and computes GELU.
TEST(DispatchedExperts, AreFasterTogether) {
  const auto step = [](const std::string& kernels) {
    return step_of(run_experts("", ", stack: {experts: " + kernels + "}"));
  };
  EXPECT_EQ(step("grouped"), step_of(run_experts("")));
  EXPECT_GT(step("separate"), step("grouped"));
  EXPECT_LT(step("fused"), step("grouped"));
  EXPECT_TRUE(records_of(run_experts("", ", stack: {experts: fused}"), "block.0.expert_up then").empty());
  const auto with_one = [](const std::string& kernels) {
    return step_of(run_experts("", ", stack: {experts: " + kernels + "}",
                               "topology: dgx-a100\ndevices: {per_worker: 8}\n", "data: 8, expert: 8", 8));
  };
  EXPECT_GT(with_one("separate"), with_one("grouped")) << "a bias in f32, also of the only expert of a device";
  EXPECT_LT(with_one("fused"), with_one("grouped"));
}

// Both passes of two blocks, of which the host issues one after the other.
TEST(Stacks, MayBeAsSlowAsTheirHost) {
  const double fast = step_of(run_experts("")), slow = step_of(run_experts("", ", stack: {block_host_time: 10ms}"));
  EXPECT_LT(fast, 10e6);
  EXPECT_GE(slow, 2 * 10e6);
  EXPECT_LE(slow, 2 * 10e6 + fast);
}

// Rows, and the gradients of what experts made of them, go as bytes with a scale for 128 of them, and come back in f16.
TEST(DispatchedExperts, GoAsBytesAndComeBackAsTheyAre) {
  const auto bytes = [](const std::string& experts) {
    std::vector<double> of_exchanges;
    for (const Record& one : records_of(run_experts(experts), "all_to_all")) of_exchanges.push_back(one.bytes);
    return of_exchanges;
  };
  const std::vector<double> plain = bytes("{dispatch: deepep}"), fp8 = bytes("{dispatch: deepep, dispatch_dtype: fp8}");
  ASSERT_EQ(plain.size(), 4U * 2);
  ASSERT_EQ(fp8.size(), plain.size());
  std::vector<int> smaller;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (fp8[i] == plain[i]) continue;
    EXPECT_NEAR(fp8[i], plain[i] * (1 + 4.0 / 128) / 2, 4 * 2);
    smaller.push_back(static_cast<int>(i));
  }
  EXPECT_EQ(smaller.size(), plain.size() / 2) << "one way of each pass";
}

// Two of four groups of two experts: a device with a group gets a row only where that group is chosen.
TEST(DispatchedExperts, OfSomeGroupsGoToFewerDevices) {
  const double share = parts_used(8, 2, 4, {.count = 4, .used = 1}) / 2;
  EXPECT_DOUBLE_EQ(share, 0.5);
  EXPECT_NEAR(bytes_of_exchange(run_experts("{dispatch: deepep, groups: {of: 4, used: 1}}")), share * kAllCopies,
              4 * 2);
}

}  // namespace
}  // namespace tandem
