// Pages of histories.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/pages/page.h"
#include "reports/run/report_json.h"
#include "tests/reports/testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

TEST(Page, OfAHistoryShowsLevelsAndChanges) {
  Json launches = Json::array();
  for (int i = 0; i < 12; ++i) {
    launches.push_back({{"commit", "c" + std::to_string(i)},
                        {"date", "2026-11-22T12:00:00Z"},
                        {"step_time_ns", i < 6 ? 1'000'000 + i : 1'100'000 + i},
                        {"disturbed", i == 3},
                        {"verdict", "ok"}});
  }
  Json document = document_of("history");
  document["margin"] = 0.03;
  document["series"] = {{{"scenario", "digits"},
                         {"machine", "a machine"},
                         {"launches", launches},
                         {"changes", {{{"launch", 6}, {"change", 0.1}, {"p_value", 0.005}}}}}};
  const std::string page = page_of(document, "history");
  EXPECT_THAT(page, HasSubstr("<h2>digits on a machine</h2>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"left\">c6</td>"));
  EXPECT_THAT(page, HasSubstr("+10.0 %"));
  EXPECT_EQ(count_of(page, "class=\"dot s0 hollow\""), 1u);
  document["series"][0]["changes"][0]["launch"] = 40;
  EXPECT_THROW(page_of(document, "history"), InputError);
}

// Commits and dates as long as they can be, in more launches than a page has room for.
TEST(Page, OfALongHistoryIsNotTooLarge) {
  Json launches = Json::array();
  for (int i = 0; i < 5000; ++i) {
    launches.push_back({{"commit", std::string(40, 'c')},
                        {"date", "2026-11-22T12:00:00Z"},
                        {"tandem_version", "0.1.0"},
                        {"step_time_ns", 1'000'000 + i * 7919 % 10'000},
                        {"mad_ns", 10'000},
                        {"samples", 50},
                        {"disturbed", false},
                        {"verdict", "inconclusive"},
                        {"accepted", false}});
  }
  Json document = document_of("history");
  document["margin"] = 0.03;
  document["series"] = {
      {{"scenario", "digits"}, {"machine", "a machine"}, {"launches", launches}, {"changes", Json::array()}}};
  for (const int launch : {3000, 4000, 4500}) {
    document["series"][0]["changes"].push_back({{"launch", launch}, {"change", launch / 1e4}, {"p_value", 0.005}});
  }
  const std::string page = page_of(document, "history");
  EXPECT_LT(page.size(), 1'000'000U);
  EXPECT_THAT(page, HasSubstr("The last launches of each series; 4000 earlier ones are not shown."));
  EXPECT_THAT(page, HasSubstr("<tr><th scope=\"row\">501</th>"));
  EXPECT_THAT(page, HasSubstr("+45.0 %")) << "the change among the last launches";
  EXPECT_THAT(page, Not(HasSubstr("+30.0 %")));
  EXPECT_THAT(page, Not(HasSubstr("+40.0 %"))) << "it lies before the first launch that is shown";
  document["series"][0]["earlier_launches"] = 70;
  EXPECT_THAT(page_of(document, "history"), HasSubstr("4070 earlier ones are not shown."));
}

TEST(Page, OfAHistoryOfASimulationIsAStaircaseWithCommits) {
  Json launches = Json::array();
  for (int i = 0; i < 12; ++i) {
    launches.push_back({{"commit", "0123456789abcdef" + std::to_string(i)},
                        {"date", "2026-11-22T12:00:00Z"},
                        {"step_time_ns", i < 6 ? 1'000'000 : 1'010'000},
                        {"disturbed", false},
                        {"verdict", "ok"}});
  }
  launches[6]["commit"] = "fedcba9876543210";
  Json document = document_of("history");
  document["margin"] = 0.03;
  document["series"] = {{{"scenario", "digits"},
                         {"engine", "sim"},
                         {"machine", ""},
                         {"exact", true},
                         {"launches", launches},
                         {"changes", {{{"launch", 6}, {"change", 0.01}, {"p_value", 0}}}}}};
  const std::string page = page_of(document, "history");
  EXPECT_THAT(page, HasSubstr("<h2>digits, simulated on engine sim</h2>"));
  EXPECT_THAT(page, HasSubstr(">fedcba9876</text>"));
  EXPECT_THAT(page, HasSubstr(">0123456789</text>"));
  EXPECT_THAT(page, HasSubstr("; 0123456789abcdef11</title>"));
  EXPECT_THAT(page, Not(HasSubstr("margin above")));
}

}  // namespace
}  // namespace tandem
