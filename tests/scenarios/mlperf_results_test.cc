// Folders of MLPerf's results: logs, systems and configurations become rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>

#include "scenarios/validation/ledger/mlperf_results.h"
#include "scenarios/validation/validate.h"

namespace tandem::validation {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string entry(const std::string& key, const std::string& value) {
  return R"(3: :::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": ")" + key +
         R"(", "value": )" + value + R"(, "metadata": {"lineno": 7}})" + "\n";
}

TEST(MlperfLog, HasTheBatchAndTheTimeOfAStep) {
  std::string text = "some words\n" + entry("global_batch_size", "256") + entry("loss", R"("not a number")");
  for (const int rate : {1, 1, 1, 1, 1, 512, 1024, 1024}) {
    text += entry("tracked_stats", R"({"loss": 3, "throughput": )" + std::to_string(rate) + "}");
  }
  MlperfLog log = read_mlperf_log(text);
  EXPECT_EQ(log.batch, 256);
  EXPECT_EQ(log.step_s, 0.25) << "the first five are warm-up";
  for (int i = 0; i < 7; ++i) text += entry("tracked_stats", R"({"train_step_time": "2.5"})");
  EXPECT_EQ(read_mlperf_log(text).step_s, 2.5) << "rather than from rates";
  text = entry("global_batch_size", "256");
  for (const int rate : {1, 512, 512, 512}) {
    text += entry("tracked_stats", R"({"imgs_sec": )" + std::to_string(rate) + "}");
  }
  EXPECT_EQ(read_mlperf_log(text).step_s, 0.5) << "few are of whole epochs";
  log = read_mlperf_log(entry("global_batch_size", R"("8")") + ":::MLLOG {\"key\": \n:::MLLOG []\n");
  EXPECT_EQ(log.batch, 8);
  EXPECT_EQ(log.step_s, 0);
}

TEST(MlperfSettings, AreWhatAConfigurationExports) {
  EXPECT_THAT(read_mlperf_settings("source x.sh\n"
                                   "export TP=4   # a comment\n"
                                   " export NAME=\"${NAME:-some name}\"\n"
                                   ": \"${PP:=8}\"\n"
                                   "export TP=2\n"
                                   "echo export NO=1\n"),
              UnorderedElementsAre(Pair("TP", "2"), Pair("NAME", "some name"), Pair("PP", "8")));
}

class MlperfResults : public testing::Test {
 protected:
  MlperfResults() : folder_(std::filesystem::temp_directory_path() / ("tandem-mlperf-" + std::to_string(getpid()))) {}
  ~MlperfResults() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void write_system(const std::string& name, int nodes) const {
    write("A/systems/" + name + ".json",
          R"({"number_of_nodes": ")" + std::to_string(nodes) +
              R"(", "accelerators_per_node": 8, "accelerator_model_name": "NVIDIA H100-SXM5-80GB"})");
  }
  void write_log(const std::string& name) const {
    std::string text = entry("global_batch_size", "64");
    for (int i = 0; i < 7; ++i) text += entry("tracked_stats", R"({"throughput": 32})");
    write(name, text);
  }

  std::filesystem::path folder_;
};

TEST_F(MlperfResults, AreRowsOfEachBenchmark) {
  write_system("eight", 8);
  write_log("A/results/eight/gpt3/result_0.txt");
  write_log("A/results/eight/resnet/result_0.txt");
  write("A/benchmarks/gpt3/implementations/nemo/config_DGXH100_8x8x128x4x8.sh", "export TP=4\n");
  write("A/benchmarks/gpt3/implementations/nemo/config_DGXH100_88x8x128x4x8.sh", "export TP=5\n");
  write("A/benchmarks/gpt3/implementations/nemo/config_common.sh", "export TP=6\n");
  const auto rows = read_mlperf(folder_);
  ASSERT_THAT(rows, UnorderedElementsAre(Pair("gpt3", testing::SizeIs(1)), Pair("resnet", testing::SizeIs(1))));
  const LedgerRow& row = rows.at("gpt3").front();
  EXPECT_EQ(row.submitter, "A");
  EXPECT_EQ(row.system, "eight");
  EXPECT_EQ(row.devices(), 64);
  EXPECT_EQ(row.batch, 64);
  EXPECT_EQ(row.step_s, 2);
  EXPECT_THAT(row.settings, UnorderedElementsAre(Pair("TP", "4")));
  EXPECT_TRUE(rows.at("resnet").front().settings.empty());
  EXPECT_EQ(read_mlperf(folder_ / "A").size(), 2U) << "the folder of one submitter";
}

TEST_F(MlperfResults, AFolderWithoutThemIsRefused) {
  write("A/readme.md", "nothing");
  EXPECT_THROW(read_mlperf(folder_), InputError);
  write_log("A/results/eight/gpt3/result_0.txt");
  try {
    read_mlperf(folder_);
    FAIL() << "its system is not described";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("systems/eight.json"));
  }
  write("A/systems/eight.json", "[]");
  try {
    read_mlperf(folder_);
    FAIL() << "its system is no object";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("systems/eight.json"), HasSubstr("no JSON object")));
  }
}

TEST_F(MlperfResults, ArePredicted) {
  const Validation validation =
      validate_mlperf(TANDEM_SOURCE_DIR "/docs/examples/training_results_v2.0", Protocol::links);
  ASSERT_EQ(validation.training.size(), 2U);
  EXPECT_EQ(validation.training[0].run, "v2.0 Somebody dgx_a100_n1");
  EXPECT_EQ(validation.training[1].nodes, 2);
  EXPECT_TRUE(validation.training[1].apart.empty()) << "its network is stated";
  const Validation fitted =
      validate_mlperf(TANDEM_SOURCE_DIR "/docs/examples/training_results_v2.0", Protocol::first_row);
  ASSERT_EQ(fitted.training.size(), 1U);
  EXPECT_EQ(fitted.training[0].basis, "fitted on the first row");
}

}  // namespace
}  // namespace tandem::validation
