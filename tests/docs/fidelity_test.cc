// The simulated part of docs/fidelity.md is what the commands print: below each line
//   <!-- $ tandem ... -->
// a code block holds the command's output. With TANDEM_UPDATE_DOCS=1 in the environment the page is written anew.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "reports/expectation.h"

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

// The row of the table of fitted training throughputs: rows, mean, median, p95.
std::array<double, 4> row_of_all(const std::string& label) {
  const std::string page = fidelity_page();
  const std::size_t place = page.find("\n" + label);
  EXPECT_NE(place, page.npos) << label;
  std::istringstream row(page.substr(page.find(" all ", place) + 5, 80));
  std::array<double, 4> numbers{};
  for (double& number : numbers) row >> number;
  return numbers;
}

TEST(Fidelity, HasTheBandsOfExpectations) {
  for (const int workers : {1, 2}) {
    const auto row = row_of_all(workers == 1 ? "multi_worker_mirrored  one node, with those apart "
                                             : "multi_worker_mirrored  several nodes, with those apart ");
    const ErrorBand band = error_band_of("vendor", workers);
    EXPECT_EQ(std::string(band.basis).substr(0, std::to_string(static_cast<int>(row[0])).size()),
              std::to_string(static_cast<int>(row[0])));
    EXPECT_NEAR(band.relative, row[3] / 100, 1e-9);
  }
  // The table of two CPU devices: "measured  simulated  error" in rows that end in a column of percentages.
  const std::string page = fidelity_page();
  const std::size_t begin = page.find("## Two CPU devices"), end = page.find("Where the errors come from:");
  std::istringstream rows(page.substr(begin, end - begin));
  std::vector<double> errors;
  for (std::string line; std::getline(rows, line);) {
    const std::size_t unit = line.rfind(" ms ");
    if (unit == line.npos || !(line.starts_with("1 ") || line.starts_with("2 "))) continue;
    errors.push_back(std::abs(std::stod(line.substr(unit + 4))));
  }
  ASSERT_EQ(errors.size(), 16U);
  std::sort(errors.begin(), errors.end());
  EXPECT_NEAR(error_band_of("measured", 1).relative, errors.back() / 100, 1e-9) << "of 16, the 95th percentile";
}

}  // namespace
}  // namespace tandem
