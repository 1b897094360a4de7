// Every file of broken/ reports exactly what it says it must.
#include <gtest/gtest.h>

#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/corpus.h"

namespace tandem {
namespace {

class BrokenScenario : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(BrokenScenario, ReportsExactlyWhatIsWrong) {
  const auto expected = header_lines(read_input_file(GetParam()), "expect");
  ASSERT_FALSE(expected.empty()) << "the file does not say what to expect";
  std::vector<std::string> reported;
  try {
    load_scenario(GetParam());
  } catch (const InputError& error) {
    for (Diagnostic diagnostic : error.diagnostics()) {
      const std::filesystem::path file = diagnostic.file;
      diagnostic.file = file == GetParam() ? "" : file.filename().string();
      reported.push_back(diagnostic.text());
    }
  }
  EXPECT_EQ(reported, expected);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, BrokenScenario, testing::ValuesIn(broken_scenarios()),
                         [](const auto& instance) { return test_name(instance.param); });

}  // namespace
}  // namespace tandem
