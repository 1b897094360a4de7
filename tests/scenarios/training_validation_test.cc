// Replays of training tables: what is read, fitted and predicted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "reports/validation/validation.h"
#include "scenarios/validation/ledger/ledger_file.h"
#include "scenarios/validation/training.h"
#include "topologies/base/error.h"
#include "topologies/base/strict_yaml.h"

namespace tandem::validation {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string training_file(const std::string& rows, const std::string& more = "") {
  return R"({"strategy": "mirrored", "unit": "examples/s", "topology": {"node": "dgx1-v100"}, "tables": [{)" + more +
         R"("workload": {"kind": "layers", "model": "resnet50", "dtype": "f16", "batch": 64}, "rows": [)" + rows +
         "]}]}";
}

TEST(TrainingFile, IsToldFromOneOfCollectives) {
  EXPECT_TRUE(is_training_file(training_file("")));
  EXPECT_FALSE(is_training_file(R"({"collective": "all_reduce", "strategy": "x", "tables": []})"));
}

TEST(TrainingFile, HasTheBatchOfOneDevice) {
  const auto tables = parse_training(
      training_file(R"({"devices": 1, "throughput": 1270}, {"devices": 16, "nodes": 2, "throughput": 18000})"),
      "made up");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].workload.batch, 64);
  EXPECT_EQ(tables[0].strategy, "mirrored");
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0].throughput, 1270);
  EXPECT_EQ(tables[0].rows[1].machine.family(), "dgx1-v100, 2 nodes");
}

TEST(TrainingFile, SaysWhatItLacks) {
  const auto lacks = [](const std::string& text) { return parse_training(text, "made up").at(0).lacks; };
  EXPECT_EQ(lacks(R"({"strategy": "mirrored", "tables": [{"topology": {"lacks": "the GPU"}}]})"), "the GPU");
  EXPECT_EQ(lacks(R"({"strategy": "mirrored", "tables": [{"rows": []}]})"), "a 'topology'");
  EXPECT_EQ(lacks(R"({"strategy": "mirrored", "topology": {"node": "dgx2"}, "tables": [{"rows": []}]})"),
            "a 'workload'");
}

TEST(TrainingFile, HasPublishedPeaksOfMemory) {
  const auto tables = parse_training(training_file(R"({"devices": 1, "throughput": 1270, "peak_memory": "7.5GiB"},
                       {"devices": 2, "throughput": 2500, "peak_memory": "8GB", "peak_memory_of": "reserved"},
                       {"devices": 4, "throughput": 5000})"),
                                     "made up");
  const auto& rows = tables.at(0).rows;
  EXPECT_EQ(rows[0].peak->bytes, 8'053'063'680);
  EXPECT_FALSE(rows[0].peak->is_reserved);
  EXPECT_EQ(rows[1].peak->bytes, 8'000'000'000);
  EXPECT_TRUE(rows[1].peak->is_reserved);
  EXPECT_FALSE(rows[2].peak.has_value());
}

TEST(TrainingReplay, PredictsPeaksOfMemoryBesideThePublishedOnes) {
  const std::string workload =
      R"({"kind": "layers", "model": "llama", "sizes": {"layers": 2}, "batch": 8, "dtype": "bf16", "stack": {"attention": "flash", "loss": "separate"}})";
  const std::string row = R"({"devices": 8, "throughput": 10, "peak_memory": "40GB", "workload": )" + workload;
  const auto tables = parse_training(
      R"({"strategy": "fully_sharded", "topology": {"node": "hgx-h100", "power_limited": true}, "tables": [{"workload": )" +
          workload + R"(, "rows": [)" + row + "}, " + row + R"(, "peak_memory_of": "reserved"}]}]})",
      "made up");
  const TrainingReplay replay = replay_training("made up", tables, false);
  ASSERT_EQ(replay.points.size(), 2u);
  const TrainingPoint &allocated = replay.points[0], &reserved = replay.points[1];
  EXPECT_EQ(reserved.predicted_peak - allocated.predicted_peak, 2 * 8192 * 128256) << "the block of the logits";
  EXPECT_EQ(allocated.apart, "power limited");
  Validation validation{.protocol = "links", .training = replay.points};
  EXPECT_THAT(validation_text(validation), HasSubstr("memory of a device  published peak  rows"));
  const auto json = validation_json(validation);
  EXPECT_EQ(json["points"][1]["peak_memory"]["of"], "reserved");
  EXPECT_EQ(json["points"][1]["peak_memory"]["measured"], 40'000'000'000);
  EXPECT_EQ(json["points"][1]["peak_memory"]["predicted"], reserved.predicted_peak);
}

TEST(TrainingFile, ReportsWhatIsWrong) {
  const auto problem = [](const std::string& text) -> std::string {
    try {
      parse_training(text, "t.json");
    } catch (const InputError& error) {
      return error.diagnostics().at(0).text();
    }
    return "";
  };
  EXPECT_THAT(problem(training_file(R"({"devices": 1, "throughput": -5})")),
              HasSubstr("tables[0].rows[0].throughput: must be from 1e-09 to 1e+18, found -5"));
  EXPECT_THAT(problem(training_file(R"({"devices": 1, "throughput": 5, "peak_memory_of": "reserved"})")),
              HasSubstr("tables[0].rows[0].peak_memory_of: is for a 'peak_memory'"));
  EXPECT_THAT(problem(training_file(R"({"devices": 16, "throughput": 5})")),
              HasSubstr("topology: 16 devices on one node of 'dgx1-v100' with 8 GPUs"));
  EXPECT_THAT(problem(training_file(R"({"throughput": 5})")), HasSubstr("tables[0].rows[0]: missing key 'devices'"));
  EXPECT_THAT(problem(training_file(R"({"devices": 1, "throughput": 5})", R"("strategy": "mirored", )")),
              HasSubstr("unknown strategy 'mirored'"));
  EXPECT_THAT(problem(training_file("")), HasSubstr("tables[0]: holds no rows"));
}

std::string gpt_row(int devices, const std::string& strategy, int layers = 2) {
  return R"({"devices": )" + std::to_string(devices) + R"(, "throughput": 100, "strategy": )" + strategy +
         R"(, "workload": {"kind": "layers", "model": "gpt", "sizes": {"tokens": 128, "layers": )" +
         std::to_string(layers) + R"(}, "batch": 8, "dtype": "f16"}})";
}

TEST(TrainingFile, HasRowsWithWorkloadsAndStrategiesOfTheirOwn) {
  const auto tables =
      parse_training(training_file(R"({"devices": 1, "throughput": 500}, )" +
                                   gpt_row(4, R"({"name": "mesh", "tensor": 2, "pipeline": 2, "micro_batches": 4})")),
                     "made up");
  const TrainingTable& table = tables.at(0);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(scenario_of(table, table.rows[0]).workload.batch, 64);
  EXPECT_EQ(scenario_of(table, table.rows[0]).strategy.name, "mirrored");
  const Scenario own = scenario_of(table, table.rows[1]);
  EXPECT_EQ(own.name, "gpt");
  EXPECT_EQ(own.workload.batch, 8);  // of all devices
  EXPECT_EQ(own.strategy.name, "mesh");
  EXPECT_EQ(own.strategy.mesh.micro_batches, 4);
  EXPECT_EQ(own.devices.per_worker, 4);
  const TrainingReplay replay = replay_training("made up", tables, true);
  ASSERT_EQ(replay.points.size(), 1u);
  EXPECT_EQ(replay.points[0].model, "gpt");
  EXPECT_EQ(replay.points[0].strategy, "mesh");
  EXPECT_EQ(replay.points[0].linear, 0);  // another model than that of the first row
  EXPECT_GT(replay.points[0].predicted, 0);
}

TEST(TrainingFile, ReportsRowsThatDoNotDivide) {
  const auto problem = [](const std::string& row) -> std::string {
    try {
      parse_training(training_file(row), "t.json");
    } catch (const InputError& error) {
      return error.diagnostics().at(0).text();
    }
    return "";
  };
  EXPECT_THAT(
      problem(gpt_row(4, R"({"name": "mesh", "tensor": 2})")),
      HasSubstr("tables[0].rows[0]: strategy: a mesh of data 1 x tensor 2 x pipeline 1 needs 2 devices, found 4"));
  EXPECT_THAT(problem(gpt_row(5, R"({"name": "tensor_parallel"})")),
              HasSubstr("strategy.tensor: 5 tensor-parallel devices do not divide the 24 products (heads)"));
  EXPECT_THAT(problem(gpt_row(2, R"({"name": "pipeline_parallel"})", 3)),
              HasSubstr("strategy.pipeline: 2 stages do not divide the 3 blocks 'block' of model 'gpt'"));
  EXPECT_THAT(problem(gpt_row(2, R"("mesh")")),
              HasSubstr("tables[0].rows[0].strategy: expected a map, found the text"));
}

// The device is fitted to the first row, so that the factor between rows is the model's and the level is the table's.
TEST(TrainingReplay, FitsTheFirstRow) {
  const std::string rows = R"({"devices": 1, "throughput": 500}, {"devices": 4, "throughput": 1900})";
  const auto tables = parse_training(training_file(rows), "made up");
  const TrainingReplay links = replay_training("made up", tables, false);
  ASSERT_EQ(links.points.size(), 2u);
  EXPECT_EQ(links.points[0].basis, "device figures");
  EXPECT_EQ(links.points[0].linear, 0);
  const TrainingReplay fitted = replay_training("made up", tables, true);
  ASSERT_EQ(fitted.points.size(), 1u);
  EXPECT_EQ(fitted.points[0].devices, 4);
  EXPECT_EQ(fitted.points[0].basis, "fitted on one device");
  EXPECT_EQ(fitted.points[0].linear, 2000);
  EXPECT_GT(fitted.points[0].predicted, 1500);
  EXPECT_LE(fitted.points[0].predicted, 2000 * 1.001);
}

// What its launches cost is not in the model: the rows of such a framework are told apart from the others.
TEST(TrainingReplay, ReportsOneProcessForSeveralDevicesApart) {
  const auto tables = parse_training(
      training_file(
          R"({"devices": 4, "throughput": 1900}, {"devices": 16, "nodes": 2, "throughput": 7000})",
          R"("strategy": "multi_worker_mirrored", "topology": {"node": "dgx1-v100", "devices_per_process": 8}, )"),
      "made up");
  EXPECT_EQ(scenario_of(tables[0], tables[0].rows[0]).engine.nccl.at("devices_per_process"), "4");
  EXPECT_EQ(scenario_of(tables[0], tables[0].rows[1]).engine.nccl.at("devices_per_process"), "8");
  Validation validation{.protocol = "links", .points = {}, .training = {}, .left_out = {}};
  validation.training = replay_training("made up", tables, false).points;
  ASSERT_EQ(validation.training.size(), 2u);
  EXPECT_EQ(validation.training[0].apart, "several devices a process");
  const std::string text = validation_text(validation);
  EXPECT_THAT(text, HasSubstr("apart: several devices a process, one node"));
  EXPECT_THAT(text, HasSubstr("apart: several devices a process, several nodes"));
  EXPECT_EQ(validation_json(validation)["points"][0]["apart"], "several devices a process");
  EXPECT_THAT(text, Not(HasSubstr("with those apart"))) << "there are no others";
  validation.training.push_back(validation.training[0]);
  validation.training.back().apart.clear();
  EXPECT_THAT(validation_text(validation), HasSubstr("one node, with those apart"));
}

TEST(TrainingReplay, LeavesOutTablesThatCannotBeFitted) {
  const auto why = [](const std::string& rows) {
    return replay_training("made up", parse_training(training_file(rows), "made up"), true).left_out.at(0).why;
  };
  EXPECT_EQ(why(R"({"devices": 2, "throughput": 5})"), "has no row of one device");
  EXPECT_EQ(why(R"({"devices": 1, "throughput": 5})"), "has only one row");
}

// Nothing is dropped in silence: docs/fidelity/training.txt names each file of the open set with its errors, or what it
// lacks.
TEST(OpenTrainingSet, IsReplayedOrListedWithWhatItLacks) {
  const std::string page = read_input_file(TANDEM_SOURCE_DIR "/docs/fidelity/training.txt");
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TANDEM_SOURCE_DIR "/tests/validation/training")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const std::string name = entry.path().filename().string();
    const std::string text = read_input_file(entry.path());
    if (is_ledger_file(text)) {
      EXPECT_FALSE(parse_ledger(text, entry.path().string()).empty());
      EXPECT_THAT(page, HasSubstr(name));
      continue;
    }
    ASSERT_TRUE(is_training_file(text)) << name;
    for (const TrainingTable& table : parse_training(text, entry.path().string())) {
      if (table.lacks.empty()) {
        EXPECT_FALSE(table.rows.empty()) << name;
        EXPECT_THAT(page, HasSubstr(name));
      } else {
        EXPECT_THAT(page, HasSubstr(name + ": does not state " + table.lacks));
      }
    }
  }
  EXPECT_GE(files, 62);
}

}  // namespace
}  // namespace tandem::validation
