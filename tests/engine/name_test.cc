#include "engine/base/name.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>
#include <vector>

namespace tandem {
namespace {

TEST(Name, IsTheTextThatItWasMadeOf) {
  const Name name = std::string("all_") + "reduce";
  EXPECT_EQ(name, "all_reduce");
  EXPECT_EQ(name.text(), "all_reduce");
  EXPECT_NE(name, "all_gather");
  std::ostringstream out;
  out << name;
  EXPECT_EQ(out.str(), "all_reduce");
}

TEST(Name, IsKeptOnce) {
  const Name name = "gemm";
  EXPECT_EQ(&name.text(), &Name(std::string("gemm")).text());
  EXPECT_EQ(name, Name("gemm"));
}

TEST(Name, OfNothingIsEmpty) {
  EXPECT_TRUE(Name().empty());
  EXPECT_TRUE(Name("").empty());
  EXPECT_EQ(Name().text(), "");
  EXPECT_EQ(Name(), Name(""));
}

// Not by the addresses of what is kept, which differ between runs.
TEST(Name, ComesInTheOrderOfTexts) {
  const Name second = "b", first = "a", third = "c";
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_LT(Name(), first);
  EXPECT_FALSE(first < Name("a"));
}

TEST(Name, CanBeMadeByManyThreads) {
  constexpr int kNames = 500;
  std::vector<std::vector<const std::string*>> kept(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : kept) {
      threads.emplace_back([&mine] {
        for (int i = 0; i < kNames; ++i) mine.push_back(&Name("of many threads " + std::to_string(i)).text());
      });
    }
  }
  for (const auto& mine : kept) EXPECT_EQ(mine, kept.front());
  EXPECT_EQ(*kept.front().back(), "of many threads 499");
}

}  // namespace
}  // namespace tandem
