// The simulated part of docs/fidelity.md is what the commands print: below each line
//   <!-- $ tandem ... -->
// a code block holds the command's output. With TANDEM_UPDATE_DOCS=1 in the environment the page is written anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "reports/error_bands.h"

namespace tandem {
namespace {

const std::string kPage = TANDEM_SOURCE_DIR "/docs/fidelity.md";
constexpr std::string_view kMark = "<!-- $ ";

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

// The page with the present output of every command.
std::string regenerated(const std::string& page) {
  std::istringstream in(page);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    result += line + "\n";
    if (!line.starts_with(kMark)) continue;
    const std::string command = line.substr(kMark.size(), line.rfind(" -->") - kMark.size());
    result += "```\n" + output_of(command);
    if (result.ends_with("\n\n")) result.pop_back();
    result += "```\n";
    std::getline(in, line);
    EXPECT_EQ(line, "```") << "no code block below " << command;
    while (std::getline(in, line) && line != "```") {
    }
  }
  return result;
}

TEST(Fidelity, ShowsWhatTheCommandsPrint) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what the commands print does not depend on a sanitizer, and with one they take over half an hour";
#endif
  std::ifstream in(kPage);
  const std::string page(std::istreambuf_iterator<char>(in), {});
  ASSERT_NE(page.find(kMark), page.npos);
  const std::string now = regenerated(page);
  if (std::getenv("TANDEM_UPDATE_DOCS") != nullptr) std::ofstream(kPage) << now;
  EXPECT_EQ(page, now) << "docs/fidelity.md is not what the model predicts today; if that is meant, run this test with "
                          "TANDEM_UPDATE_DOCS=1 and look at the difference";
}

std::string fidelity_page() {
  std::ifstream in(kPage);
  return {std::istreambuf_iterator<char>(in), {}};
}

constexpr std::array kGroups = {PredictionGroup::one_device,       PredictionGroup::one_node,
                                PredictionGroup::several_nodes,    PredictionGroup::several_nodes_mesh,
                                PredictionGroup::parameter_server, PredictionGroup::central_storage};

// What the command printed into the page.
std::string printed_by(const std::string& command) {
  const std::string page = fidelity_page();
  const std::size_t place = page.find(std::string(kMark) + command + " -->");
  EXPECT_NE(place, page.npos) << command;
  const std::size_t begin = page.find("```", place);
  return page.substr(begin, page.find("\n```", begin) - begin);
}

// The row of a group in the table of predictions: rows, median, p95. Empty if it has none.
std::vector<double> row_of(const std::string& printed, PredictionGroup group) {
  const std::size_t table = printed.find("\npredictions of ");
  EXPECT_NE(table, printed.npos);
  const std::string label = "\n" + std::string(name_of(group)) + "  ";
  const std::size_t place = printed.find(label, table);
  if (place == printed.npos) return {};
  std::istringstream row(printed.substr(place + label.size(), 80));
  std::vector<double> numbers(3);
  for (double& number : numbers) row >> number;
  return numbers;
}

TEST(Fidelity, HasTheBandsOfPredictions) {
  for (const bool is_fitted : {false, true}) {
    const std::string printed = printed_by("tandem validate tests/validation/training --summary" +
                                           std::string(is_fitted ? " --protocol first-row" : ""));
    for (const PredictionGroup group : kGroups) {
      const auto row = row_of(printed, group);
      const auto errors = errors_of(group, is_fitted);
      ASSERT_EQ(errors.has_value(), !row.empty()) << name_of(group) << (is_fitted ? ", fitted" : "");
      if (!errors) continue;
      EXPECT_EQ(errors->rows, row[0]) << name_of(group);
      EXPECT_NEAR(errors->p95, row[2] / 100, 1e-9) << name_of(group);
    }
  }
}

// The errors in "| digits | 2 | 2.8 ms | 2.7 ms | -2.1, disturbed, +0.4 | 1.2 % | idle -1.5 |", in percent.
std::vector<double> errors_in(const std::string& row, int& devices) {
  std::istringstream fields(row);
  std::string field;
  std::vector<std::string> cells;
  while (std::getline(fields, field, '|')) cells.push_back(field);
  std::vector<double> errors;
  if (cells.size() < 6 || cells[2].find_first_of("0123456789") == std::string::npos) return errors;
  devices = std::stoi(cells[2]);
  std::istringstream launches(cells[5]);
  while (std::getline(launches, field, ',')) {
    if (field.find("disturbed") == std::string::npos) errors.push_back(std::abs(std::stod(field)));
  }
  return errors;
}

// 19 of 20 launches: the nearest rank.
double p95_of_launches(std::vector<double> errors) {
  std::ranges::sort(errors);
  return errors.at((errors.size() * 19 + 19) / 20 - 1);
}

TEST(Fidelity, HasTheBandsOfACalibratedMachine) {
  const std::string page = fidelity_page();
  const std::size_t begin = page.find("| scenario | devices | measured | simulated | errors, % |");
  ASSERT_NE(begin, page.npos);
  std::istringstream rows(page.substr(begin, page.find("\n\n", begin) - begin));
  std::map<bool, std::vector<double>> errors;  // by whether devices are more than the two cores
  for (std::string line; std::getline(rows, line);) {
    int devices = 0;
    const std::vector<double> of_row = errors_in(line, devices);
    errors[devices > 2].insert(errors[devices > 2].end(), of_row.begin(), of_row.end());
  }
  for (const bool is_short : {false, true}) {
    const ErrorBand band =
        error_band_of({.figures = FigureBasis::calibrated, .on_gpus = false, .is_short_of_cores = is_short});
    EXPECT_THAT(band.basis, testing::StartsWith(std::to_string(errors[is_short].size()) + " comparisons"));
    EXPECT_NEAR(band.relative.value(), p95_of_launches(errors[is_short]) / 100, 1e-9);
  }
}

}  // namespace
}  // namespace tandem
