// Tables of recorded ops: what is read, what is refused, and what was published about two of them.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/blame/blame.h"
#include "scenarios/import/traces/op_table.h"
#include "scenarios/import/traces/recorded_jobs.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

const std::filesystem::path kPublished = TANDEM_SOURCE_DIR "/tests/scenarios/import/stragglers";

Json published(const std::string& job) {
  std::ifstream in(kPublished / "published.json");
  return Json::parse(in).at(job);
}

Blame blame_of_published(const std::string& table, const std::string& sizes) {
  return blame(read_recorded_job({kPublished / table, kPublished / sizes}));
}

// The last word of a name is its key: "DP rank 3", "stage 2", "forward-compute".
void expect_parts(const std::vector<BlamedPart>& parts, const Json& expected, double error) {
  EXPECT_EQ(parts.size(), expected.size());
  for (const BlamedPart& part : parts) {
    const double slowdown = expected.at(part.name.substr(part.name.rfind(' ') + 1));
    EXPECT_NEAR(part.slowdown / slowdown, 1, error) << part.name;
  }
}

TEST(PublishedStragglers, ALastStageThatIsTooLong) {
  const Blame found = blame_of_published("ST.csv.gz", "ST.meta.yaml");
  const Json expected = published("ST");
  constexpr double kError = 5e-4;
  EXPECT_EQ(found.ops, 6784u);
  EXPECT_NEAR(found.slowdown / expected.at("slowdown").get<double>(), 1, kError);
  EXPECT_NEAR(found.launch_slowdown / expected.at("launch_slowdown").get<double>(), 1, kError);
  EXPECT_NEAR(found.ideal_s / expected.at("ideal_s").get<double>(), 1, kError);
  expect_parts(found.by_stage, expected.at("by_stage"), kError);
  expect_parts(found.by_replica, expected.at("by_dp_rank"), kError);
  expect_parts(found.by_type, expected.at("by_type"), kError);
  ASSERT_EQ(found.steps.size(), expected.at("by_step").size());
  for (std::size_t i = 0; i < found.steps.size(); ++i) {
    const std::string step = std::to_string(found.steps[i]);
    EXPECT_NEAR(found.step_slowdowns[i] / expected.at("by_step").at(step).get<double>(), 1, kError) << step;
    if (!expected.at("by_stage_in_steps").contains(step)) continue;
    for (std::size_t stage = 0; stage < found.stages; ++stage) {
      const double slowdown = expected.at("by_stage_in_steps").at(step).at(std::to_string(stage));
      EXPECT_NEAR(found.by_stage[stage].by_step[i] / slowdown, 1, kError) << step << ", " << stage;
    }
  }
  EXPECT_EQ(found.workers[static_cast<std::size_t>(found.worst_worker)].rank, 7);
  EXPECT_NEAR(found.slowest_workers.share, expected.at("slowest_workers"), 1e-3);
  EXPECT_NEAR(found.last_stage.share, expected.at("last_stage"), 1e-3);
}

// What was published is of all 44 steps, so that the ideal times are a little different.
TEST(PublishedStragglers, OneSlowWorker) {
  const Blame found = blame_of_published("AR-4-steps.csv.gz", "AR.meta.yaml");
  const Json expected = published("AR");
  constexpr double kError = 0.02;
  EXPECT_NEAR(found.slowdown / expected.at("slowdown").get<double>(), 1, 0.01);
  EXPECT_NEAR(found.ideal_s / expected.at("ideal_s").get<double>(), 1, 0.01);
  expect_parts(found.by_stage, expected.at("by_stage"), kError);
  expect_parts(found.by_replica, expected.at("by_dp_rank"), kError);
  expect_parts(found.by_type, expected.at("by_type"), kError);
  EXPECT_THAT(found.steps, ElementsAre(16, 404, 821, 1215));
  for (std::size_t i = 0; i < found.steps.size(); ++i) {
    const std::string step = std::to_string(found.steps[i]);
    EXPECT_NEAR(found.step_slowdowns[i] / expected.at("by_step").at(step).get<double>(), 1, kError) << step;
  }
  EXPECT_EQ(found.workers[static_cast<std::size_t>(found.worst_worker)].rank, 0);
  EXPECT_NEAR(found.slowest_workers.share, expected.at("slowest_workers"), 0.02);
  EXPECT_NEAR(found.last_stage.share, expected.at("last_stage"), 0.03);
  EXPECT_EQ(found.path.front().worker, 0);
}

const std::string kHeading = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

class OpTables : public ImportFiles {
 protected:
  std::string problem(const std::string& text) const {
    return refusal([&] { read_recorded_job({write("job.csv", text)}); });
  }
  std::string size_problem(const std::string& sizes) const {
    const auto table = write("job.csv", kHeading + "0,0,0,1,forward-compute,0,1,0,0,0,0\n");
    return refusal([&] { read_recorded_job({table, write("job.yaml", sizes)}); });
  }
};

TEST_F(OpTables, ColumnsInAnyOrder) {
  const auto ops = read_op_table(write("job.csv",
                                       "optype,seq_id,more,duration,start_ts,step,rank,stage,dp_rank\r\n"
                                       "optimizer,2,x,0.25,-1e-3,7,5,1,3\r\n\r\n"
                                       "gc,0,x,0,1,7,5,1,3"));
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].kind, PipelineOpKind::optimizer);
  EXPECT_EQ(ops[0].order, 2);
  EXPECT_EQ(ops[0].duration_s, 0.25);
  EXPECT_EQ(ops[0].start_s, -1e-3);
  EXPECT_EQ(ops[0].step, 7);
  EXPECT_EQ(ops[0].rank, 5);
  EXPECT_EQ(ops[0].stage, 1);
  EXPECT_EQ(ops[0].replica, 3);
  EXPECT_EQ(ops[0].part, 0);
  EXPECT_EQ(ops[0].part_of_job, -1);
  EXPECT_EQ(ops[1].place.line, 4);
}

TEST_F(OpTables, WhatIsWrongHasAPlace) {
  EXPECT_EQ(problem(""), "job.csv:1:1: is empty: expected a table of ops");
  EXPECT_EQ(problem(kHeading), "job.csv:1:1: has a heading and no ops");
  EXPECT_EQ(problem("dp_rank,stage,rank,step,op_type,start_ts,duration,seq_id\n"),
            "job.csv:1:25: unknown column 'op_type'; did you mean 'optype'?");
  EXPECT_EQ(
      problem("a,b\n1,2\n"),
      "job.csv:1:1: has no column 'dp_rank': expected a table of ops with the columns dp_rank, stage, rank, step, "
      "optype, start_ts, duration, seq_id");
  EXPECT_EQ(problem("stage,stage," + kHeading), "job.csv:1:1: has two columns 'stage'");
  const auto row = [&](const std::string& text) { return problem(kHeading + "0,0,0,1,gc,0,0,0,0,0,0\n" + text); };
  EXPECT_EQ(row("0,0,0,1,gc,0\n"), "job.csv:3:13: 6 cells in a table of 11 columns");
  EXPECT_EQ(row("0,0,0,1,gc,0,0,0,0,0,0,9\n"), "job.csv:3:24: 12 cells in a table of 11 columns");
  EXPECT_EQ(row("0,0,0,1,forward_compute,0,0,0,0,0,0\n").substr(0, 55),
            "job.csv:3:9: unknown type of op 'forward_compute' (know");
  EXPECT_THAT(row("0,0,0,1,forward_compute,0,0,0,0,0,0\n"), HasSubstr("); did you mean 'forward-compute'?"));
  EXPECT_EQ(row("0,0,0,1,gc,0,-0.5,0,0,0,0\n"),
            "job.csv:3:14: duration is '-0.5': expected a duration in seconds, 0 or more");
  EXPECT_EQ(row("0,0,0,1,gc,nan,0,0,0,0,0\n"), "job.csv:3:12: start_ts is 'nan': expected a time in seconds");
  EXPECT_EQ(row("0,0,0,1,gc,0,inf,0,0,0,0\n"),
            "job.csv:3:14: duration is 'inf': expected a duration in seconds, 0 or more");
  EXPECT_EQ(row("-1,0,0,1,gc,0,0,0,0,0,0\n"),
            "job.csv:3:1: dp_rank is '-1': expected a whole number from 0 to 1048576");
  EXPECT_EQ(row("0,0,0,1,gc,0,0,0,-2,0,0\n"), "job.csv:3:18: mc is '-2': expected a whole number from -1 to 1048576");
  EXPECT_EQ(row("0,0,0,1,gc,0,0,x,0,0,0\n"), "job.csv:3:16: seq_id is 'x': expected a whole number from 0 to 1048576");
  EXPECT_THAT(problem(std::string(5000, 'a')), HasSubstr("job.csv:1:1: is no row of a table"));
}

TEST_F(OpTables, SizesMustBeThoseOfTheOps) {
  EXPECT_EQ(size_problem("dp_size: 1\npp_size: 1\nvpp_size: 1\nworld_size: 1\n"), "");
  EXPECT_EQ(size_problem("trial_name: a\nrun_id: 3\ntp_size: 8\ndsp_size: 2\n"), "");
  EXPECT_THAT(size_problem("dp_size: 2\n"),
              HasSubstr("job.csv:1:1: has ops of the DP ranks 0 to 0, and the job is stated"));
  EXPECT_THAT(size_problem("vpp_size: 2\n"), HasSubstr("has ops of the model chunks 0 to 0"));
  EXPECT_THAT(size_problem("dp_size: 1\npp_size: 1\ntp_size: 4\nworld_size: 2\n"),
              HasSubstr("job.yaml:4:13: world_size: is 2, and dp_size x pp_size x tp_size x dsp_size is 4"));
  EXPECT_EQ(size_problem("dp_size: 1\npp_size: 1\ndsp_size: 4\nworld_size: 4\n"), "");
  EXPECT_THAT(size_problem("world_sise: 1\n"), HasSubstr("did you mean 'world_size'?"));
  EXPECT_THAT(size_problem("pp_size: 0\n"), HasSubstr("job.yaml:1:10: pp_size: "));
}

TEST_F(OpTables, FilesOfOneJob) {
  const auto table = write("job.csv", kHeading + "0,0,0,1,forward-compute,0,1,0,0,0,0\n");
  const auto sizes = write("job.yaml", "pp_size: 1\n");
  EXPECT_EQ(read_recorded_job({sizes, table}).name, "job");
  EXPECT_THAT(refusal([&] { read_recorded_job({sizes}); }),
              HasSubstr("job.yaml:1:1: has the sizes of a job: give the table"));
  EXPECT_THAT(refusal([&] {
                read_recorded_job({table, write("other.csv", kHeading)});
              }),
              HasSubstr("other.csv:1:1: is a second file like "));
  const auto trace = write("rank0.json", R"({"traceEvents": []})");
  EXPECT_THAT(refusal([&] {
                read_recorded_job({trace, table});
              }),
              HasSubstr("job.csv:1:1: cannot be combined with traces"));
}

}  // namespace
}  // namespace tandem
