// Every example in the README and in docs/ is executed. In fenced blocks:
//   console   each line "$ tandem ..." runs in order in a scratch folder of its page; "# exit 3" at its end states
//             another exit code than 0. Lines "$ ./start ..." are what runs these tests, and are left out. What
//             measures does so once, even if it is disturbed: the figures are not looked at, and other tests run
//             beside.
//   yaml      a whole file (it begins with schema_version) is read: as a scenario, or as a topology when it has no
//             workload but a cluster or nodes, or as measured throughputs.
//   cpp       is a file of docs/examples, which the build compiles, or whole lines of one.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/fitting/device_fit.h"
#include "scenarios/scenario/scenario.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string kind;
  int line = 0;
  std::vector<std::string> lines;
};

std::vector<Block> blocks_of(const fs::path& page) {
  std::vector<Block> blocks;
  std::ifstream in(page);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({.kind = line.substr(3), .line = number, .lines = {}});
    } else if (inside) {
      blocks.back().lines.push_back(line);
    }
  }
  EXPECT_FALSE(inside) << page << ": a code block is not closed";
  return blocks;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found = {fs::path(TANDEM_SOURCE_DIR) / "README.md"};
  for (const auto& entry : fs::directory_iterator(fs::path(TANDEM_SOURCE_DIR) / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool is_in_an_example(const std::string& text) {
  for (const auto& entry : fs::directory_iterator(fs::path(TANDEM_SOURCE_DIR) / "docs" / "examples")) {
    if (entry.path().extension() != ".cc") continue;
    std::ifstream in(entry.path());
    const std::string source = "\n" + std::string(std::istreambuf_iterator<char>(in), {});
    if (source.find("\n" + text) != std::string::npos) return true;
  }
  return false;
}

std::string measured_once(std::string command) {
  for (const std::string measures : {"tandem calibrate --quick", "tandem compare scenarios/"}) {
    if (command.starts_with(measures)) command.insert(measures.find(' ', sizeof("tandem")), " --tries 1");
  }
  return command;
}

class Examples : public testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override {
    scratch_ =
        fs::temp_directory_path() / ("tandem-docs-" + GetParam().stem().string() + "-" + std::to_string(getpid()));
    fs::create_directories(scratch_);
    for (const char* folder : {"docs", "scenarios", "topologies", "tests"}) {
      fs::create_directory_symlink(fs::path(TANDEM_SOURCE_DIR) / folder, scratch_ / folder);
    }
  }
  void TearDown() override { fs::remove_all(scratch_); }

  void run_command(const std::string& command, int line) const {
    int expected = 0;
    if (const auto comment = command.find("# exit "); comment != std::string::npos) {
      expected = std::stoi(command.substr(comment + 7));
    }
    const std::string shell = "cd '" + scratch_.string() +
                              "' && PATH='" TANDEM_BINARY_DIR ":" TANDEM_EXAMPLES_DIR ":'\"$PATH\" && " + command +
                              " > out.txt 2> err.txt";
    const int status = std::system(("{ " + command_with_redirects(shell)).c_str());
    EXPECT_EQ(WEXITSTATUS(status), expected) << GetParam().filename() << ":" << line << ": " << command << "\n"
                                             << contents("out.txt") << contents("err.txt");
  }
  // The comment of the command would swallow the redirection.
  static std::string command_with_redirects(std::string shell) {
    if (const auto comment = shell.find("# exit "); comment != std::string::npos) {
      const auto redirect = shell.rfind(" > out.txt");
      shell = shell.substr(0, comment) + shell.substr(redirect);
    }
    return shell + "; }";
  }
  std::string contents(const std::string& name) const {
    std::ifstream in(scratch_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path scratch_;
};

TEST_P(Examples, Work) {
  for (const Block& block : blocks_of(GetParam())) {
    std::string text;
    for (std::size_t i = 0; i < block.lines.size(); ++i) {
      const std::string& line = block.lines[i];
      text += line + "\n";
      if (block.kind == "console" && line.starts_with("$ ") && !line.starts_with("$ ./start") &&
          !line.starts_with("$ git")) {
        run_command(measured_once(line.substr(2)), block.line + static_cast<int>(i) + 1);
      }
    }
    if (block.kind == "cpp") {
      EXPECT_TRUE(is_in_an_example(text)) << GetParam() << ":" << block.line << " is in no file of docs/examples";
    }
    if (block.kind != "yaml" || !text.starts_with("schema_version")) continue;
    const fs::path file = scratch_ / "example.yaml";
    std::ofstream(file) << text;
    SCOPED_TRACE(GetParam().filename().string() + ":" + std::to_string(block.line));
    if (text.find("\nthroughput:") != std::string::npos) {
      EXPECT_NO_THROW(read_throughputs(file));
    } else if (text.find("workload:") != std::string::npos) {
      EXPECT_NO_THROW(load_scenario(file.string()));
    } else if (text.find("cluster:") != std::string::npos || text.find("nodes:") != std::string::npos) {
      EXPECT_NO_THROW(read_topology_yaml(file.string()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, Examples, testing::ValuesIn(pages()), [](const auto& page) {
  std::string name = page.param.stem().string();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace tandem
