// How a search is divided among processes and ranks, and the files by which these tell one another what they know.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>

#include "scenarios/plan/ordered_search.h"
#include "scenarios/plan/plan_lines.h"
#include "scenarios/plan/plan_space.h"
#include "scenarios/plan/seen_points.h"
#include "scenarios/reading/scenario_document.h"
#include "scenarios/sweep/rank_files.h"
#include "scenarios/sweep/results_file.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNone = std::numeric_limits<double>::infinity();

TEST(OrderedSearch, EndsWhereNoFurtherPointMayBeAmongTheBest) {
  OrderedSearch search({1, 2, 3, 4}, {}, 2);
  search.put(0, 3.5);
  EXPECT_TRUE(search.is_wanted(1));
  search.put(1, 2.5);
  EXPECT_TRUE(search.is_wanted(2)) << "3 is below 3.5";
  EXPECT_FALSE(search.is_decided());
  EXPECT_EQ(search.missing(), 1u);
  search.put(2, 3.2);
  EXPECT_TRUE(search.is_decided()) << "4 is above 3.2";
  EXPECT_FALSE(search.is_wanted(3));
  EXPECT_EQ(search.counted(), 3u);
}

TEST(OrderedSearch, CountsWhatIsKnownFromTheBeginning) {
  EXPECT_TRUE(OrderedSearch({2, 3}, {1}, 1).is_decided());
  EXPECT_FALSE(OrderedSearch({2, 3}, {1}, 2).is_decided());
  EXPECT_TRUE(OrderedSearch({}, {}, 2).is_decided());
}

TEST(OrderedSearch, CountsAPointWithoutAResultAsDone) {
  OrderedSearch search({1, 2}, {}, 1);
  search.put(0, kNone);
  EXPECT_FALSE(search.is_decided());
  search.put(1, 5);
  EXPECT_TRUE(search.is_decided());
  EXPECT_EQ(search.counted(), 2u);
}

// What one process simulates that does one point after the other.
std::size_t counted_alone(const std::vector<double>& least, const std::vector<double>& values, std::size_t wanted) {
  std::vector<double> best;
  std::size_t i = 0;
  for (; i < least.size(); ++i) {
    std::ranges::sort(best);
    if (best.size() >= wanted && least[i] >= best[wanted - 1]) break;
    best.push_back(values[i]);
  }
  return i;
}

// Ranks with processes that take their points in turn, end in any order, and hear of one another late.
TEST(OrderedSearch, CountsTheSameWhoeverSimulatesWhen) {
  std::mt19937 random(11);
  const auto below = [&random](std::size_t limit) { return random() % limit; };
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t points = 1 + below(40), wanted = 1 + below(4), ranks = 1 + below(4), processes = 1 + below(3);
    std::vector<double> least, values;
    for (std::size_t i = 0; i < points; ++i) least.push_back(static_cast<double>(below(100)));
    std::ranges::sort(least);
    for (std::size_t i = 0; i < points; ++i)
      values.push_back(below(8) == 0 ? kNone : least[i] + static_cast<double>(below(60)));
    std::vector<OrderedSearch> searches(ranks, OrderedSearch(least, {}, wanted));
    std::vector<std::size_t> next(ranks);
    std::iota(next.begin(), next.end(), 0);
    std::vector<std::vector<std::size_t>> busy(ranks);
    std::vector<std::pair<std::size_t, std::size_t>> under_way;  // to which rank, the result of which point
    while (!searches[0].is_decided()) {
      const std::size_t rank = below(ranks);
      if (busy[rank].size() < processes && next[rank] < points) {
        if (searches[rank].is_wanted(next[rank])) busy[rank].push_back(next[rank]);
        next[rank] += ranks;
      }
      if (!busy[rank].empty() && below(2) == 0) {
        const auto done = busy[rank].begin() + static_cast<std::ptrdiff_t>(below(busy[rank].size()));
        searches[rank].put(*done, values[*done]);
        for (std::size_t other = 0; other < ranks; ++other) under_way.emplace_back(other, *done);
        busy[rank].erase(done);
      }
      if (!under_way.empty() && below(2) == 0) {
        const auto heard = under_way.begin() + static_cast<std::ptrdiff_t>(below(under_way.size()));
        searches[heard->first].put(heard->second, values[heard->second]);
        under_way.erase(heard);
      }
    }
    EXPECT_EQ(searches[0].counted(), counted_alone(least, values, wanted)) << "trial " << trial;
  }
}

Scenario with_usual_space_of_ranks() {
  const std::string text =
      "name: shared\nworkload: {kind: layers, model: gpt, batch: 64, dtype: bf16}\n"
      "strategy: {name: mesh, data: 16}\nengine: {name: sim}\ntopology: {cluster: {node: hgx-h100, workers: 2}}\n"
      "devices: {type: gpu, workers: 2, per_worker: 8}\nsteps: 2\nwarmup_steps: 1\n";
  const Scenario base = read_scenario(text);
  return parse_scenario("schema_version: 1\n" + text, base.file,
                        {{"the space", "sweep", usual_space(base, {.strategies = {"mesh"}})}});
}

TEST(PointGroups, GiveEachPointToOneRankAndAsManyToEach) {
  const Scenario scenario = with_usual_space_of_ranks();
  const SweepSpace space(scenario);
  const std::vector<SweepSpace::Point> points = space.points();
  const std::vector<PointGroup> groups = groups_of(space, points);
  for (const int ranks : {1, 2, 3, 5}) {
    std::vector<int> times(points.size(), 0);
    std::vector<std::size_t> loads;
    for (int rank = 0; rank < ranks; ++rank) {
      std::size_t load = 0;
      for (const PointGroup& group : groups_of_rank(groups, rank, ranks)) {
        load += group.size();
        for (const std::size_t place : group) ++times[place];
      }
      loads.push_back(load);
    }
    EXPECT_EQ(std::ranges::count(times, 1), static_cast<std::ptrdiff_t>(points.size())) << ranks << " ranks";
    EXPECT_LT(std::ranges::max(loads), 1.3 * static_cast<double>(std::ranges::min(loads))) << ranks << " ranks";
  }
}

TEST(PointGroups, AreNotDividedAmongFewRanks) {
  const Scenario scenario = with_usual_space_of_ranks();
  const SweepSpace space(scenario);
  const std::vector<PointGroup> groups = groups_of(space, space.points());
  ASSERT_GE(groups.size(), 8u);
  std::size_t shared = 0;
  for (int rank = 0; rank < 2; ++rank) shared += groups_of_rank(groups, rank, 2).size();
  EXPECT_EQ(shared, groups.size());
}

TEST(PointGroups, OfOneKindOfPassesAreDividedIfThereAreNoOthers) {
  PointGroup all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(groups_of_rank({all}, 0, 2).front().size() + groups_of_rank({all}, 0, 2).back().size(), 64u);
  EXPECT_EQ(groups_for_processes({all}, 1).size(), 4u) << "32 points in each";
  EXPECT_THAT(groups_for_processes({{}, {}}, 4), IsEmpty());
}

KeptOfPlan seen_point() {
  KeptOfPlan kept{.what = KeptOfPlan::What::seen};
  kept.point.values = {{"strategy.data", "8"}};
  kept.point.devices = 8;
  kept.point.memory = MemoryNeed{.parameters = 12, .available = 80};
  kept.planned = {.least_step_s = 0.1 + 0.2, .units = 64, .price_per_s = 1.0 / 3, .power_w = 5};
  kept.files = "abc";
  return kept;
}

TEST(PlanLines, AreReadAsTheyWereWritten) {
  const KeptOfPlan seen = seen_point();
  const std::string line = line_of_plan(seen);
  EXPECT_TRUE(line.starts_with(kLineOfPlans));
  const auto read = kept_of_line({line, "a file", 7});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->what, KeptOfPlan::What::seen);
  EXPECT_EQ(read->planned.least_step_s, seen.planned.least_step_s);
  EXPECT_EQ(read->planned.price_per_s, seen.planned.price_per_s);
  EXPECT_EQ(read->point.values, seen.point.values);
  EXPECT_EQ(read->point.memory, seen.point.memory);
  EXPECT_EQ(read->files, "abc");
  EXPECT_EQ(line_of_plan(*read), line);
  const KeptOfPlan long_one{.what = KeptOfPlan::What::too_long, .seconds = 30.5};
  EXPECT_EQ(kept_of_line({line_of_plan(long_one), "a file", 7})->seconds, 30.5);
}

TEST(PlanLines, OfAnotherFormatAreNotTaken) {
  EXPECT_FALSE(kept_of_line({R"({"plan":999,"bounds":[1,2]})", "a file", 7}));
  try {
    kept_of_line({R"({"plan":1,"kept":"seen","point":{"values":{},"state":"not run"}})", "a file", 7});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("a file:7"), HasSubstr("least_step_s")));
  }
}

class FilesOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "tandem-ranks-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file() const { return folder_ / "s.jsonl"; }
  RankFiles of_rank(int rank) const { return {file(), {.index = rank, .count = 2, .on_host = 0}, identity_}; }
  std::unique_ptr<ResultsFile> opened(const RankFiles& ranks) const {
    return std::make_unique<ResultsFile>(ranks.mine(), identity_);
  }
  static std::string result(const std::string& value) {
    return line_of({.values = {{"steps", value}}, .state = PointState::failed, .problem = "for a test"}, "");
  }
  static std::vector<std::string> values_of(const StoredPoints& stored) {
    std::vector<std::string> values;
    for (const StoredPoint& one : stored.points) values.push_back(one.point.values.front().second);
    return values;
  }

  std::filesystem::path folder_;
  SweepIdentity identity_{"s", "1"};
};

TEST_F(FilesOfRanks, TellWhatWasAppendedSinceTheLastTime) {
  RankFiles first = of_rank(0), second = of_rank(1);
  EXPECT_EQ(second.mine().filename(), "s.jsonl.rank1");
  EXPECT_THAT(values_of(first.news()), IsEmpty());
  const auto mine = opened(first), other = opened(second);
  other->add(result("2"));
  other->add(line_of_plan(seen_point()));
  StoredPoints news = first.news();
  EXPECT_THAT(values_of(news), ElementsAre("2"));
  EXPECT_EQ(news.of_plans.size(), 1u);
  mine->add(result("3"));
  EXPECT_THAT(values_of(second.news()), ElementsAre("3"));
  std::ofstream(second.mine(), std::ios::app) << result("4").substr(0, 5);
  EXPECT_THAT(values_of(first.news()), IsEmpty()) << "a line is written whole, but not read in the middle of it";
  std::ofstream(second.mine(), std::ios::app) << result("4").substr(5) << result("5");
  EXPECT_THAT(values_of(first.news()), ElementsAre("4", "5"));
  first.remove_others();
  EXPECT_FALSE(std::filesystem::exists(second.mine()));
  EXPECT_TRUE(std::filesystem::exists(first.mine()));
}

TEST_F(FilesOfRanks, AreReadFromTheBeginningWhereAnotherOneTakesTheirPlace) {
  RankFiles first = of_rank(0);
  const RankFiles second = of_rank(1);
  opened(second)->add(result("2") + result("3") + result("4"));
  EXPECT_THAT(values_of(first.news()), ElementsAre("2", "3", "4"));
  std::filesystem::remove(second.mine());
  opened(second)->add(result("5"));
  EXPECT_THAT(values_of(first.news()), ElementsAre("5"));
}

TEST_F(FilesOfRanks, OfAnotherScenarioAreRefused) {
  const RankFiles second = of_rank(1);
  const ResultsFile other(second.mine(), {"s", "2"});
  RankFiles first = of_rank(0);
  EXPECT_THROW(first.news(), InputError);
  EXPECT_THROW(RankFiles({}, {.index = 0, .count = 2, .on_host = 0}, identity_), RunError);
}

TEST(WaitForRanks, GoesOnWhileSomethingComes) {
  std::size_t left = 4;
  wait_for_ranks(
      0.25, [&left] { return --left; }, "plan");  // each after 0.2 s
  EXPECT_EQ(left, 0u);
  try {
    wait_for_ranks(
        0.1, [] { return std::size_t{3}; }, "plan");
    FAIL();
  } catch (const RanksAreSilent& error) {
    EXPECT_THAT(error.what(), HasSubstr("3 points of other ranks are missing"));
  }
}

}  // namespace
}  // namespace tandem
