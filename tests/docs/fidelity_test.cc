// The simulated part of docs/fidelity.md is what the commands print: below each line
//   <!-- $ tandem ... -->
// a code block holds the command's output. With TANDEM_UPDATE_DOCS=1 in the environment the page is written anew.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

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
  std::ifstream in(kPage);
  const std::string page(std::istreambuf_iterator<char>(in), {});
  ASSERT_NE(page.find(kMark), page.npos);
  const std::string now = regenerated(page);
  if (std::getenv("TANDEM_UPDATE_DOCS") != nullptr) std::ofstream(kPage) << now;
  EXPECT_EQ(page, now) << "docs/fidelity.md is not what the model predicts today; if that is meant, run this test with "
                          "TANDEM_UPDATE_DOCS=1 and look at the difference";
}

}  // namespace
}  // namespace tandem
