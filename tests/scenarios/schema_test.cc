// The JSON Schema and the reader agree: on every example and on every broken file, but for mistakes that a schema
// cannot see, which are marked in the file.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "scenarios/reading/scenario_schema.h"
#include "scenarios/scenario/scenario.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/strategies.h"
#include "tests/scenarios/corpus.h"

namespace tandem {
namespace {

// As an editor's YAML reader understands a file: plain scalars are numbers and booleans where they look so.
nlohmann::json scalar_to_json(const YamlNode& node) {
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "yes") return true;
  if (node.text == "false" || node.text == "no") return false;
  const nlohmann::json number = nlohmann::json::parse(node.text, nullptr, false);
  return number.is_number() ? number : nlohmann::json(node.text);
}

nlohmann::json to_json(const YamlNode& node) {
  if (node.kind == YamlKind::null) return nullptr;
  if (node.kind == YamlKind::scalar) return scalar_to_json(node);
  if (node.kind == YamlKind::list) {
    auto list = nlohmann::json::array();
    for (const YamlNode* item : node.items) list.push_back(to_json(*item));
    return list;
  }
  auto map = nlohmann::json::object();
  for (const YamlNode::Entry& entry : node.entries) map[entry.key] = to_json(*entry.value);
  return map;
}

class Schema {
 public:
  explicit Schema(const std::string& text) : text_(nlohmann::json::parse(text)) {
    const valijson::adapters::NlohmannJsonAdapter adapter(text_);
    valijson::SchemaParser(valijson::SchemaParser::kDraft7).populateSchema(adapter, schema_);
  }
  // What is wrong, or "".
  std::string problems(const nlohmann::json& document) const {
    valijson::ValidationResults results;
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    if (validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(document), &results)) return "";
    std::string text;
    for (valijson::ValidationResults::Error error; results.popError(error);) {
      for (const std::string& part : error.context) text += part;
      text += ": " + error.description + "\n";
    }
    return text;
  }

 private:
  nlohmann::json text_;
  valijson::Schema schema_;
};

std::string schema_problems_of(const std::filesystem::path& path) {
  static const Schema schema(scenario_schema());
  return schema.problems(to_json(YamlDocument::load(path).root()));
}

nlohmann::json property(const nlohmann::json& schema, const char* map, const char* key) {
  return schema["properties"][map]["properties"][key];
}

TEST(ScenarioSchema, IsTheFileCheckedInWithTheNamesOfEveryEngineAndStrategy) {
  EXPECT_EQ(scenario_schema_file(), read_input_file(TANDEM_SOURCE_DIR "/scenarios/scenario.schema.json"));
  const auto file = nlohmann::json::parse(scenario_schema_file()), printed = nlohmann::json::parse(scenario_schema());
  const nlohmann::json engine = property(printed, "engine", "name")["allOf"][0];
  EXPECT_EQ(engine["enum"], nlohmann::json({"cpu", "cuda", "mpi", "sim"})) << "built or not";
  EXPECT_EQ(engine["default"], "cpu");
  const nlohmann::json strategy = property(printed, "strategy", "name")["anyOf"][0];
  EXPECT_EQ(strategy["enum"], nlohmann::json(strategy_names()));
  EXPECT_EQ(strategy["default"], "mirrored");
  const nlohmann::json operations = property(printed, "strategy", "cross_device_ops")["allOf"][0];
  EXPECT_EQ(operations["enum"], nlohmann::json(cross_device_ops_names()));
  auto without_names = printed;
  without_names["properties"]["engine"]["properties"]["name"] = property(file, "engine", "name");
  for (const char* key : {"name", "cross_device_ops"}) {
    without_names["properties"]["strategy"]["properties"][key] = property(file, "strategy", key);
  }
  EXPECT_EQ(without_names, file);
}

// Editors that are given the file itself are told less, and nothing that is wrong.
TEST(ScenarioSchema, TheFileCheckedInAcceptsEveryExample) {
  const Schema file{std::string(scenario_schema_file())};
  for (const auto& path : example_scenarios()) {
    EXPECT_EQ(file.problems(to_json(YamlDocument::load(path).root())), "") << path;
  }
}

TEST(ScenarioSchema, AcceptsEveryExampleAsTheReaderDoes) {
  ASSERT_GE(example_scenarios().size(), 9u);
  for (const auto& path : example_scenarios()) {
    EXPECT_EQ(schema_problems_of(path), "") << path;
    EXPECT_NO_THROW(load_scenario(path)) << path;
  }
}

TEST(ScenarioSchema, IsNamedByEveryExample) {
  for (const auto& path : example_scenarios()) {
    EXPECT_TRUE(read_input_file(path).starts_with("# yaml-language-server: $schema=../scenario.schema.json\n")) << path;
  }
}

TEST(ScenarioSchema, RefusesWhatTheReaderRefuses) {
  int refused = 0;
  for (const auto& path : broken_scenarios()) {
    const auto marks = header_lines(read_input_file(path), "schema");
    if (!marks.empty() && marks.front() == "cannot see it") continue;  // a mistake below the level of values
    const std::string problems = schema_problems_of(path);
    EXPECT_EQ(problems.empty(), !marks.empty()) << path << "\n" << problems;
    if (!problems.empty()) ++refused;
  }
  EXPECT_GE(refused, 25);
}

// Files that use every key, each with the values at the edge of what is allowed.
TEST(ScenarioSchema, AcceptsEveryKeyAsTheReaderDoes) {
  for (const auto& path : yaml_files(TANDEM_SOURCE_DIR "/tests/scenarios/good")) {
    EXPECT_EQ(schema_problems_of(path), "") << path;
    EXPECT_NO_THROW(load_scenario(path)) << path;
  }
}

}  // namespace
}  // namespace tandem
