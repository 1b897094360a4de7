// The jobs of docs/ci.md, executed as GitHub and GitLab execute them, but for the installation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string contents_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

const YamlNode* find(const YamlNode& map, const std::string& key) {
  for (const YamlNode::Entry& entry : map.entries) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
}

struct CiScript {
  std::string job;
  std::string name;  // of the step; empty on GitLab
  std::string text;
};

// The documents of the page, by the line that each must have.
std::string block_with(const std::string& line) {
  const std::string page = contents_of(fs::path(TANDEM_SOURCE_DIR) / "docs" / "ci.md");
  const std::size_t found = page.find("\n" + line + "\n");
  EXPECT_NE(found, std::string::npos) << line;
  const std::size_t begin = page.rfind("```yaml\n", found) + 8;
  return page.substr(begin, page.find("```\n", begin) - begin);
}

std::vector<CiScript> github_scripts() {
  std::vector<CiScript> scripts;
  const YamlDocument document = YamlDocument::parse(block_with("jobs:"), "github.yaml");
  for (const YamlNode::Entry& job : find(document.root(), "jobs")->entries) {
    for (const YamlNode* step : find(*job.value, "steps")->items) {
      const YamlNode* run = find(*step, "run");
      if (run != nullptr) scripts.push_back({job.key, find(*step, "name")->text, run->text});
    }
  }
  return scripts;
}

std::vector<CiScript> gitlab_scripts() {
  std::vector<CiScript> scripts;
  const YamlDocument document = YamlDocument::parse(block_with("stages: [timings]"), "gitlab.yaml");
  for (const YamlNode::Entry& job : document.root().entries) {
    const YamlNode* script = find(*job.value, "script");
    if (script == nullptr) continue;
    std::string text = "set -eo pipefail\n";
    for (const YamlNode* line : script->items) text += line->text + "\n";
    scripts.push_back({job.key, "", text});
  }
  return scripts;
}

class CiExamples : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tandem-ci-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* name : {"gate", "measured", "base"}) fs::create_directory(folder_ / name);
    const fs::path examples = fs::path(TANDEM_SOURCE_DIR) / "scenarios" / "examples";
    fs::copy_file(examples / "mesh.yaml", folder_ / "gate" / "mesh.yaml");
    std::ofstream(folder_ / "measured" / "small.yaml")
        << "schema_version: 1\nworkload: {kind: mlp, batch: 32, hidden: [16]}\n"
           "devices: {type: cpu, per_worker: 1}\nsteps: 12\nwarmup_steps: 2\n";
    fs::create_symlink(TANDEM_BINARY_DIR "/tandem", folder_ / "base" / "tandem");
    ASSERT_EQ(bash("tandem check gate --baseline gate/golden --update\n"), 0) << contents_of(folder_ / "out.txt");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // As GitHub calls it: docs.github.com, "Workflow syntax", jobs.<job_id>.steps[*].shell.
  int bash(const std::string& script) const {
    std::ofstream(folder_ / "script.sh") << script;
    const std::string command =
        "cd " + folder_.string() + " && env PATH=" TANDEM_BINARY_DIR ":\"$PATH\" HOME=" + folder_.string() +
        " GITHUB_ACTIONS=true CI=true GITHUB_STEP_SUMMARY=" + (folder_ / "summary.md").string() +
        " bash --noprofile --norc -eo pipefail script.sh > out.txt 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
  }
  const fs::path& folder() const { return folder_; }
  void make_golden_slower() const {
    std::string text = contents_of(folder_ / "gate/golden/mesh.json");
    const std::size_t place = text.find("\"median\": ") + 10;
    std::ofstream(folder_ / "gate/golden/mesh.json") << text.insert(place, "1");
  }

 private:
  fs::path folder_;
};

TEST_F(CiExamples, OfGitHubRunInItsShell) {
  const std::vector<CiScript> scripts = github_scripts();
  int executed = 0;
  for (const CiScript& script : scripts) {
    if (script.name == "Install Tandem") continue;
    const int status = bash(script.text);
    // A comparison on a machine that is in use may find what it likes, but never stops half-way.
    EXPECT_THAT(status, testing::AnyOf(0, script.job == "pull_request" ? 1 : 0))
        << script.job << ": " << contents_of(folder() / "out.txt");
    EXPECT_NE(contents_of(folder() / "junit.xml").find("<testsuites "), std::string::npos) << script.job;
    fs::remove(folder() / "junit.xml");
    ++executed;
  }
  EXPECT_EQ(executed, 3);
  EXPECT_EQ(contents_of(folder() / "summary.md").find("### tandem check: "), 0U);
  EXPECT_TRUE(fs::exists(folder() / "timings/history.jsonl"));
}

TEST_F(CiExamples, OfGitLabRunInItsShell) {
  const std::vector<CiScript> scripts = gitlab_scripts();
  ASSERT_EQ(scripts.size(), 3U);
  EXPECT_EQ(bash(scripts[0].text), 0) << contents_of(folder() / "out.txt");
  // A comparison on a machine that is in use may find what it likes.
  EXPECT_THAT(bash(scripts[1].text), testing::AnyOf(0, 1, 6)) << contents_of(folder() / "out.txt");
  EXPECT_NE(contents_of(folder() / "junit.xml").find("<testsuites "), std::string::npos);
  EXPECT_EQ(bash(scripts[2].text), 6) << "the first launch: " << contents_of(folder() / "out.txt");
}

TEST_F(CiExamples, FailWhenATimeHasChanged) {
  make_golden_slower();
  for (const std::vector<CiScript>& scripts : {github_scripts(), gitlab_scripts()}) {
    for (const CiScript& script : scripts) {
      if (script.job != "simulated" || script.name == "Install Tandem") continue;
      EXPECT_EQ(bash(script.text), 1) << script.text << contents_of(folder() / "out.txt");
      EXPECT_NE(contents_of(folder() / "out.txt").find("::error file=gate/mesh.yaml,line=1,"), std::string::npos);
    }
  }
}

TEST_F(CiExamples, AreShellThatShellcheckAccepts) {
  if (std::system("shellcheck --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "shellcheck is not installed";
  for (const std::vector<CiScript>& scripts : {github_scripts(), gitlab_scripts()}) {
    for (const CiScript& script : scripts) {
      std::ofstream(folder() / "checked.sh") << "#!/bin/bash\n" << script.text;
      EXPECT_EQ(std::system(("shellcheck " + (folder() / "checked.sh").string()).c_str()), 0) << script.text;
    }
  }
}

}  // namespace
}  // namespace tandem
