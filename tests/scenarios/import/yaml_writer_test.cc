#include "scenarios/import/base/yaml_writer.h"

#include <gtest/gtest.h>

#include "topologies/base/error.h"

namespace tandem {
namespace {

TEST(YamlMap, WritesLinesAndShortMaps) {
  YamlMap row;
  row.set("name", "head").set("dense", YamlMap().set("rows", 4).set("shared_weights", true));
  row.set("then", std::vector<std::string>{"bias", "gelu"}).on_one_line();
  YamlMap map;
  map.quote("name", "a \"b\": c\n").below("workload", YamlMap().set("kind", "layers").set("batch", std::int64_t{8}));
  map.list("layers", {row, YamlMap().set("repeat", 2).list("layers", {row})});
  map.list("files", std::vector<std::string>{"a.json"}).append(YamlMap().set("steps", 3));
  EXPECT_EQ(map.text(),
            "name: \"a \\\"b\\\": c \"\n"
            "workload:\n"
            "  kind: layers\n"
            "  batch: 8\n"
            "layers:\n"
            "  - {name: head, dense: {rows: 4, shared_weights: true}, then: [bias, gelu]}\n"
            "  - repeat: 2\n"
            "    layers:\n"
            "      - {name: head, dense: {rows: 4, shared_weights: true}, then: [bias, gelu]}\n"
            "files:\n"
            "  - a.json\n"
            "steps: 3\n");
}

TEST(YamlMap, HasNothingBelowTheKeysOfOneLine) {
  const YamlMap map = YamlMap().below("workload", YamlMap().set("kind", "layers"));
  EXPECT_THROW(map.line(), UsageError);
}

}  // namespace
}  // namespace tandem
