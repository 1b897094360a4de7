// Scenarios that are written as jobs of other programs, read again, and must be the same jobs.
#pragma once

#include <fmt/format.h>

#include <string>

#include "scenarios/export/compared_jobs.h"
#include "scenarios/export/export.h"
#include "scenarios/job/tasks.h"
#include "tests/scenarios/import/import_files.h"
#include "tests/scenarios/running.h"

namespace tandem {

inline Nanoseconds step_time_of(const Scenario& scenario) {
  return run_scenario(scenario, {.measures_scaling = false, .only_report = true}).report.summary.step_time.mean;
}

class WrittenFiles : public ImportFiles {
 protected:
  // Reads a job as `tandem import` does, on the machines of a scenario.
  Scenario read_again(const Scenario& given, const std::string& text, JobForm form) const {
    const auto file = write(form == JobForm::megatron ? "again.sh" : "again.toml", text);
    const Imported imported = import_file(
        file, {.devices = given.devices.per_worker, .workers = static_cast<int>(training_workers(given))}, "");
    for (const std::string& one : imported.left_out) EXPECT_THAT(one, testing::Not(testing::HasSubstr("not known")));
    Scenario read = parse_scenario(imported.scenario, file.string());
    read.topology = given.topology;
    return read;
  }

  // Expects that a written scenario becomes the same job again, with the same simulated time.
  void expect_same_job(const Scenario& given, JobForm form) const {
    const ExportedJob job = export_job(given, form);
    EXPECT_THAT(job.not_said, testing::IsEmpty());
    SCOPED_TRACE(job.text);
    Scenario read = read_again(given, job.text, form);
    read.steps = given.steps;
    read.warmup_steps = given.warmup_steps;
    for (const JobDifference& one : job_differences(given, read)) {
      ADD_FAILURE() << one.key << ": " << one.given << ", " << one.is;
    }
    EXPECT_EQ(step_time_of(given), step_time_of(read));
  }
};

}  // namespace tandem
