#include "topologies/base/strict_yaml.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

enum class Values { real, none };

// Reads `text` with `read` and returns every message, one a line.
template <typename Read>
std::string problems_of(std::string_view text, Read read) {
  try {
    const YamlDocument document = YamlDocument::parse(text, "f");
    Diagnostics diagnostics;
    const YamlReader root(document, diagnostics);
    read(root);
    root.finish();
    diagnostics.throw_if_any();
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(StrictYaml, ReadsEveryKindOfValue) {
  const auto read = [](const YamlReader& root) {
    EXPECT_EQ(root.required("batch").integer(1, 64), 8);
    EXPECT_EQ(root.required("ratio").number(), -0.5);
    EXPECT_EQ(root.required("name").text(), "8");
    EXPECT_TRUE(root.required("shuffle").boolean());
    EXPECT_EQ(root.required("size").quantity(Dimension::bytes), 4096.0);
    EXPECT_EQ(root.required("values").one_of<Values>({{"real", Values::real}, {"none", Values::none}}), Values::none);
    EXPECT_EQ(root.required("layers").list().size(), 2u);
    EXPECT_EQ(root.required("layers").list()[1].integer(0, 9), 3);
    EXPECT_EQ(root.required("free").entries()[0].first, "any");
    EXPECT_EQ(root.required("free").entries()[0].second.text(), "thing");
  };
  EXPECT_EQ(problems_of("batch: 8\nratio: -0.5\nname: 8\nshuffle: true\nsize: 4KiB\nvalues: none\n"
                        "layers: [2, 3]\nfree: {any: thing}\n",
                        read),
            "");
}

TEST(StrictYaml, AbsentValuesReadAsTheDefaultAllTheWayDown) {
  const auto read = [](const YamlReader& root) {
    const YamlReader absent = root.optional("sweep");
    EXPECT_FALSE(absent);
    EXPECT_EQ(absent.required("batch").integer(1, 9, 7), 7);
    EXPECT_EQ(absent.required("grid").required("name").text("x"), "x");
    EXPECT_EQ(absent.optional("size").quantity(Dimension::bytes, {.otherwise = 64}), 64.0);
    EXPECT_TRUE(absent.boolean(true));
    EXPECT_TRUE(absent.list().empty());
    EXPECT_TRUE(absent.entries().empty());
  };
  EXPECT_EQ(problems_of("{}", read), "");
}

TEST(StrictYaml, AWrongValueDoesNotStopTheRest) {
  const auto read = [](const YamlReader& root) {
    EXPECT_EQ(root.required("a").integer(1, 9, 5), 5);
    EXPECT_FALSE(root.required("b").boolean());
    root.required("c").text();
    root.required("d");
    for (const YamlReader& item : root.required("e").list()) item.required("x").text();
  };
  EXPECT_EQ(problems_of("a: [1]\nb: yes\nc: {}\ne: [3, {x: 1, y: 2}]\n", read),
            "f:1:1: missing key 'd'\n"
            "f:1:4: a: expected a whole number, found the list\n"
            "f:2:4: b: expected true or false, found 'yes'\n"
            "f:3:4: c: expected a text, found the map\n"
            "f:4:5: e[0]: expected a map, found '3'\n"
            "f:4:15: e[1]: unknown key 'y'");
}

TEST(StrictYaml, NumbersSayWhatIsWrong) {
  const auto read = [](const YamlReader& root) {
    for (const YamlReader& item : root.list()) item.integer(1, 64);
  };
  EXPECT_EQ(problems_of("[0, 65, '8', 1e2, 99999999999999999999, -3]", read),
            "f:1:2: [0]: must be from 1 to 64, found 0\n"
            "f:1:5: [1]: must be from 1 to 64, found 65\n"
            "f:1:9: [2]: expected a whole number, found the text \"8\"\n"
            "f:1:14: [3]: expected a whole number, found '1e2'\n"
            "f:1:19: [4]: must be from 1 to 64, found 99999999999999999999\n"
            "f:1:41: [5]: must be from 1 to 64, found -3");
}

TEST(StrictYaml, BooleansAreOnlyTrueAndFalse) {
  const auto read = [](const YamlReader& root) {
    for (const YamlReader& item : root.list()) item.boolean();
  };
  EXPECT_EQ(problems_of("[true, false]", read), "");
  for (const char* text : {"yes", "on", "True", "1", "\"true\"", "~"}) {
    EXPECT_NE(problems_of("[" + std::string(text) + "]", read), "") << text;
  }
}

TEST(StrictYaml, AKeyWithoutAValueIsShownAtTheKey) {
  EXPECT_EQ(problems_of("a: 1\nb:\n",
                        [](const YamlReader& root) {
                          root.required("a").integer(0, 9);
                          root.required("b").text();
                        }),
            "f:2:1: b: expected a text, found nothing");
}

TEST(StrictYaml, OneOfTheKeys) {
  const auto read = [](const YamlReader& root) { root.exactly_one_of({"nodes", "cluster"}); };
  EXPECT_EQ(problems_of("nodes: 1", read), "");
  EXPECT_EQ(problems_of("{}", read), "f:1:1: needs one of the keys nodes, cluster");
  EXPECT_EQ(problems_of("nodes: 1\ncluster: 2", read), "f:2:10: cluster: cannot be given together with 'nodes'");
}

TEST(StrictYaml, AliasesReadAsTheValueTheyStandFor) {
  const auto read = [](const YamlReader& root) {
    EXPECT_EQ(root.required("b").required("x").integer(0, 9), 1);
    root.required("a");
  };
  EXPECT_EQ(problems_of("a: &a {x: 1}\nb: *a\n", read), "");
}

TEST(StrictYaml, JsonIsYaml) {
  const auto read = [](const YamlReader& root) { EXPECT_EQ(root.required("a").list()[1].text(), "x\ty"); };
  EXPECT_EQ(problems_of(R"({"a": [1, "x\ty"]})", read), "");
}

TEST(StrictYaml, FilesThatCannotBeRead) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      YamlDocument::load(path);
      return "";
    } catch (const InputError& error) {
      return error.diagnostics().front().message;
    }
  };
  EXPECT_EQ(message("no/such/file.yaml"), "no such file");
  EXPECT_EQ(message(TANDEM_SOURCE_DIR), "is a folder, expected a file");
  EXPECT_EQ(problems_of("", [](const YamlReader&) {}), "f: the file is empty");
  EXPECT_EQ(problems_of(std::string((std::size_t{16} << 20) + 1, ' '), [](const YamlReader&) {}),
            "f: larger than 16 MiB");
}

TEST(StrictYaml, QuotedTextsEndWhereTheyShould) {
  const auto read = [](const YamlReader& root) { root.required("a").text(); };
  EXPECT_EQ(problems_of("a: \"x\\\"y\"\n", read), "");
  EXPECT_EQ(problems_of("a: 'it''s'\n", read), "");
  EXPECT_NE(problems_of("a: \"x\\\"\n", read), "");
}

// What `root` has at a path of maps, on one line.
std::string flow(const YamlNode& node) {
  std::string text;
  for (const YamlNode::Entry& entry : node.entries) text += entry.key + ":" + flow(*entry.value) + " ";
  return node.kind == YamlKind::map ? "{" + text + "}" : node.text;
}

TEST(ChangedDocument, HasOtherValuesAtSomePathsAndLeavesTheBaseAlone) {
  const auto base = std::make_shared<const YamlDocument>(
      YamlDocument::parse("a: &map {x: 1, y: 2}\nb: *map\nc: 3\nvalues: {one: 7, two: {z: 8}}\n", "f"));
  const YamlNode& values = *base->root().entries[3].value;
  const YamlNode *one = values.entries[0].value, *two = values.entries[1].value;
  const YamlDocument changed =
      YamlDocument::changed(base, {{"a.x", one}, {"c", two}, {"d.e.f", one}, {"a.y", two}, {"values", nullptr}});
  EXPECT_EQ(flow(changed.root()), "{a:{x:7 y:{z:8 } } b:{x:1 y:2 } c:{z:8 } d:{e:{f:7 } } }") << "aliases stay apart";
  EXPECT_EQ(flow(base->root()), "{a:{x:1 y:2 } b:{x:1 y:2 } c:3 values:{one:7 two:{z:8 } } }");
  EXPECT_EQ(changed.root().entries[0].value->entries[0].value->line, 4) << "where the value is written";
  EXPECT_EQ(changed.file(), "f");
}

TEST(ChangedDocument, LeavesOutWhatIsNotThere) {
  const auto base = std::make_shared<const YamlDocument>(YamlDocument::parse("a: 1\n", "f"));
  EXPECT_EQ(flow(YamlDocument::changed(base, {{"b", nullptr}}).root()), "{a:1 }");
}

}  // namespace
}  // namespace tandem
