#include "engine/timeline.h"

#include <gtest/gtest.h>

#include "engine/collective.h"
#include "engine/record_log.h"
#include "engine/task.h"

namespace tandem {
namespace {

TEST(Timeline, NamesItsCategoriesAndKinds) {
  EXPECT_EQ(name_of(Category::compute), "compute");
  EXPECT_EQ(name_of(Category::communication), "communication");
  EXPECT_EQ(name_of(Category::update), "update");
  EXPECT_EQ(name_of(Category::input), "input");
  EXPECT_EQ(name_of(Category::other), "other");
  EXPECT_EQ(name_of(RecordKind::op), "op");
  EXPECT_EQ(name_of(RecordKind::copy), "copy");
  EXPECT_EQ(name_of(RecordKind::collective), "collective");
  EXPECT_EQ(name_of(RecordKind::step), "step");
}

Record record_at(Nanoseconds start_ns, int worker, int device, int stream, const std::string& name) {
  Record record;
  record.name = name;
  record.worker = worker;
  record.device = device;
  record.stream = stream;
  record.start_ns = start_ns;
  return record;
}

std::string names_of(const std::vector<Record>& records) {
  std::string names;
  for (const Record& record : records) names += record.name;
  return names;
}

TEST(Timeline, SortsByStartThenWorkerDeviceAndStream) {
  std::vector<Record> records = {record_at(2, 0, 0, 0, "g"),  record_at(1, 1, 0, 0, "e"), record_at(1, 0, 1, 0, "d"),
                                 record_at(1, 0, 0, 1, "c"),  record_at(1, 0, 0, 0, "b"), record_at(1, 0, -1, 5, "a"),
                                 record_at(-1, 9, 9, 9, "_"), record_at(1, 1, 0, 0, "f")};
  sort_records(records);
  EXPECT_EQ(names_of(records), "_abcdefg") << "the host before devices, equal ones as they came";
}

TEST(RecordLog, HandsOverWhatALargeRunLeavesInTheSameOrderAndIsEmptyThen) {
  constexpr int kRecords = 5000;
  RecordLog log;
  std::vector<Record> expected;
  for (int i = 0; i < kRecords; ++i) {
    Record record = record_at(i * 37 % 100, i * 11 % 7, i % 3, i % 2, "record " + std::to_string(i));
    expected.push_back(record);
    log.add(record);
  }
  sort_records(expected);
  const std::vector<Record> sorted = log.take_sorted();
  ASSERT_EQ(sorted.size(), expected.size());
  for (int i = 0; i < kRecords; ++i) {
    const auto place = static_cast<std::size_t>(i);
    ASSERT_EQ(sorted[place].name, expected[place].name);
    ASSERT_LE(sorted[i == 0 ? 0 : place - 1].start_ns, sorted[place].start_ns);
  }
  EXPECT_TRUE(log.take_sorted().empty());
}

// The factors of nccl-tests' doc/PERFORMANCE.md.
TEST(BusBandwidth, HasNcclTestsFactors) {
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::all_to_all, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::broadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::reduce, 8), 1);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::send_receive, 2), 1);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(CollectiveKind::all_reduce, 1), 0);
}

TEST(Task, OutsideARunIsTheThreadsOwn) {
  Task& own = Task::current();
  EXPECT_EQ(own.worker(), nullptr);
  own.context() = 5;
  Task inner("inner");
  Task::set_current_of_this_thread(&inner);
  EXPECT_EQ(&Task::current(), &inner);
  EXPECT_FALSE(inner.context().has_value());
  Task::set_current_of_this_thread(nullptr);
  EXPECT_EQ(std::any_cast<int>(Task::current().context()), 5);
  own.context().reset();
}

Task* provided_task = nullptr;

TEST(Task, AProviderDecidesWhileItNamesATask) {
  Task actor("actor");
  Task::set_provider_of_this_thread([] { return provided_task; });
  Task& own = Task::current();
  EXPECT_EQ(own.worker(), nullptr);
  provided_task = &actor;
  EXPECT_EQ(&Task::current(), &actor);
  provided_task = nullptr;
  EXPECT_EQ(&Task::current(), &own);
  Task::set_provider_of_this_thread(nullptr);
}

}  // namespace
}  // namespace tandem
