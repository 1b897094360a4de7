#include "scenarios/faults/fault_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class FaultTrace : public testing::Test {
 protected:
  std::vector<TraceEvent> read(const std::string& text, std::optional<double> unit_s = std::nullopt) {
    const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "fault_trace_test.csv";
    std::ofstream(file) << text;
    return read_fault_trace(file, unit_s);
  }
  std::string refused(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(FaultTrace, ReadsHeadersAndBothOrdersWithoutOne) {
  const auto header = read("# of a cloud\nevent,time_ms,node\nadd,0,n1\nremove,1500,n1\n");
  ASSERT_EQ(header.size(), 2U);
  EXPECT_DOUBLE_EQ(header[1].date_s, 1.5);
  EXPECT_EQ(header[1].node, "n1");
  EXPECT_FALSE(header[1].comes);
  const auto events_first = read("0,add,node1\r\n60000,remove,node1\r\n", 1e-3);
  EXPECT_EQ(events_first[0].node, "node1");
  EXPECT_DOUBLE_EQ(events_first[1].date_s, 60);
  const auto nodes_first = read("0, node1, up\n95, node1, preempt");
  EXPECT_EQ(nodes_first[0].node, "node1");
  EXPECT_DOUBLE_EQ(nodes_first[1].date_s, 95);
}

TEST_F(FaultTrace, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(refused("0,add,n1\nx,add,n2\n"),
              AllOf(HasSubstr("test.csv:2:1"), HasSubstr("expected a time of 0 or more, found 'x'")));
  EXPECT_THAT(refused("0,add,n1\n1,explode,n2\n"), HasSubstr("unknown event 'explode' (one of add,"));
  EXPECT_THAT(refused("5,add,n1\n4,add,n2\n"), HasSubstr(":2:1: 4 comes before the event above it"));
  EXPECT_THAT(refused("5,add\n"), HasSubstr("expected time, node and event"));
  EXPECT_THAT(refused("when,who,event\n"), HasSubstr("expected the columns"));
  EXPECT_THAT(refused("\n"), HasSubstr("no event"));
  EXPECT_THAT(refused("time_s,node,event\n3,n1\n"), HasSubstr(":2:1: expected time, node and event"));
}

}  // namespace
}  // namespace tandem
