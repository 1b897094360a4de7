#include "engine/timeline.h"

#include <gtest/gtest.h>

#include "engine/collective.h"
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
