// Results of MLPerf Training: which machine and which job a row is, what is left out, and in which series.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/validation/ledger/ledger_job.h"
#include "scenarios/validation/ledger/ledger_tables.h"
#include "scenarios/validation/training.h"
#include "scenarios/validation/validate.h"
#include "topologies/base/strict_yaml.h"

namespace tandem::validation {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

LedgerRow a_row(const std::string& accelerator = "NVIDIA A100-SXM4-80GB", int nodes = 1, int devices_of_node = 8) {
  return {.benchmark = "resnet",
          .round = "v2.0",
          .submitter = "somebody",
          .system = "a machine",
          .accelerator = accelerator,
          .nodes = nodes,
          .devices_of_node = devices_of_node,
          .batch = std::int64_t{408} * nodes * devices_of_node,
          .step_s = 0.12};
}

std::string why_not(const std::function<void()>& predict) {
  try {
    predict();
  } catch (const NotPredicted& reason) {
    return reason.why();
  }
  return "predicted";
}

TEST(Ledger, IsTheFormOfAListOfSteps) {
  const std::string text =
      R"({"source": "x", "benchmark": "gpt3", "rows": [{"round": "v3.0", "org": "NVIDIA", "system": "eos",
          "accelerator": "NVIDIA H100-SXM5-80GB", "network": "8x ConnectX-7 IB NDR 400Gb/s", "nodes": 64, "per_node": 8,
          "global_batch": 2048, "step_s": 12.07, "config": "c.sh", "settings": {"TP": "4 # a comment", "EMPTY": ""}}]})";
  EXPECT_TRUE(is_ledger_file(text));
  const std::vector<LedgerRow> rows = parse_ledger(text, "made up");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].benchmark, "gpt3");
  EXPECT_EQ(rows[0].devices(), 512);
  EXPECT_EQ(rows[0].batch, 2048);
  EXPECT_EQ(rows[0].step_s, 12.07);
  EXPECT_THAT(rows[0].settings, ElementsAre(testing::Pair("TP", "4 # a comment")));
  EXPECT_FALSE(is_ledger_file(R"({"benchmark": "x", "tables": [{"rows": [{"step_s": 1}]}]})"));
}

TEST(Ledger, ProblemsAreNamedAtTheirPlace) {
  const std::string text = "{\"benchmark\": \"resnet\", \"rows\": [\n {\"round\": \"v2.0\", \"step_s\": -1}]}";
  try {
    parse_ledger(text, "made up");
    FAIL() << "it lacks nearly all";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("made up:2:"), HasSubstr("rows[0].step_s"), HasSubstr("accelerator")));
  }
}

TEST(Ledger, AcceleratorsAreMachinesOfTheCatalog) {
  const auto node = [](const std::string& accelerator, int devices) {
    return machine_of(a_row(accelerator, 1, devices)).at("node").get<std::string>();
  };
  EXPECT_EQ(node("NVIDIA A100-SXM4-80GB", 8), "dgx-a100");
  EXPECT_EQ(node("NVIDIA A100-SXM-40GB", 4), "hgx-a100-4gpu-40gb");
  EXPECT_EQ(node("NVIDIA A100-PCIe-80GB", 2), "pcie-8gpu");
  EXPECT_EQ(node("NVIDIA A30", 2), "a30-8gpu");
  EXPECT_EQ(node("NVIDIA L4", 6), "aws-g6");
  EXPECT_EQ(node("NVIDIA L40", 8), "l40-8gpu");
  EXPECT_EQ(node("NVIDIA L40S", 8), "l40s-8gpu");
  EXPECT_EQ(node("NVIDIA H100-SXM5-80GB", 4), "hgx-h100-4gpu");
  EXPECT_EQ(node("NVIDIA Blackwell GPU (B200-SXM-180GB)", 8), "hgx-b200");
  EXPECT_EQ(node("NVIDIA Blackwell GPU (GB200)", 4), "gb200-nvl72");
  EXPECT_EQ(why_not([] { machine_of(a_row("NVIDIA A100-PCIe-80GB", 1, 16)); }),
            "no machine of the catalog has 16 NVIDIA A100-PCIe-80GB");
  EXPECT_EQ(why_not([] { machine_of(a_row("Gaudi2")); }), "no machine of the catalog has Gaudi2");
}

TEST(Ledger, NetworksAreThoseOfComputing) {
  LedgerRow row = a_row("NVIDIA H100-SXM5-80GB", 4);
  EXPECT_EQ(machine_of(row).at("nics_stated"), false);
  row.network = "Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Compute: 4x ConnectX-7 IB NDR 400Gb/s";
  const auto machine = machine_of(row);
  EXPECT_EQ(machine.at("nics"), 4);
  EXPECT_EQ(machine.at("fabric").at("nic_bandwidth"), "50GB/s");
  EXPECT_FALSE(machine.contains("nics_stated"));
  EXPECT_EQ(machine_of(a_row("NVIDIA Blackwell GPU (GB200)", 64, 4)).at("nvlink_domain"), 16);
  EXPECT_FALSE(machine_of(a_row("NVIDIA Blackwell GPU (GB200)", 8, 4)).contains("nvlink_domain"));
}

TEST(Ledger, NormsAreFusedAsOfTheirYear) {
  const auto fusion = [](const std::string& round, const std::string& accelerator) {
    LedgerRow row = a_row(accelerator);
    row.round = round;
    return job_of(row).workload.at("stack").at("fusion").get<std::string>();
  };
  EXPECT_EQ(fusion("v2.1", "NVIDIA A100-SXM4-80GB"), "persistent");
  EXPECT_EQ(fusion("v2.1", "NVIDIA H100-SXM5-80GB"), "in_convolutions");
  EXPECT_EQ(fusion("v3.1", "NVIDIA A100-SXM4-80GB"), "in_convolutions");
}

// NVIDIA's program for RetinaNet logs the throughput of one device, that for Blackwell in round 5.0 those of all.
TEST(Ledger, StepsOfRetinaNetAreThoseOfAllDevices) {
  const auto step_s = [](const std::string& benchmark, const std::string& round, const std::string& accelerator) {
    LedgerRow row = a_row(accelerator);
    row.benchmark = benchmark;
    row.round = round;
    row.step_s = 2;
    EXPECT_EQ(job_of(row).workload.at("model"), benchmark == "resnet" ? "resnet50" : "retinanet");
    return as_trained(row).step_s;
  };
  EXPECT_EQ(step_s("ssd", "v2.0", "NVIDIA A100-SXM4-80GB"), 0.25);
  EXPECT_EQ(step_s("ssd", "v4.1", "NVIDIA Blackwell GPU (B200-SXM-180GB)"), 0.25);
  EXPECT_EQ(step_s("retinanet", "v5.0", "NVIDIA H200-SXM5-141GB"), 0.25);
  EXPECT_EQ(step_s("retinanet", "v5.0", "NVIDIA Blackwell GPU (B200-SXM-180GB)"), 2);
  EXPECT_EQ(step_s("resnet", "v2.0", "NVIDIA A100-SXM4-80GB"), 2);
}

TEST(Ledger, NodesThatOnlyEvaluateDoNotTrain) {
  LedgerRow row = a_row("NVIDIA A100-SXM4-80GB", 9);
  row.benchmark = "unet3d";
  row.batch = 56;
  EXPECT_EQ(as_trained(row).nodes, 7);
  EXPECT_EQ(job_of(as_trained(row)).workload.at("model"), "unet3d");
  EXPECT_EQ(why_not([&] { job_of(row); }), "several devices work on one example");
  row.batch = 72;
  EXPECT_EQ(as_trained(row).nodes, 9);
}

LedgerRow llama_row() {
  LedgerRow row = a_row("NVIDIA Blackwell GPU (GB200)", 128, 4);
  row.benchmark = "llama31_405b";
  row.batch = 384;
  row.configuration = "config_GB200_128x4x48xtp4pp8cp2.sh";
  row.settings = {{"TENSOR_MODEL_PARALLEL", "4   # a comment"},
                  {"PIPELINE_MODEL_PARALLEL", "8"},
                  {"INTERLEAVED_PIPELINE", "8"},
                  {"MICRO_BATCH_SIZE", "1"},
                  {"ASYM_PP_EMBED", "True"},
                  {"TP_PP_DP_MAPPING", "True"},
                  {"TP_COMM_OVERLAP", "True"},
                  {"FP8_PARAM_GATHER", "True"},
                  {"FP8", "True"}};
  return row;
}

TEST(Ledger, SettingsSayHowDevicesDivideALanguageModel) {
  const LedgerJob job = job_of(llama_row());
  EXPECT_EQ(job.strategy.at("data"), 8);
  EXPECT_EQ(job.strategy.at("tensor"), 4);
  EXPECT_EQ(job.strategy.at("context"), 2) << "from the name of the configuration";
  EXPECT_EQ(job.strategy.at("micro_batches"), 48);
  EXPECT_EQ(job.strategy.at("axis_order"), "tensor_pipeline_data");
  const auto blocks = job.strategy.at("stage_blocks").get<std::vector<int>>();
  ASSERT_EQ(blocks.size(), 64U);
  EXPECT_EQ(blocks.front(), 1);
  EXPECT_EQ(blocks[1], 2);
  EXPECT_EQ(blocks.back(), 1);
  EXPECT_EQ(job.workload.at("precision").at("gather"), "fp8");
  EXPECT_EQ(job.workload.at("overlap_products"), true);
}

TEST(Ledger, WhatSettingsDoNotSayIsNotGuessed) {
  LedgerRow row = llama_row();
  row.settings.erase("TENSOR_MODEL_PARALLEL");
  EXPECT_EQ(why_not([&] { job_of(row); }), "no configuration says how devices divide the model");
  row = llama_row();
  row.batch = 383;
  EXPECT_EQ(why_not([&] { job_of(row); }), "the configuration that was found is for other devices or another batch");
  row.benchmark = "dlrm";
  EXPECT_EQ(why_not([&] { job_of(row); }), "there is no table of the layers of dlrm");
}

TEST(Ledger, RowsOfASubmitterAreASeriesEach) {
  std::vector<LedgerRow> rows{a_row("NVIDIA A100-SXM4-80GB", 2), a_row(), a_row(), a_row("Gaudi2"), a_row("Gaudi2", 2)};
  rows[2].round = "v2.1";  // the same result again
  rows.push_back(a_row());
  rows.back().step_s = 0;
  rows.push_back(a_row());
  rows.back().submitter = "somebody else";
  rows.push_back(a_row());
  rows.back().system = "a machine whose power was measured";
  const LedgerTables ledger = tables_of_ledger(rows, "resnet.json");
  ASSERT_EQ(ledger.tables.size(), 2U);
  EXPECT_EQ(ledger.tables[0].source, "somebody");
  ASSERT_EQ(ledger.tables[0].rows.size(), 2U);
  EXPECT_EQ(ledger.tables[0].rows[0].devices, 8);
  EXPECT_EQ(ledger.tables[0].rows[1].machine.nodes, 2);
  EXPECT_EQ(ledger.tables[0].rows[0].name, "v2.0 somebody a machine");
  EXPECT_EQ(ledger.tables[0].rows[0].throughput, 408 * 8 / 0.12);
  std::vector<std::string> reasons;
  for (const LeftOut& left : ledger.left_out) reasons.push_back(left.why);
  EXPECT_THAT(reasons,
              ElementsAre("2 rows: no machine of the catalog has Gaudi2", "1 row: an earlier round has the same result",
                          "1 row: another system of the round has the same result",
                          "1 row: it states no devices, no batch or no time of a step"));
}

// 70 billion parameters on one device do not fit; the next row of the series is fitted in its place.
TEST(Ledger, FirstRowsWithoutMemoryAreLeftOut) {
  std::vector<LedgerRow> rows;
  for (const int nodes : {1, 2, 4}) {
    rows.push_back(a_row("NVIDIA H100-SXM5-80GB", nodes));
    rows.back().benchmark = "llama2_70b_lora";
    rows.back().batch = std::int64_t{8} * nodes;
    rows.back().step_s = 4;
    rows.back().settings = {{"TP", nodes == 1 ? "1" : "8"}, {"FP8", "True"}};
  }
  const LedgerTables ledger = tables_of_ledger(rows, "lora.json");
  const TrainingReplay fitted = replay_training("lora.json", ledger.tables, true);
  ASSERT_EQ(fitted.points.size(), 1U);
  EXPECT_EQ(fitted.points[0].nodes, 4);
  EXPECT_EQ(fitted.points[0].basis, "fitted on the first row");
  ASSERT_EQ(fitted.left_out.size(), 1U);
  EXPECT_THAT(fitted.left_out[0].why, HasSubstr("a device needs"));
  EXPECT_EQ(replay_training("lora.json", ledger.tables, false).points.size(), 2U);
  rows.pop_back();
  const TrainingReplay none = replay_training("lora.json", tables_of_ledger(rows, "lora.json").tables, true);
  EXPECT_TRUE(none.points.empty());
  EXPECT_EQ(none.left_out.back().why, "has one row that may fit into memory, and none to predict");
}

// One submitter may have machines of several kinds.
TEST(Ledger, EachRowHasItsOwnMachine) {
  const LedgerTables ledger =
      tables_of_ledger({a_row("NVIDIA H100-SXM5-80GB", 1, 4), a_row("NVIDIA H100-SXM5-80GB", 1, 8)}, "resnet.json");
  const TrainingReplay fitted = replay_training("resnet.json", ledger.tables, true);
  const TrainingReplay stated = replay_training("resnet.json", ledger.tables, false);
  ASSERT_EQ(fitted.points.size(), 1U);
  ASSERT_EQ(stated.points.size(), 2U);
  const double slowness = stated.points[0].predicted / stated.points[0].measured;
  EXPECT_NEAR(fitted.points[0].predicted * slowness / stated.points[1].predicted, 1, 0.02);
}

}  // namespace
}  // namespace tandem::validation
