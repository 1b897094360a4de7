// Damaged descriptions of every kind: each is read, or refused by an InputError, and in little time. The same damage in
// every run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/fuzz/damage.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

constexpr int kMutations = 60;  // of each file

std::vector<std::string> sample_files() {
  std::vector<std::string> files;
  for (const char* folder : {"nccl", "made"}) {
    for (const auto& entry : std::filesystem::directory_iterator(
             std::filesystem::path(TANDEM_SOURCE_DIR "/tests/topologies/samples") / folder)) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Mutations : public testing::TestWithParam<std::string> {};

TEST_P(Mutations, AreReadOrRefused) {
  const std::string text = read_input_file(GetParam());
  fuzz::Damage damage(static_cast<unsigned>(std::filesystem::path(GetParam()).filename().string().size()));
  ImportOptions options;
  options.gpu = "a100";
  for (int i = 0; i < kMutations; ++i) {
    const std::string damaged = damage.of(text);
    if (is_own_topology(damaged)) continue;  // YAML has its own tests
    try {
      import_text(damaged, GetParam(), options);
    } catch (const InputError& error) {
      EXPECT_FALSE(error.diagnostics().empty());
      EXPECT_LE(error.diagnostics().size(), 200u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, Mutations, testing::ValuesIn(sample_files()), [](const auto& instance) {
  std::string name = std::filesystem::path(instance.param).filename().string();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace tandem
