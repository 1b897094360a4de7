// The corpus of tests/reports/nccl_tests: good/ is read as it says here, each file of broken/ reports exactly what the
// .expect file beside it says.
#include "reports/nccl_tests/nccl_tests_reader.h"

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

// Someone has put "..." in the places of ranks and of rows.
TEST(NcclTestsReader, KnowsWhatIsLeftOut) {
  const auto tables = read_good("elided.md");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].operation, "all_reduce");
  EXPECT_EQ(tables[0].devices, 8);
  EXPECT_EQ(tables[0].nodes, 1);
  EXPECT_EQ(tables[0].devices_per_process, 1);
  EXPECT_EQ(tables[0].nccl_version, "2.20.3");
  ASSERT_EQ(tables[0].rows.size(), 3u);
  EXPECT_EQ(tables[0].rows[1].bytes, std::int64_t{1} << 31);
  EXPECT_EQ(tables[0].left_out, "ranks (line 8) and rows (line 16)");
  EXPECT_EQ(read_good("plain.txt")[0].left_out, "");
}

std::string plain_text() {
  return read_input_file(kCorpus / "good" / "plain.txt");
}

// Changes every line of the plain table.
template <typename Change>
std::string changed(Change change) {
  std::string result, rest = plain_text();
  for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
    result += change(rest.substr(0, end)) + "\n";
    rest.erase(0, end + 1);
  }
  return result;
}

TEST(NcclTestsReader, ReadsTablesAsTheyArePasted) {
  const auto expect_usual = [](const std::string& text, const char* how) {
    const auto tables = read_nccl_tests(text, "x");
    ASSERT_EQ(tables.size(), 1u) << how;
    expect_usual_table(tables[0]);
    EXPECT_EQ(tables[0].nodes, 1) << how;
  };
  for (const char* prefix : {"> ", ">> ", "gpu-a: ", "[1,0]<stdout>:", "0: ", "2025-11-02 10:11:12,345 ", "\x1b[0m"}) {
    expect_usual(changed([&](const std::string& line) { return prefix + line; }), prefix);
  }
  const auto is_row = [](const std::string& line) { return line.find("float") != line.npos && line[0] != '#'; };
  expect_usual(changed([&](const std::string& line) { return is_row(line) ? "\x1b[1;32m" + line + "\x1b[0m" : line; }),
               "colours");
  expect_usual(changed([](std::string line) {
                 for (std::size_t at = line.find("  "); at != line.npos; at = line.find("  "))
                   line.replace(at, 2, "\t");
                 return line;
               }),
               "tabs");
  expect_usual("```\n" + plain_text() + "```\n", "fences");
  expect_usual(changed([&](std::string line) {
                 if (!is_row(line)) return line;
                 for (std::size_t at = line.find(' '); at != line.npos; at = line.find(' ')) line.replace(at, 1, "|");
                 return "|" + line + "|";
               }),
               "a table of Markdown");
}

// A narrow window divides the heading and every row before the in-place columns.
TEST(NcclTestsReader, JoinsWrappedLines) {
  const auto tables = read_nccl_tests(changed([](std::string line) {
                                        const bool is_divided =
                                            line.find("float") != line.npos || line.find("busbw") != line.npos;
                                        if (is_divided && line.size() > 77) line.insert(77, "\n");
                                        return line;
                                      }),
                                      "x");
  ASSERT_EQ(tables.size(), 1u);
  expect_usual_table(tables[0]);
  EXPECT_EQ(tables[0].rows[0].in_place_us, 20.11);
}

TEST(NcclTestsReader, CountsTheRanksThatAreLeftOut) {
  const auto devices_of = [](const std::string& ranks) {
    const std::string text = plain_text();
    const std::size_t begin = text.find("#  Rank"), end = text.find("\n#\n", begin);
    const auto tables = read_nccl_tests(text.substr(0, begin) + ranks + text.substr(end), "x");
    return std::pair(tables.at(0).devices, tables.at(0).nodes);
  };
  const auto rank = [](int number, const char* host, int device) {
    return "#  Rank  " + std::to_string(number) + " Group  0 Pid  " + std::to_string(100 + number) + " on  " + host +
           " device  " + std::to_string(device) + " [0x0a] NVIDIA H100\n";
  };
  EXPECT_EQ(devices_of(rank(0, "a", 0) + "# ...\n" + rank(7, "a", 7)), std::pair(8, 1));
  EXPECT_EQ(devices_of(rank(0, "a", 0) + rank(7, "a", 7)), std::pair(8, 1));
  EXPECT_EQ(devices_of(rank(0, "a", 0) + rank(1, "a", 1) + "[...]\n"), std::pair(8, 0));  // by the bandwidths
  EXPECT_EQ(devices_of(rank(0, "a", 0) + "<snip>\n" + rank(7, "b", 3)), std::pair(8, 2));
  EXPECT_EQ(devices_of(rank(0, "a", 0) + "\xe2\x80\xa6\n" + rank(5, "a", 5)),
            std::pair(8, 0));  // the bandwidths know better
}

TEST(NcclTestsReader, AnExcerptMayEndAnywhere) {
  const std::string text = plain_text();
  const auto tables = read_nccl_tests(text.substr(0, text.find("       65536")) + "...\n", "x");
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_THAT(tables[0].left_out, testing::StartsWith("rows (line "));
  EXPECT_LT(tables[0].rows.size(), 6u);
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
