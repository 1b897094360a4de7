#include <sstream>

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
  expect_usage_error({"run", "x.yaml", "--replicas"}, "--replicas");
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

TEST_F(Usage, HelpsWithACommand) {
  const Outcome all = tandem({"help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.out, tandem({"--help"}).out);
  for (const char* command : {"run", "topology", "sweep", "help"}) {
    const Outcome help = tandem({"help", command});
    EXPECT_EQ(help.exit_code, 0) << help.err;
    EXPECT_EQ(help.out, tandem({command, "--help"}).out);
    EXPECT_THAT(help.out, HasSubstr("--"));
  }
  expect_usage_error({"help", "rnu"}, "unknown command 'rnu'; did you mean 'run'?");
  EXPECT_EQ(tandem({"-V"}).out, tandem({"--version"}).out);
}

TEST_F(Usage, AFileMayHaveTheNameOfACommand) {
  std::filesystem::copy_file(example("digits-sim.yaml"), folder() / "check");
  EXPECT_EQ(tandem({"run", "check", "-q"}).exit_code, 0);
}

// One object for each error, whatever its kind.
TEST_F(Usage, PrintsErrorsAsJson) {
  const auto errors_of = [this](std::vector<std::string> arguments, const std::vector<std::string>& form) {
    arguments.insert(arguments.end(), form.begin(), form.end());
    const Outcome outcome = tandem(arguments);
    std::istringstream lines(outcome.err);
    std::vector<nlohmann::json> errors;
    for (std::string line; std::getline(lines, line);) errors.push_back(nlohmann::json::parse(line));
    for (const auto& error : errors) {
      EXPECT_EQ(error["kind"], "error");
      EXPECT_EQ(error["exit_code"], outcome.exit_code);
    }
    EXPECT_NE(outcome.exit_code, 0);
    return errors;
  };
  write("bad.yaml",
        "schema_version: 1\nworkload: {kind: layers, model: resnet50, batch: 0}\nengine: {name: sims}\nsteps: 3\n");
  for (const std::vector<std::string>& form : {std::vector<std::string>{"--errors", "json"}, {"--errors=json"}}) {
    const auto input = errors_of({"run", "bad.yaml"}, form);
    ASSERT_EQ(input.size(), 2u);
    EXPECT_EQ(input[0]["file"], "bad.yaml");
    EXPECT_EQ(input[0]["line"], 2);
    EXPECT_EQ(input[0]["column"], 50);
    EXPECT_EQ(input[0]["path"], "workload.batch");
    EXPECT_EQ(input[0]["message"], "must be from 1 to 268435456, found 0");
    EXPECT_EQ(input[0]["expected"], "from 1 to 268435456");
    EXPECT_EQ(input[1]["suggestion"], "sim");
    EXPECT_THAT(input[1]["expected"].get<std::string>(), HasSubstr("one of cpu"));
    const auto usage = errors_of({"run", "bad.yaml", "--replica", "2"}, form);
    ASSERT_EQ(usage.size(), 1u);
    EXPECT_EQ(usage[0]["suggestion"], "--replicas");
    EXPECT_TRUE(usage[0]["file"].is_null());
    EXPECT_EQ(errors_of({"run", "nowhere.yaml"}, form).size(), 1u);
    EXPECT_EQ(errors_of({"rnu"}, form).size(), 1u);
    EXPECT_EQ(errors_of({"run", example("digits.yaml"), "--engine", "abacus"}, form)[0]["exit_code"], 4);
  }
  const Outcome as_text = tandem({"run", "bad.yaml", "--errors", "text"});
  EXPECT_THAT(as_text.err, HasSubstr("bad.yaml:2:50: workload.batch: must be from 1 to 268435456, found 0\n"));
  expect_usage_error({"run", "x.yaml", "--errors", "xml"}, "--errors");
}

TEST_F(Usage, PrintsTheSchema) {
  const Outcome outcome = tandem({"schema"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.json()["$schema"], "http://json-schema.org/draft-07/schema#");
}

}  // namespace
}  // namespace tandem
