// The corpus of tests/reports/nccl_tests: good/ is read as it says here, each file of broken/ reports exactly what the
// .expect file beside it says.
#include "reports/nccl_tests_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/reports/corpus.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
const fs::path kCorpus = TANDEM_SOURCE_DIR "/tests/reports/nccl_tests";

std::vector<CollectiveTable> read_good(const std::string& name, const CollectiveTable& stated = {}) {
  return read_nccl_tests(read_input_file(kCorpus / "good" / name), name, stated);
}

class BrokenLog : public testing::TestWithParam<fs::path> {};

TEST_P(BrokenLog, ReportsExactlyWhatIsWrong) {
  expect_problems(GetParam(), [](const std::string& text, const std::string& file) { read_nccl_tests(text, file); });
}

INSTANTIATE_TEST_SUITE_P(NcclTests, BrokenLog, testing::ValuesIn(corpus_files(kCorpus / "broken")), corpus_name);

void expect_usual_table(const CollectiveTable& table) {
  EXPECT_EQ(table.operation, "all_reduce");
  EXPECT_EQ(table.dtype, "float");
  EXPECT_EQ(table.redop, "sum");
  EXPECT_EQ(table.root, -1);
  EXPECT_EQ(table.devices, 8);
  ASSERT_EQ(table.rows.size(), 6u);
  EXPECT_EQ(table.rows.front().bytes, 1024);
  EXPECT_EQ(table.rows.front().count, 256);
  EXPECT_EQ(table.rows.front().out_of_place_us, 20.11);
  EXPECT_EQ(table.rows.back().bytes, 1 << 20);
  EXPECT_EQ(table.rows.back().time_us(), 70.66);
}

TEST(NcclTestsReader, ReadsATable) {
  const auto tables = read_good("plain.txt");
  ASSERT_EQ(tables.size(), 1u);
  expect_usual_table(tables[0]);
  EXPECT_EQ(tables[0].nodes, 1);
  EXPECT_EQ(tables[0].devices_per_process, 1);
  EXPECT_EQ(tables[0].rows[0].in_place_us, 20.11);
  EXPECT_EQ(tables[0].rows[0].wrong, 0);
  EXPECT_EQ(tables[0].file, "plain.txt");
  EXPECT_EQ(tables[0].line, 15);
}

TEST(NcclTestsReader, FindsTheTableAmongTheOutputOfOthers) {
  const auto tables = read_good("mixed.txt");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].operation, "all_reduce");  // by the command line
  EXPECT_EQ(tables[0].devices, 16);
  EXPECT_EQ(tables[0].nodes, 2);
  EXPECT_EQ(tables[0].nccl_version, "2.20.5");
  EXPECT_EQ(tables[0].rows.size(), 6u);
}

TEST(NcclTestsReader, SeesThroughThePrefixesOfLaunchers) {
  for (const char* name : {"prefixed.txt", "slurm_labels.txt"}) {
    const auto tables = read_good(name);
    ASSERT_EQ(tables.size(), 1u) << name;
    expect_usual_table(tables[0]);
  }
}

TEST(NcclTestsReader, ReadsEveryTableOfAFile) {
  const auto tables = read_good("several.txt");
  ASSERT_EQ(tables.size(), 2u);
  expect_usual_table(tables[0]);
  EXPECT_EQ(tables[1].operation, "all_gather");
  EXPECT_EQ(tables[1].devices, 8);
  const auto types = read_good("two_types.txt");
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[1].dtype, "half");
  EXPECT_EQ(types[1].rows.size(), 6u);
}

TEST(NcclTestsReader, AcceptsMissingColumns) {
  const auto one_group = read_good("out_of_place_only.txt");
  ASSERT_EQ(one_group.size(), 1u);
  expect_usual_table(one_group[0]);
  EXPECT_FALSE(one_group[0].rows[0].in_place_us.has_value());
  const auto old = read_good("old_heading.txt");
  ASSERT_EQ(old.size(), 1u);
  expect_usual_table(old[0]);
  EXPECT_FALSE(old[0].rows[0].wrong.has_value());
  const auto unchecked = read_good("na_wrong.txt");
  ASSERT_EQ(unchecked.size(), 1u);
  expect_usual_table(unchecked[0]);
  EXPECT_FALSE(unchecked[0].rows[0].wrong.has_value());
}

// A row's figures and counts say what nothing else does.
TEST(NcclTestsReader, FindsOutWhatAnExcerptDoesNotSay) {
  const auto tables = read_good("excerpt.txt");
  ASSERT_EQ(tables.size(), 1u);
  expect_usual_table(tables[0]);
  EXPECT_EQ(tables[0].nodes, 0);
  EXPECT_EQ(tables[0].devices_per_process, 0);
}

TEST(NcclTestsReader, LeavesOutRowsWithoutBytes) {
  const auto tables = read_good("zero_rows.txt");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].operation, "all_gather");
  EXPECT_EQ(tables[0].rows.size(), 6u);
}

TEST(NcclTestsReader, CountsTheDevicesOfAProcess) {
  const auto tables = read_good("one_process.txt");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].devices, 8);
  EXPECT_EQ(tables[0].devices_per_process, 8);
}

TEST(NcclTestsReader, ReadsTheJsonOfEveryVersion) {
  for (const char* name : {"json_v1.json", "json_v3.json"}) {
    const auto tables = read_good(name);
    ASSERT_EQ(tables.size(), 1u) << name;
    EXPECT_EQ(tables[0].operation, "all_reduce");
    EXPECT_EQ(tables[0].devices, 16);
    EXPECT_EQ(tables[0].nodes, 2);
    EXPECT_EQ(tables[0].nccl_version, "2.27.3");
    ASSERT_EQ(tables[0].rows.size(), 6u);
    EXPECT_EQ(tables[0].rows[5].out_of_place_us, 70.66);
    EXPECT_FALSE(tables[0].rows[5].in_place_us.has_value());
  }
}

TEST(NcclTestsReader, TakesWhatTheCallerKnows) {
  CollectiveTable stated;
  stated.operation = "all_to_all";
  const std::string text = read_input_file(kCorpus / "broken" / "collective_unknown.txt");
  const auto tables = read_nccl_tests(text, "log", stated);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].operation, "all_to_all");
  stated.operation = "all_gather";
  EXPECT_THROW(read_good("plain.txt", stated), InputError);
  stated = {};
  stated.devices = 8;
  const auto broadcast = read_nccl_tests(read_input_file(kCorpus / "broken" / "devices_unknown.txt"), "log", stated);
  EXPECT_EQ(broadcast.at(0).devices, 8);
}

TEST(NcclTestsReader, KnowsTheWordsOfNcclTests) {
  EXPECT_EQ(operation_of_test("/opt/nccl-tests/build/alltoall_perf"), "all_to_all");
  EXPECT_EQ(operation_of_test("sendrecv_perf"), "send_receive");
  EXPECT_EQ(operation_of_test("mpirun"), "");
  EXPECT_EQ(dtype_of_nccl("half"), DType::f16);
  EXPECT_EQ(dtype_of_nccl("int8"), DType::u8);
  EXPECT_EQ(nccl_word_of(DType::bf16), "bfloat16");
  EXPECT_EQ(bus_factor("all_reduce", 8), 1.75);
  EXPECT_FALSE(bus_factor("alltoallv", 8).has_value());
}

}  // namespace
}  // namespace tandem
