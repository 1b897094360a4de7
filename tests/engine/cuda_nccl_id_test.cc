// What one process hands to others so that they form one NCCL group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cuda/collectives/nccl_communicators.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string some_text() {
  std::string text;
  for (int i = 0; i < 128; ++i) text += "0123456789abcdef"[i % 16], text += "fedcba9876543210"[i / 8];
  return text;
}

TEST(NcclId, SurvivesItsText) {
  const NcclId id = NcclId::parse(some_text());
  EXPECT_EQ(id.text(), some_text());
  EXPECT_EQ(static_cast<unsigned char>(id.handle().internal[17]), 0x1dU) << "every byte is two digits, in order";
}

TEST(NcclId, RefusesOtherTexts) {
  EXPECT_THAT([] { NcclId::parse("12ab"); }, ThrowsMessage<Error>(HasSubstr("256 hexadecimal digits, found 4")));
  std::string text = some_text();
  text[5] = 'x';
  EXPECT_THAT([&] { NcclId::parse(text); }, ThrowsMessage<Error>(HasSubstr("found '2x' at 4")));
  text[4] = ' ';
  EXPECT_THAT([&] { NcclId::parse(text); }, ThrowsMessage<Error>(HasSubstr("found ' x' at 4")));
}

}  // namespace
}  // namespace tandem::cuda
