#include "engine/base/philox.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

// The known answers are those in Random123's file kat_vectors.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({}, {}), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(advanced({kOnes, kOnes, 4, 7}, 2), (PhiloxWords{1, 0, 5, 7}));
  EXPECT_EQ(advanced({1, 1, 0, 0}, 0x2fffffffful), (PhiloxWords{0, 4, 0, 0}));
}

}  // namespace
}  // namespace tandem
