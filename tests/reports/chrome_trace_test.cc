#include "reports/timeline/chrome_trace.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/reports/testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::string trace_of(const Timeline& timeline, std::optional<int> worker = std::nullopt) {
  std::ostringstream out;
  write_chrome_trace(timeline, out, worker);
  return out.str();
}

std::vector<nlohmann::json> events_of(const std::string& trace, const std::string& phase) {
  std::vector<nlohmann::json> events;
  const auto json = nlohmann::json::parse(trace);
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == phase) events.push_back(event);
  }
  return events;
}

Timeline busy_timeline() {
  Timeline timeline = two_device_timeline({
      step_record(0, 0, 1'000'000'000'000'001, 1'000'000'000'005'001),
      work_record(Category::compute, 0, 0, 0, 1'000'000'000'000'123, 1'000'000'000'002'123),
      collective_record(1, 0, 0, 1'000'000'000'000'500, 1'000'000'000'003'500),
      collective_record(2, 0, 0, 1'000'000'000'001'500, 1'000'000'000'004'500),  // overlaps the one before
      collective_record(1, 1, 0, 1'000'000'000'000'500, 1'000'000'000'003'500),
  });
  timeline.records[1].name = "Schicht \"\u00e4\"\n\\";
  return timeline;
}

TEST(ChromeTrace, IsJsonInTheDialectOfTheTools) {
  const std::string trace = trace_of(busy_timeline());
  EXPECT_THAT(trace, testing::HasSubstr("\"rank\": 0,"));  // found by its text, with the blank
  const auto json = nlohmann::json::parse(trace);
  EXPECT_EQ(json["schemaVersion"], 1);
  EXPECT_EQ(json["distributedInfo"]["world_size"], 1);
  EXPECT_EQ(json["displayTimeUnit"], "ns");
  EXPECT_EQ(json["baseTimeNanoseconds"], 1'000'000'000'000'001);
}

TEST(ChromeTrace, SaysHowManyWorkersAProcessRepresents) {
  const auto label_of = [](const Timeline& timeline) -> std::string {
    for (const auto& event : events_of(trace_of(timeline), "M")) {
      if (event["name"] == "process_labels") return event["args"]["labels"];
    }
    return "none";
  };
  Timeline timeline = busy_timeline();
  timeline.engine = "sim";
  EXPECT_EQ(label_of(timeline), "sim");
  timeline.classes = {{.representative = 0, .workers = 12}};
  EXPECT_EQ(label_of(timeline), "sim, represents 12 workers");
  timeline.classes = {{.representative = 0, .workers = 1}};
  EXPECT_EQ(label_of(timeline), "sim");
}

TEST(ChromeTrace, PrintsTimesFromIntegers) {
  const std::string trace = trace_of(busy_timeline());
  EXPECT_THAT(trace, testing::HasSubstr("\"ts\":0.122,\"dur\":2.000"));
  EXPECT_THAT(trace, testing::HasSubstr("\"ts\":0.000,\"dur\":5.000"));
}

TEST(ChromeTrace, NamesStepsCollectivesAndCopiesAsHtaExpects) {
  Timeline timeline = busy_timeline();
  Record copy = work_record(Category::input, 1, 2, 0, 1'000'000'000'000'100, 1'000'000'000'000'200);
  copy.kind = RecordKind::copy;
  copy.name = {};
  timeline.records.push_back(copy);
  std::vector<std::string> names;
  for (const auto& event : events_of(trace_of(timeline), "X")) names.push_back(event["name"]);
  EXPECT_THAT(names, testing::UnorderedElementsAre("ProfilerStep#0", "Schicht \"\u00e4\"\n\\", "nccl:all_reduce",
                                                   "nccl:all_reduce", "nccl:all_reduce", "Memcpy (input)"));
}

TEST(ChromeTrace, EventsOfALaneNestOrAreDisjoint) {
  const auto events = events_of(trace_of(busy_timeline()), "X");
  ASSERT_EQ(events.size(), 5u);
  for (std::size_t i = 0; i < events.size(); ++i) {
    for (std::size_t j = i + 1; j < events.size(); ++j) {
      if (events[i]["pid"] != events[j]["pid"] || events[i]["tid"] != events[j]["tid"]) continue;
      const double a = events[i]["ts"], a_end = a + events[i]["dur"].get<double>();
      const double b = events[j]["ts"], b_end = b + events[j]["dur"].get<double>();
      EXPECT_TRUE(a_end <= b || b_end <= a || (a <= b && b_end <= a_end) || (b <= a && a_end <= b_end));
    }
  }
}

TEST(ChromeTrace, GivesEveryStreamALaneAndOverlapsASecondOne) {
  std::vector<std::string> lanes;
  for (const auto& event : events_of(trace_of(busy_timeline()), "M")) {
    if (event["name"] == "thread_name") lanes.push_back(event["args"]["name"]);
  }
  const std::string device = "/job:localhost/replica:0/task:0/device:CPU:";
  EXPECT_THAT(lanes, testing::ElementsAre("host", device + "0 stream 0", device + "0 stream 1",
                                          device + "0 stream 1 (2)", device + "1 stream 1"));
}

TEST(ChromeTrace, WritesOneWorkerAloneOnTheCommonClock) {
  Timeline timeline = busy_timeline();
  timeline.devices.push_back({"/job:worker/replica:0/task:1/device:CPU:0", 1});
  timeline.records.push_back(step_record(1, 0, 1'000'000'000'000'011, 1'000'000'000'000'511));
  const std::string trace = trace_of(timeline, 1);
  EXPECT_THAT(trace, testing::HasSubstr("\"rank\": 1,\"world_size\": 2"));
  const auto events = events_of(trace, "X");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["pid"], 1);
  EXPECT_THAT(trace, testing::HasSubstr("\"ts\":0.010,\"dur\":0.500"));
}

TEST(ChromeTrace, OfNothingIsStillATrace) {
  EXPECT_TRUE(nlohmann::json::parse(trace_of({}))["traceEvents"].empty());
}

TEST(ChromeTrace, FailsWhenTheStreamDoes) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write_chrome_trace(busy_timeline(), out), Error);
}

}  // namespace
}  // namespace tandem
