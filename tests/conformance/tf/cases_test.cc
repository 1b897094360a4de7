// Runs every case of the table in every world, and tells per area how many passed, do not apply, and failed.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/conformance/tf/case.h"

namespace tandem {
namespace {

struct CaseIn {
  Case spec;
  World world;
};

// Where the case is counted: pure ones belong to no engine.
std::string place_of(const CaseIn& c) {
  return c.spec.is_pure ? "no engine" : c.world.name;
}

std::ostream& operator<<(std::ostream& out, const CaseIn& c) {
  return out << c.spec.id << " on " << place_of(c);
}

struct Tally {
  int passed = 0, not_applicable = 0, failed = 0;
};
std::map<std::string, Tally>& tallies() {
  static std::map<std::string, Tally> by_area;
  return by_area;
}

class PrintedCounts : public testing::Environment {
 public:
  void TearDown() override {
    if (!reports_for_job()) return;
    for (const auto& [area, tally] : tallies()) {
      std::cout << area << ": " << tally.passed << " passed, " << tally.not_applicable << " not applicable, "
                << tally.failed << " failed\n";
    }
  }
};
[[maybe_unused]] const testing::Environment* const printed_counts =
    testing::AddGlobalTestEnvironment(new PrintedCounts);

class TfDistribute : public testing::TestWithParam<CaseIn> {
 protected:
  void SetUp() override {
    if (GetParam().spec.is_pure) return;
    if (const std::string reason = reason_to_skip(GetParam().world); !reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override {
    Tally& tally = tallies()[GetParam().spec.area + " on " + place_of(GetParam())];
    ++(HasFailure() ? tally.failed : IsSkipped() ? tally.not_applicable : tally.passed);
  }
};

TEST_P(TfDistribute, Behaves) {
  const Case& spec = GetParam().spec;
  const CaseFunction* function = find_case(spec.id);
  if (!spec.not_applicable.empty()) {
    EXPECT_EQ(function, nullptr) << "a case that does not apply has a function";
    GTEST_SKIP() << spec.not_applicable;
  }
  ASSERT_NE(function, nullptr) << "no function executes this case";
  Json actual;
  const CaseWorld world(GetParam().world, spec);
  const Json error = error_of([&] { actual = (*function)(world); });
  if (!error.is_null()) actual = error;
  EXPECT_FALSE(spec.is_pure && world.opened_an_engine()) << "a pure case opens no engine";
  // What a program leaves in variables of the case is known where it has run: of several processes, to that of worker
  // 0.
  if (reports_for_job()) {
    EXPECT_EQ(mismatch(spec.expect, actual), "") << actual.dump();
  }
}

std::vector<CaseIn> cases_in_worlds() {
  std::vector<CaseIn> all;
  for (const World& world : built_worlds()) {
    if (world.collectives == CollectiveFidelity::message) continue;  // fluid or message: the same values
    for (const Case& spec : read_cases()) {
      if (all.empty() || !spec.is_pure || world.name == all.front().world.name) all.push_back({spec, world});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, TfDistribute, testing::ValuesIn(cases_in_worlds()), [](const auto& test) {
  std::string name = test.param.spec.area + "__" + test.param.spec.id + "__" + place_of(test.param);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

// Every case under other orders of what is ready at the same time: 1,000 seeds with 12 cases each by default, so that
// every case meets about 20; TANDEM_SEEDS and TANDEM_CASES_PER_SEED ask for more. Pure cases have no schedule.
TEST(Schedules, CasesDoNotDependOnThem) {
  const std::vector<World> worlds = built_worlds();
  const auto simulated =
      std::find_if(worlds.begin(), worlds.end(), [](const World& world) { return world.collectives.has_value(); });
  if (simulated == worlds.end()) GTEST_SKIP() << "no simulated engine was built";
  std::vector<Case> cases;
  for (Case& spec : read_cases()) {
    if (find_case(spec.id) && !spec.is_pure) cases.push_back(std::move(spec));
  }
  const int seeds = setting("TANDEM_SEEDS", 1000);
  const auto per_seed = std::min(cases.size(), static_cast<std::size_t>(setting("TANDEM_CASES_PER_SEED", 12)));
  World world = *simulated;
  std::size_t next = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    world.schedule_seed = static_cast<std::uint64_t>(seed);
    for (std::size_t i = 0; i < per_seed; ++i) {
      const Case& spec = cases[next++ % cases.size()];
      Json actual;
      const Json error = error_of([&] { actual = (*find_case(spec.id))(CaseWorld(world, spec)); });
      ASSERT_EQ(mismatch(spec.expect, error.is_null() ? actual : error), "")
          << spec.id << " under schedule seed " << seed << ": " << actual.dump() << error.dump();
    }
  }
}

TEST(CaseTable, EveryIdStandsOnce) {
  std::map<std::string, int> ids;
  for (const Case& spec : read_cases()) EXPECT_EQ(++ids[spec.id], 1) << spec.id << " stands twice in the table";
}

TEST(CaseTable, MismatchesAreFound) {
  EXPECT_EQ(mismatch(Json::parse(R"({"a": [1, 2], "note": "x"})"), Json::parse(R"({"a": [1, 2]})")), "");
  EXPECT_NE(mismatch(Json::parse(R"({"a": [1, 2]})"), Json::parse(R"({"a": [1, 3]})")), "");
  EXPECT_NE(mismatch(Json::parse(R"({"a": 1})"), Json::parse(R"({"b": 1})")), "");
  EXPECT_EQ(mismatch(Json::parse(R"({"a": 1, "tolerance": 0.1})"), Json::parse(R"({"a": 1.05})")), "");
  EXPECT_NE(mismatch(Json::parse(R"({"error": "ValueError"})"), Json::parse(R"({"a": 1})")), "");
  EXPECT_EQ(mismatch(Json::parse(R"({"error": "A or B"})"), Json::parse(R"({"error": "B"})")), "");
  EXPECT_NE(mismatch(Json::parse(R"({"each": {"error": "A"}})"), Json::parse(R"({"each": [null]})")), "");
}

}  // namespace
}  // namespace tandem
