// Documents that share a sequence: attention computes the pairs of tokens within each of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/scenarios/running.h"

namespace tandem {
namespace {

// Llama blocks of width 512 on sequences of 1024 tokens.
Scenario packed_job(const std::string& lengths, const std::string& more = "", int tokens = 1024) {
  const std::string sequences = lengths.empty() ? "" : ", sequences: {lengths: " + lengths + "}";
  return read_scenario(
      "name: packed\nworkload: {kind: layers, model: llama, sizes: {tokens: " + std::to_string(tokens) +
      ", hidden: 512, heads: 4, key_heads: 2, intermediate: 1024, layers: 1, vocabulary: 512}, "
      "batch: 4, dtype: bf16" +
      sequences + more + "}\nengine: {name: sim}\ntopology: hgx-h100\ndevices: {type: gpu, per_worker: 1}\nsteps: 1\n");
}

double packed_flops(const Scenario& scenario, const std::string& name) {
  const RunResult result = run_scenario(scenario, {.measures_scaling = false});
  double flops = 0;
  for (const Record& record : result.timeline.records) {
    if (record.name.text() == name) flops += record.flops;
  }
  return flops;
}

// The forward product of queries and keys, and the one that makes the scores again: 2 flops for each pair, head and
// element of a head.
double packed_scores_flops(double pairs) {
  return 2 * 2 * 4 * 4 * 128 * pairs;
}

double packed_triangle(double length) {
  return length * (length + 1) / 2;
}

TEST(PackedSequences, AttentionHasThePairsWithinDocuments) {
  const double whole = packed_flops(packed_job(""), "block.0.scores");
  EXPECT_NEAR(whole, packed_scores_flops(packed_triangle(1024)), 1e-3 * whole);
  // Two sequences: 600 + 400 tokens, and 700 + 100, of which the third document does not fit into the first.
  const double pairs = (packed_triangle(600) + packed_triangle(400) + packed_triangle(700) + packed_triangle(100)) / 2;
  const double packed = packed_flops(packed_job("[600, 400, 700, 100]"), "block.0.scores");
  EXPECT_NEAR(packed, packed_scores_flops(pairs), 1e-3 * packed);
  EXPECT_EQ(packed_flops(packed_job("[1024]"), "block.0.scores"), whole) << "a document that fills its sequence";
}

TEST(PackedSequences, AllElseIsUnchanged) {
  for (const char* name : {"block.0.query", "block.0.down", "head"}) {
    EXPECT_EQ(packed_flops(packed_job("[100, 200, 300]"), name), packed_flops(packed_job(""), name)) << name;
  }
}

TEST(PackedSequences, ReportsSayHowMuchIsPadding) {
  const Report report = run_unscaled(packed_job("[600, 400, 700, 100]"));
  const double share = (packed_triangle(600) + packed_triangle(400) + packed_triangle(700) + packed_triangle(100)) / 2 /
                       packed_triangle(1024);
  EXPECT_THAT(report.notes, testing::Contains(fmt::format(
                                "packed sequences: 4 documents fill 2 sequences of 1024 tokens, 12.1 % of which are "
                                "padding; attention computes {:.1f} % of the pairs of whole sequences in every "
                                "micro-batch",
                                100 * share)));
}

// Devices that divide a sequence are assumed to have equally many of the pairs.
TEST(PackedSequences, DevicesOfASequenceHaveEqualParts) {
  const auto on_two = [](const std::string& lengths) {
    Scenario scenario = packed_job(lengths);
    scenario.strategy.name = "mesh";
    scenario.strategy.mesh = {.context = 2};
    scenario.devices.per_worker = 2;
    return packed_flops(scenario, "block.0.scores");
  };
  EXPECT_NEAR(on_two("[512, 512]") / on_two(""), packed_triangle(512) * 2 / packed_triangle(1024), 1e-3);
}

}  // namespace
}  // namespace tandem
