// Ways to divide a table of layers that is really computed: each learns what one device learns.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "scenarios/run/runner.h"
#include "tests/scenarios/running.h"

namespace tandem {

struct Way {
  std::string name;
  std::string strategy;
  int devices = 4;
  std::string workload{};  // more keys of it
};

inline constexpr const char* kThreads = "}\nengine: {name: cpu}";
inline constexpr const char* kSimulated = ", type: gpu}\nengine: {name: sim, values: real}\ntopology: hgx-h100";

inline std::string text_of(const std::string& model, const Way& way, const std::string& engine) {
  return "schema_version: 1\nworkload: {kind: layers, model: " + model +
         ", batch: 8, values: real, optimizer: momentum, learning_rate: 0.05, bucket_bytes: 20kB" + way.workload +
         "}\nstrategy: {" + way.strategy + "}\ndevices: {per_worker: " + std::to_string(way.devices) + engine +
         "\nsteps: 4\n";
}

inline Report report_of(const std::string& model, const Way& way, const std::string& engine) {
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(parse_scenario(text_of(model, way, engine), "way.yaml"), options).report;
}

// The keys that change what is learned, and not only how.
inline std::string alone(const std::string& workload) {
  return workload.find("dropout") == std::string::npos ? "" : ", dropout: 0.25";
}

inline void expect_same_losses(const std::string& model, const Way& way, const std::string& engine) {
  const Report reference = report_of(model, {"one", "name: one_device", 1, alone(way.workload)}, kThreads);
  const Report report = report_of(model, way, engine);
  ASSERT_EQ(report.loss.size(), 4u);
  for (std::size_t step = 0; step < 4; ++step) {
    EXPECT_NEAR(report.loss[step] / reference.loss[step], 1, 1e-5) << "step " << step;
  }
  EXPECT_LT(report.loss.back(), report.loss.front());
}

}  // namespace tandem
