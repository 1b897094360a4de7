#include "engine/sim/symmetry/images.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::sim::symmetry {
namespace {

TEST(Images, AreNeighboursOrMembersAtEqualDistances) {
  EXPECT_EQ(images_of(std::vector{4, 5, 6, 7}, 12), (Images{.count = 3, .members = 4}));
  EXPECT_EQ(images_of(std::vector{1, 4, 7, 10}, 12), (Images{.count = 3, .members = 4, .are_neighbours = false}));
  EXPECT_EQ(images_of(std::vector{5}, 12), (Images{.count = 12}));
  EXPECT_EQ(images_of(std::vector{0, 1, 2}, 3), (Images{.members = 3}));
}

TEST(Images, AreNoOtherMembers) {
  EXPECT_EQ(images_of(std::vector{3, 4, 5, 6}, 12), std::nullopt) << "parts of two of them";
  EXPECT_EQ(images_of(std::vector{0, 2, 4, 6}, 12), std::nullopt) << "of twelve members, four are three apart";
  EXPECT_EQ(images_of(std::vector{0, 1, 2, 3, 4}, 12), std::nullopt);
  EXPECT_EQ(images_of(std::vector<int>{}, 12), std::nullopt);
}

TEST(Images, HaveEveryMemberOnce) {
  for (const Images& images :
       {Images{.count = 3, .members = 4}, Images{.count = 3, .members = 4, .are_neighbours = false}}) {
    for (int member = 0; member < 12; ++member) {
      EXPECT_EQ(images.twin(member, images.of(member)), member);
      for (int image = 0; image < images.count; ++image) {
        const int twin = images.twin(member, image);
        EXPECT_EQ(images.of(twin), image);
        EXPECT_EQ(images.place_of(twin), images.place_of(member));
        EXPECT_EQ(images.twin(twin, images.of(member)), member);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::sim::symmetry
