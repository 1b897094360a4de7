// What collectives are for: the outermost call counts, and errors show where two long purposes differ.
#include "engine/purpose.h"

#include <gmock/gmock.h>

namespace tandem {
namespace {

std::string purpose() {
  return Task::current().purpose();
}

TEST(Purpose, IsTheOutermostCallWithAllDetails) {
  EXPECT_EQ(purpose(), "");
  {
    const CallPurpose outer([] { return "reduce() by SUM"; });
    const CallPurpose inner([]() -> std::string {
      ADD_FAILURE() << "words that do not count are not made";
      return "reduce_to()";
    });
    EXPECT_EQ(purpose(), "reduce() by SUM");
    {
      const CallDetail shapes("SUM of f32[2]");
      EXPECT_EQ(purpose(), "reduce() by SUM, SUM of f32[2]");
    }
    EXPECT_EQ(purpose(), "reduce() by SUM");
  }
  EXPECT_EQ(purpose(), "");
  const CallDetail alone("SUM of f32[2]");
  EXPECT_EQ(purpose(), "SUM of f32[2]");
}

TEST(Purpose, IsShownAroundTheFirstDifference) {
  std::string a = "apply_gradients() of variables", b;
  for (int i = 0; i < 100; ++i) a += " 'layer" + std::to_string(i) + "'";
  b = a;
  b.replace(b.find("'layer50'"), 9, "'other'");
  const auto [shown_a, shown_b] = shown_difference(a, b);
  EXPECT_TRUE(shown_a.starts_with("... 'layer")) << shown_a;
  EXPECT_TRUE(shown_a.ends_with(" ...")) << shown_a;
  EXPECT_THAT(shown_a, testing::HasSubstr("'layer49' 'layer50' 'layer51'"));
  EXPECT_THAT(shown_b, testing::HasSubstr("'layer49' 'other' 'layer51'"));
  EXPECT_LT(shown_a.size(), 200u);
  EXPECT_EQ(shown_difference("reduce()", "gather()"), std::pair(std::string("reduce()"), std::string("gather()")));
  EXPECT_EQ(shown_difference("", a).first, "");
  const auto [shorter, longer] = shown_difference(a, a + " 'one more'");
  EXPECT_THAT(longer, testing::EndsWith("'one more'"));
  EXPECT_THAT(shorter, testing::EndsWith("'layer99'"));
}

}  // namespace
}  // namespace tandem
