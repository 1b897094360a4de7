// The simulated part of docs/fidelity.md is what the commands print: below each line
//   <!-- $ tandem ... -->
// a code block holds the command's output, and below the name of a file of errors there are tables of it. With
// TANDEM_UPDATE_DOCS=1 in the environment the file and the page are written anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "reports/known_errors.h"

namespace tandem {
namespace {

const std::string kPage = TANDEM_SOURCE_DIR "/docs/fidelity.md";
const std::string kBands = TANDEM_SOURCE_DIR "/reports/data/error_bands.json";
constexpr std::string_view kMark = "<!-- $ ";
constexpr std::string_view kBandsMark = "<!-- reports/data/error_bands.json: ";

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

// Drops the lines of the old block, from `begin` to `end`, which are not copied.
void skip_block(std::istream& in, std::string_view begin, std::string_view end, const std::string& what) {
  std::string line;
  std::getline(in, line);
  EXPECT_TRUE(line.starts_with(begin)) << "no block below " << what;
  while (std::getline(in, line) && line != end) {
  }
}

std::string percent_cell(const std::optional<GroupErrors>& errors) {
  return errors ? fmt::format("{} | {:.1f}", errors->rows, errors->p95 * 100) : "- | -";
}

std::string published_table(const KnownErrors& known) {
  const auto errors_of = [&](PredictionGroup group, bool is_fitted) {
    const auto found = std::ranges::find_if(
        known.published, [&](const GroupErrors& one) { return one.group == group && one.is_fitted == is_fitted; });
    return found == known.published.end() ? std::nullopt : std::optional(*found);
  };
  std::string text =
      "| published training runs | rows, nothing fitted | p95, % | rows, device fitted | p95, % "
      "|\n|---|---|---|---|---|\n";
  for (const PredictionGroup group : prediction_groups()) {
    text += fmt::format("| {} | {} | {} |\n", name_of(group), percent_cell(errors_of(group, false)),
                        percent_cell(errors_of(group, true)));
  }
  return text;
}

std::string calibrated_table(const KnownErrors& known) {
  std::string text = "| CPU devices of a calibrated machine | launches | p95, % |\n|---|---|---|\n";
  for (const CalibratedErrors& one : known.calibrated) {
    text += fmt::format("| {} devices than cores | {} | {:.1f} |\n", one.is_short_of_cores ? "more" : "no more",
                        one.launches, one.p95 * 100);
  }
  return text;
}

// Whether a command predicts all published training runs, on which error bands rest.
bool makes_bands(const std::string& command) {
  const std::string of_all = "tandem validate tests/validation/training --summary";
  return command == of_all || command == of_all + " --protocol first-row";
}

// The page with the present output of every command, which also write the errors of bands to `bands`.
std::string with_outputs(const std::string& page, const std::string& bands) {
  std::istringstream in(page);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    result += line + "\n";
    if (!line.starts_with(kMark)) continue;
    const std::string command = line.substr(kMark.size(), line.rfind(" -->") - kMark.size());
    result += "```\n" + output_of(command + (makes_bands(command) ? " --write-bands '" + bands + "'" : ""));
    if (result.ends_with("\n\n")) result.pop_back();
    result += "```\n";
    skip_block(in, "```", "```", command);
  }
  return result;
}

// The page with the tables of these errors below their marks.
std::string with_bands(const std::string& page, const std::string& bands) {
  const KnownErrors known = known_errors_from_json(parse_json(bands, kBands), kBands);
  std::istringstream in(page);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    result += line + "\n";
    if (!line.starts_with(kBandsMark)) continue;
    const bool is_published = line.find("published") != std::string::npos;
    result += (is_published ? published_table(known) : calibrated_table(known)) + "\n";
    skip_block(in, "|", "", line);
  }
  return result;
}

TEST(Fidelity, ShowsWhatTheCommandsPrint) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what the commands print does not depend on a sanitizer, and with one they take over half an hour";
#endif
  const std::string page = contents_of(kPage), bands = contents_of(kBands);
  ASSERT_NE(page.find(kMark), page.npos);
  const std::string file = testing::TempDir() + "error_bands.json";
  std::ofstream(file) << bands;
  const std::string page_now = with_outputs(page, file), bands_now = contents_of(file);
  std::filesystem::remove(file);
  if (std::getenv("TANDEM_UPDATE_DOCS") != nullptr) {
    std::ofstream(kPage) << with_bands(page_now, bands_now);
    std::ofstream(kBands) << bands_now;
  }
  EXPECT_EQ(page, page_now) << "docs/fidelity.md is not what the model predicts today; if that is meant, run this test "
                               "with TANDEM_UPDATE_DOCS=1 and look at the difference";
  EXPECT_EQ(bands, bands_now)
      << "reports/data/error_bands.json does not have the errors of the model of today; if that "
         "is meant, run this test with TANDEM_UPDATE_DOCS=1, build again, and look at the "
         "difference";
}

TEST(Fidelity, ShowsTheErrorsOnWhichBandsRest) {
  const std::string page = contents_of(kPage), now = with_bands(page, contents_of(kBands));
  ASSERT_NE(page.find(kBandsMark), page.npos);
  if (std::getenv("TANDEM_UPDATE_DOCS") != nullptr) std::ofstream(kPage) << now;
  EXPECT_EQ(page, now) << "docs/fidelity.md does not have the figures of reports/data/error_bands.json; run this test "
                          "with TANDEM_UPDATE_DOCS=1";
  EXPECT_EQ(error_bands_file(), contents_of(kBands)) << "the program was built with another file";
}

}  // namespace
}  // namespace tandem
