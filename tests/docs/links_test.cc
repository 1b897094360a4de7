// What the pages point at is there: relative links, their anchors, and paths of the repository in backticks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tandem {
namespace {

namespace fs = std::filesystem;

const fs::path kRepository = TANDEM_SOURCE_DIR;

std::vector<fs::path> pages_with_links() {
  std::vector<fs::path> found = {kRepository / "README.md", kRepository / "CONTRIBUTING.md",
                                 kRepository / "CHANGELOG.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRepository / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string page_text(const fs::path& page) {
  std::ifstream in(page);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

// "## tf.distribute.Strategy" -> "tfdistributestrategy", as GitHub makes anchors of headings.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_') anchor += static_cast<char>(std::tolower(byte));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> anchors;
  std::istringstream in(page_text(page));
  for (std::string line; std::getline(in, line);) {
    if (const auto heading = line.find_first_not_of('#'); heading != std::string::npos && heading > 0) {
      anchors.insert(anchor_of(line.substr(heading + 1)));
    }
  }
  return anchors;
}

class Links : public testing::TestWithParam<fs::path> {};

TEST_P(Links, LeadToFilesAndHeadings) {
  const fs::path& page = GetParam();
  for (const std::string& link : matches(page_text(page), R"(\]\(([^)\s]+)\))")) {
    if (link.starts_with("http")) continue;
    const auto hash = link.find('#');
    const std::string file = link.substr(0, hash);
    const fs::path target = file.empty() ? page : page.parent_path() / file;
    EXPECT_TRUE(fs::exists(target)) << page.filename() << " links to " << link;
    if (hash == std::string::npos || !fs::exists(target)) continue;
    EXPECT_TRUE(anchors_of(target).contains(link.substr(hash + 1))) << page.filename() << ": no heading for " << link;
  }
}

TEST_P(Links, PathsInBackticksExist) {
  const char* const path = "`((?:cli|docs|engine|reports|scenarios|strategies|tests|topologies)/[A-Za-z0-9_./-]*)`";
  for (const std::string& name : matches(page_text(GetParam()), path)) {
    EXPECT_TRUE(fs::exists(kRepository / name)) << GetParam().filename() << " names " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, Links, testing::ValuesIn(pages_with_links()), [](const auto& page) {
  std::string name = page.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace tandem
