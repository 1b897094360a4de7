// Places and halves of characters in a stream of JSON. Its values: tests/scenarios/import/json_stream_test.cc.
#include "topologies/base/json_stream.h"

#include <gtest/gtest.h>

#include <limits>

namespace tandem {
namespace {

TEST(JsonStream, AColumnBeyondAnIntIsTheLargest) {
  constexpr int kMost = std::numeric_limits<int>::max();
  JsonStream json("f", "[\"four\", 1]", {.line = kMost, .column = kMost - 3});
  json.next();
  EXPECT_EQ(json.column(), kMost - 3);
  json.next();
  EXPECT_EQ(json.column(), kMost - 2);
  json.next();
  EXPECT_EQ(json.column(), kMost);
  json.next();
  EXPECT_EQ(json.next(), JsonPart::end);
  JsonStream lines("f", "\n\n1", {.line = kMost, .column = 1});
  EXPECT_EQ(lines.next(), JsonPart::number);
  EXPECT_EQ(lines.line(), kMost);
}

TEST(JsonStream, TheHalvesOfACharacterAreInOneText) {
  JsonStream json("f", R"(["\ud83d\ude00", "\ud83d", "abc\ude00"])");
  json.next();
  json.next();
  EXPECT_EQ(json.text(), "\xf0\x9f\x98\x80");
  json.next();
  json.next();
  EXPECT_EQ(json.text(), "abc\xed\xb8\x80");
}

}  // namespace
}  // namespace tandem
