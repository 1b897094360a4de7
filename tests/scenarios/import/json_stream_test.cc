#include "topologies/base/json_stream.h"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/import/base/json_value.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

class JsonFiles : public ImportFiles {
 protected:
  JsonValue value(const std::string& text) const { return read_json(write("x.json", text)); }
  std::string problem(const std::string& text) const {
    return refusal([&] { value(text); });
  }
};

TEST_F(JsonFiles, HaveValuesOfEveryKindWithTheirPlaces) {
  const JsonValue root = value("{\"a\": [1, -2.5e3, true, null],\n  \"b\": {\"c\": \"x\\n\\u0041\\u00e9\"}}");
  ASSERT_TRUE(root.is_object());
  const JsonValue& list = *root.find("a");
  ASSERT_EQ(list.items.size(), 4u);
  EXPECT_EQ(list.items[1].text, "-2.5e3");
  EXPECT_EQ(list.items[2].kind, JsonPart::boolean);
  EXPECT_TRUE(list.items[3].is_null());
  const JsonValue& text = *root.find("b")->find("c");
  EXPECT_EQ(text.text, "x\nA\xc3\xa9");
  EXPECT_EQ(text.line, 2);
  EXPECT_EQ(text.column, 14);
}

TEST_F(JsonFiles, AreReadAcrossTheEndsOfPieces) {
  std::string text = "[";
  for (int i = 0; i < 60000; ++i) text += "\"abc\\tdef\", ";
  text += "17]";
  const JsonValue root = value(text);
  ASSERT_EQ(root.items.size(), 60001u);
  for (int i = 0; i < 60000; ++i) ASSERT_EQ(root.items[static_cast<std::size_t>(i)].text, "abc\tdef");
  EXPECT_EQ(root.items.back().text, "17");
}

TEST_F(JsonFiles, TakeTheNumbersThatPythonWrites) {
  const auto file = write("x.json", "[Infinity, -Infinity, NaN]");
  ByteSource source(file);
  JsonStream json(source);
  json.next();
  json.next();
  EXPECT_EQ(json.number(), HUGE_VAL);
  json.next();
  EXPECT_EQ(json.number(), -HUGE_VAL);
  json.next();
  EXPECT_TRUE(std::isnan(json.number()));
}

TEST_F(JsonFiles, SkipWhatIsNotWanted) {
  const auto file = write("x.json", R"({"a": {"b": [1, {"c": 2}]}, "d": 3})");
  ByteSource source(file);
  JsonStream json(source);
  json.next();
  json.next();
  json.skip();
  EXPECT_EQ(json.next(), JsonPart::key);
  EXPECT_EQ(json.text(), "d");
  json.skip();
  EXPECT_EQ(json.next(), JsonPart::end_object);
  EXPECT_EQ(json.next(), JsonPart::end);
}

TEST_F(JsonFiles, SayWhereTheyAreBroken) {
  EXPECT_EQ(problem("{\"a\": 1,\n \"b\" 2}"), "x.json:2:6: expected ':' after a key, found '2'");
  EXPECT_EQ(problem("[1 2]"), "x.json:1:4: expected ',' or the end of the list, found '2'");
  EXPECT_EQ(problem("[1}"), "x.json:1:3: '}' does not close the '[' before it");
  EXPECT_EQ(problem("{a: 1}"), "x.json:1:2: expected a key in quotes, found 'a'");
  EXPECT_EQ(problem("[1,]"), "x.json:1:4: expected a value, found ']'");
  EXPECT_EQ(problem("[1-2]"), "x.json:1:2: '1-2' is no number of JSON");
  EXPECT_EQ(problem("[tru]"), "x.json:1:2: 'tru' is no word of JSON: expected true, false or null");
  EXPECT_EQ(problem("[\"abc\n\"]"), "x.json:1:2: a string has no end in its line");
  EXPECT_EQ(problem("[\"\\x\"]"), "x.json:1:2: a string has an unknown escape: '\\' and 'x'");
  EXPECT_EQ(problem("[\"\\u12g4\"]"), "x.json:1:2: '\\u' in a string needs four hexadecimal digits");
  EXPECT_EQ(problem("[1] 2"), "x.json:1:5: expected the end of the file after the document, found '2'");
  EXPECT_EQ(problem("[\x01]"), "x.json:1:2: expected a value, found byte 0x01");
}

TEST_F(JsonFiles, SayWhereTheyWereCutShort) {
  const auto ends = [](const char* where, const char* place) {
    return fmt::format("x.json:{}: the file ends too early ({}): it was cut short, or is still being written", place,
                       where);
  };
  EXPECT_EQ(problem("{\"a\": [1,\n\"abc"), ends("in a string", "2:5"));
  EXPECT_EQ(problem("[\"abc\\"), ends("in a string", "1:7"));
  EXPECT_EQ(problem("[\"abc\\u00"), ends("in a string", "1:10"));
  EXPECT_EQ(problem("[1, 2"), ends("',' or the end of the list is missing", "1:6"));
  EXPECT_EQ(problem("[1, -"), ends("after '-'", "1:6"));
  EXPECT_EQ(problem("[tr"), ends("after 'tr'", "1:4"));
  EXPECT_EQ(problem("{\"a\""), ends("':' after a key is missing", "1:5"));
  EXPECT_EQ(problem("{\"a\": 1,"), ends("a key in quotes is missing", "1:9"));
  EXPECT_EQ(problem(""), ends("a value is missing", "1:1"));
}

TEST_F(JsonFiles, MayNotNestWithoutEnd) {
  EXPECT_EQ(problem(std::string(1'000'000, '[')), "x.json:1:201: is nested deeper than 200 levels");
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(problem(objects), "x.json:1:1001: is nested deeper than 200 levels");
}

}  // namespace
}  // namespace tandem
