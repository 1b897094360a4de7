#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class Usage : public CommandLine {
 protected:
  void expect_usage_error(const std::vector<std::string>& arguments, const std::string& message) const {
    const Outcome outcome = tandem(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
};

TEST_F(Usage, PrintsVersions) {
  const Outcome outcome = tandem({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::StartsWith("tandem 0."));
  EXPECT_THAT(outcome.out, HasSubstr("engines: "));
  const bool has_cuda = outcome.out.find("cuda,") != std::string::npos;
  const auto versions =
      testing::ContainsRegex("\ncuda [0-9]+\\.[0-9]+\ncublas [0-9.]+\nnccl [0-9]+\\.[0-9]+\\.[0-9]+\n");
  if (has_cuda) {
    EXPECT_THAT(outcome.out, versions);
  }
}

TEST_F(Usage, PrintsVersionsAsJson) {
  for (const auto& arguments : {std::vector<std::string>{"--version", "--json"}, {"--json", "--version"}}) {
    const Outcome outcome = tandem(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    const auto json = outcome.json();
    EXPECT_TRUE(json["tandem"].is_string());
    EXPECT_TRUE(json["engines"].is_array());
    EXPECT_TRUE(json.contains("simgrid"));
    EXPECT_TRUE(json.contains("openblas"));
  }
}

TEST_F(Usage, HelpIsAResult) {
  for (const auto& arguments : {std::vector<std::string>{"--help"}, {"run", "--help"}, {"compare", "-h"}}) {
    const Outcome outcome = tandem(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Usage: "));
    EXPECT_THAT(outcome.err, IsEmpty());
  }
}

TEST_F(Usage, SaysWhatThereIsWhenNothingIsAsked) {
  expect_usage_error({}, "calibrate");
}

TEST_F(Usage, SuggestsCommandsAndOptions) {
  expect_usage_error({"rnu", "x.yaml"}, "tandem: unknown command 'rnu'; did you mean 'run'?");
  expect_usage_error({"run", "x.yaml", "--replica", "2"},
                     "tandem run: unknown option '--replica'; did you mean '--replicas'?");
  expect_usage_error({"compare", "x.yaml", "--enginse=cpu,sim"},
                     "unknown option '--enginse'; did you mean '--engines'?");
  expect_usage_error({"run", "x.yaml", "--cross-device-ops", "hierarchical_cpy"}, "did you mean 'hierarchical_copy'?");
}

TEST_F(Usage, NamesWhatIsMissingOrTooMuch) {
  expect_usage_error({"run"}, "scenario is required");
  expect_usage_error({"check", "x.yaml"}, "one of --baseline, --against and --history is required");
  expect_usage_error({"run", "x.yaml", "y.yaml"}, "unexpected argument 'y.yaml'");
  expect_usage_error({"run", "x.yaml", "--replicas", "0"}, "--replicas");
  expect_usage_error({"run", "x.yaml", "--values", "some"}, "some");
  expect_usage_error({"compare", "x.yaml", "--engines", "cpu"}, "--engines");
  expect_usage_error({"calibrate", "--engine", "sim"}, "engine 'sim' models a machine, must be one");
  expect_usage_error({"calibrate", "--device-type", "tpu"}, "tpu");
  expect_usage_error({"calibrate", "--dtypes", "f32,f12"}, "'f12' is no element type");
  expect_usage_error({"calibrate", "--devices", "0"}, "--devices");
  expect_usage_error({"compare", "x.yaml", "--device-type", "gpus"}, "gpus");
  expect_usage_error({"check", "x.yaml", "--baseline", "b", "--tolerance", "5"},
                     "expected a percentage such as 5%, found '5'");
  expect_usage_error({"check", "x.yaml", "--baseline", "b", "--max-step-time", "fast"}, "found 'fast'");
}

TEST_F(Usage, PrintsTheSchema) {
  const Outcome outcome = tandem({"schema"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.json()["$schema"], "http://json-schema.org/draft-07/schema#");
}

}  // namespace
}  // namespace tandem
