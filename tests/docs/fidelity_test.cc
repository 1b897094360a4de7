// What docs/fidelity.md and the files of docs/fidelity say of predictions is what commands print. A file begins with
//   $ tandem ...
// and goes on with the command's output; the page has tables of these files, and of a file of errors. With
// TANDEM_UPDATE_DOCS=1 in the environment all are written anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "reports/errors/known_errors.h"

namespace tandem {
namespace {

const std::string kPage = TANDEM_SOURCE_DIR "/docs/fidelity.md";
const std::string kBands = TANDEM_SOURCE_DIR "/reports/data/error_bands.json";
const std::string kOutputs = TANDEM_SOURCE_DIR "/docs/fidelity";
constexpr std::string_view kPrompt = "$ ";

std::string output_of(const std::string& command) {
  const std::string shell = "cd '" TANDEM_SOURCE_DIR "' && PATH='" TANDEM_BINARY_DIR ":'\"$PATH\" " + command;
  std::FILE* const pipe = popen(shell.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) output.append(part.data(), n);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 0) << command;
  return output;
}

std::string contents_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool updates_docs() {
  return std::getenv("TANDEM_UPDATE_DOCS") != nullptr;
}

// Tables of models that take minutes to simulate are compared with TANDEM_LARGE_TABLES=1 only.
bool takes_minutes(const std::filesystem::path& output) {
  return output.stem().string().ends_with("-large");
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The errors of a kind of prediction, as a file of docs/fidelity prints them.
struct PrintedErrors {
  std::string points = "-", median = "-", p95 = "-", worst = "-";
};

// The cells of a line, which two or more blanks separate.
std::vector<std::string> table_cells(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find("  ", at), line.size());
    if (end > at) cells.push_back(line.substr(at, end - at));
    at = std::min(line.find_first_not_of(' ', end), line.size());
  }
  return cells;
}

// The table below "predictions of  rows  sites  median  4 of 5  new sites  19 of 20  new sites" in a file, as rows of
// Markdown.
std::string bands_table(const std::string& file) {
  std::istringstream in(contents_of(kOutputs + "/" + file));
  std::string text;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("predictions of")) {
      text =
          "| predictions of | rows | sites | median error | 4 of 5 | new sites | 19 of 20 | new sites |\n"
          "|---|---|---|---|---|---|---|---|\n";
      std::getline(in, line);  // the rule
    } else if (!text.empty()) {
      if (line.empty()) break;
      for (const std::string& cell : table_cells(line)) text += "| " + cell + " ";
      text += "|\n";
    }
  }
  return text;
}

// The lines of a table whose columns are machines, collective, size, points, median, p95, worst; a cell that is empty
// has what is above it.
PrintedErrors collective_errors(const std::string& file, const std::string& machines, const std::string& collective,
                                const std::string& size) {
  std::istringstream in(contents_of(kOutputs + "/" + file));
  std::size_t second = 0, third = 0, fourth = 0;
  std::string above, above_second;
  for (std::string line; std::getline(in, line) && !line.starts_with("predictions of");) {
    if (line.starts_with("machines")) {
      second = line.find("collective"), third = line.find("size"), fourth = line.find("points");
    }
    if (second == 0 || line.size() <= fourth) continue;
    if (line[0] != ' ') above = line.substr(0, second), above_second.clear();
    if (line[second] != ' ') above_second = line.substr(second, third - second);
    const bool is_it = above.starts_with(machines + " ") && above_second.starts_with(collective) &&
                       line.compare(third, size.size() + 1, size + " ") == 0;
    if (!is_it) continue;
    const auto cells = words_of(line.substr(third + size.size()));
    return {.points = cells.at(0), .median = cells.at(1), .p95 = cells.at(2), .worst = cells.at(3)};
  }
  return {};
}

// The lines below "memory of a device".
std::string memory_table() {
  std::string text = "| table | published peak | rows | median | worst | within 5 % |\n|---|---|---|---|---|---|\n";
  std::istringstream in(contents_of(kOutputs + "/training.txt"));
  bool is_below = false;
  for (std::string line; std::getline(in, line);) {
    const auto cells = words_of(line);
    if (is_below && cells.size() < 7) {
      if (line.empty()) break;
      continue;  // the rule below the heading
    }
    if (is_below) {
      text += fmt::format("| {} | {} | {} | {} | {} | {} % |\n", cells[0], cells[1], cells[2], cells[3], cells[4],
                          cells[5]);
    }
    is_below = is_below || (line.starts_with("memory of a device") && line.find("published peak") != line.npos);
  }
  return text;
}

std::string collectives_table() {
  struct Row {
    const char *name, *file, *machines, *collective;
  };
  constexpr auto kSums = "all_reduce, all_gather, reduce_scatter", kAllToAll = "all_to_all";
  constexpr std::array<Row, 7> kRows = {{
      {"one node, nothing fitted", "collectives.txt", "one node", kSums},
      {"several nodes, nothing fitted", "collectives.txt", "several nodes", kSums},
      {"one node, all-to-all, nothing fitted", "collectives.txt", "one node", kAllToAll},
      {"one node, calibrated on every other size", "collectives-sizes.txt", "one node", kSums},
      {"several nodes, calibrated on every other size", "collectives-sizes.txt", "several nodes", kSums},
      {"one node, calibrated on fewer devices", "collectives-ranks.txt", "one node", kSums},
      {"several nodes, calibrated on one", "collectives-nodes.txt", "several nodes", kSums},
  }};
  std::string text =
      "| prediction of | <= 32 KiB | .. 1 MiB | .. 64 MiB | > 64 MiB | worst |\n|---|---|---|---|---|---|\n";
  for (const Row& row : kRows) {
    text += fmt::format("| {} |", row.name);
    double worst = 0;
    for (const char* const size : {"<= 32 KiB", ".. 1 MiB", ".. 64 MiB", "> 64 MiB"}) {
      const PrintedErrors errors = collective_errors(row.file, row.machines, row.collective, size);
      EXPECT_NE(errors.points, "-") << row.name << size;
      text += fmt::format(" {} / {} |", errors.median, errors.p95);
      if (const double error = std::atof(errors.worst.c_str()); std::abs(error) > std::abs(worst)) worst = error;
    }
    text += fmt::format(" {:+.1f} |\n", worst);
  }
  return text;
}

std::string calibrated_table(const KnownErrors& known) {
  std::string text = "| CPU devices of a calibrated machine | launches | band |\n|---|---|---|\n";
  for (const CalibratedErrors& one : known.calibrated) {
    text += fmt::format("| {} devices than cores | {} | {:.1f} |\n", one.is_short_of_cores ? "more" : "no more",
                        one.launches, one.p95 * 100);
  }
  return text;
}

// Whether a command predicts all published measurements of a kind, on which error bands rest.
bool makes_bands(const std::string& command) {
  const std::string training = "tandem validate tests/validation/training --summary",
                    collectives = "tandem validate tests/validation/collectives --summary";
  return command == training || command == training + " --protocol first-row" || command == collectives ||
         command == collectives + " --protocol sizes";
}

// What the command in the first line of a file prints now, below that line. Some also write the errors of bands
// to `bands`.
std::string with_output(const std::string& text, const std::string& bands) {
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_TRUE(first.starts_with(kPrompt)) << first;
  const std::string command = first.substr(kPrompt.size());
  std::string now = first + "\n" + output_of(command + (makes_bands(command) ? " --write-bands '" + bands + "'" : ""));
  if (now.ends_with("\n\n")) now.pop_back();
  return now;
}

// The page with today's tables below their marks.
std::string with_tables(const std::string& page) {
  const KnownErrors known = known_errors_from_json(parse_json(contents_of(kBands), kBands), kBands);
  const std::map<std::string, std::string> tables = {
      {"<!-- training -->", bands_table("training.txt")},
      {"<!-- training, device fitted -->", bands_table("training-first-row.txt")},
      {"<!-- collectives, intervals -->", bands_table("collectives.txt")},
      {"<!-- collectives, calibrated -->", bands_table("collectives-sizes.txt")},
      {"<!-- collectives -->", collectives_table()},
      {"<!-- memory -->", memory_table()},
      {"<!-- reports/data/error_bands.json: calibrated -->", calibrated_table(known)}};
  std::size_t found = 0;
  std::istringstream in(page);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    result += line + "\n";
    const auto table = tables.find(line);
    if (table == tables.end()) continue;
    ++found;
    result += table->second + "\n";
    while (std::getline(in, line) && line.starts_with("|")) {
    }
  }
  EXPECT_EQ(found, tables.size()) << "docs/fidelity.md lacks the mark of a table";
  return result;
}

TEST(Fidelity, ShowsWhatTheCommandsPrint) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what the commands print does not depend on a sanitizer, and with one they take over half an hour";
#endif
  const std::string bands = contents_of(kBands), file = testing::TempDir() + "error_bands.json";
  std::ofstream(file) << bands;
  int outputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kOutputs)) {
    if (entry.path().extension() != ".txt") continue;
    ++outputs;
    if (takes_minutes(entry.path()) && std::getenv("TANDEM_LARGE_TABLES") == nullptr) continue;
    const std::string text = contents_of(entry.path()), now = with_output(text, file);
    if (updates_docs()) std::ofstream(entry.path()) << now;
    EXPECT_EQ(text, now) << entry.path().filename()
                         << " is not what the model predicts today; if that is meant, run "
                            "this test with TANDEM_UPDATE_DOCS=1 and look at the difference";
  }
  EXPECT_GE(outputs, 10);
  const std::string bands_now = contents_of(file);
  std::filesystem::remove(file);
  if (updates_docs()) std::ofstream(kBands) << bands_now;
  EXPECT_EQ(bands, bands_now)
      << "reports/data/error_bands.json does not have the errors of the model of today; if that "
         "is meant, run this test with TANDEM_UPDATE_DOCS=1, build again, and look at the "
         "difference";
}

// Runs after the other, whose files it reads.
TEST(Fidelity, ShowsTheErrorsOnWhichBandsRest) {
  const std::string page = contents_of(kPage), now = with_tables(page);
  if (updates_docs()) std::ofstream(kPage) << now;
  EXPECT_EQ(page, now)
      << "docs/fidelity.md does not have the figures of docs/fidelity and reports/data/error_bands.json; "
         "run this test with TANDEM_UPDATE_DOCS=1";
  EXPECT_EQ(error_bands_file(), contents_of(kBands)) << "the program was built with another file";
}

}  // namespace
}  // namespace tandem
