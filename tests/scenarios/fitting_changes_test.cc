// What a message says to change where a job needs more memory than its devices have.
#include "scenarios/estimates/fitting_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Scenario llama(const std::string& strategy, int batch, const std::string& more = "") {
  return read_scenario("workload: {kind: layers, model: llama, dtype: bf16, optimizer: adam, batch: " +
                       std::to_string(batch) + more + "}\nstrategy: " + strategy +
                       "\nengine: {name: sim}\ntopology: hgx-h100\ndevices: {type: gpu, per_worker: 8}\nsteps: 1\n");
}

std::vector<FittingChange> changes_of(const Scenario& scenario) {
  return changes_that_fit(job_of(scenario));
}

// Each is tried as a user would: the key is set in the file.
TEST(FittingChanges, FitWhereTheyAreMade) {
  const std::string mesh = "{name: mesh, data: 2, tensor: 4, micro_batches: 8}";
  const std::vector<FittingChange> changes = changes_of(llama(mesh, 64));
  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(changes[0].text, "strategy.micro_batches: 16");
  const Scenario smaller = llama("{name: mesh, data: 2, tensor: 4, micro_batches: 16}", 64);
  EXPECT_EQ(memory_need(job_of(smaller)), changes[0].need);
  EXPECT_EQ(changes[1].text, "workload.offload: {activations: 16}");
  const Scenario offloaded = llama(mesh, 64, ", offload: {activations: 16}");
  EXPECT_EQ(memory_need(job_of(offloaded)), changes[1].need);
  const std::string again = "{modules: [mlp]}";
  const auto mlp = std::ranges::find(changes, "workload.activation_checkpointing: " + again, &FittingChange::text);
  ASSERT_NE(mlp, changes.end());
  const Scenario recomputed = llama(mesh, 64, ", activation_checkpointing: " + again);
  EXPECT_EQ(memory_need(job_of(recomputed)), mlp->need);
  EXPECT_GT(mlp->again, 0.1);
  EXPECT_LT(mlp->again, 1.0 / 3) << "some of the forward pass, which is a third of a step";
  for (std::size_t i = 1; i < changes.size(); ++i) {
    EXPECT_GE(changes[i].again, changes[i - 1].again);
    EXPECT_TRUE(changes[i].need.is_within()) << changes[i].text;
  }
}

TEST(FittingChanges, AreMadeTogetherIfNoneIsEnough) {
  const std::vector<FittingChange> changes = changes_of(llama("{name: mesh, data: 8, micro_batches: 2}", 64));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_THAT(changes[0].text, HasSubstr("workload.stack.loss: fused, strategy.distributed_optimizer: true, "));
  EXPECT_TRUE(changes[0].need.fits());
  EXPECT_EQ(changes_of(llama("{name: fully_sharded}", 64))[0].text, "workload.gradient_accumulation_steps: 8");
}

// Micro-batches of what has micro-batches, passes of the others; and the keys of the strategy at hand.
TEST(FittingChanges, AreThoseThatTheStrategyTakes) {
  const auto texts = [](const std::string& strategy, int batch) {
    std::vector<std::string> all;
    for (const FittingChange& change : changes_of(llama(strategy, batch))) all.push_back(change.text);
    return all;
  };
  EXPECT_EQ(texts("{name: fully_sharded}", 72).at(0), "workload.gradient_accumulation_steps: 9")
      << "72 examples have no eight equal parts for eight devices";
  EXPECT_THAT(texts("{name: pipeline_parallel, micro_batches: 1}", 64),
              testing::Contains(testing::StartsWith("strategy.micro_batches: ")));
  EXPECT_THAT(texts("{name: mesh, data: 8, micro_batches: 8, distributed_optimizer: true, overlap_gather: true}", 64),
              testing::Contains("strategy.shard_parameters: true, strategy.distributed_optimizer: false, "
                                "strategy.overlap_gather: false"));
}

TEST(FittingChanges, MayNotExist) {
  const Scenario replicated = llama("{name: mirrored}", 8);
  EXPECT_THAT(changes_of(replicated), IsEmpty()) << "parameters and their state alone are too large";
  EXPECT_THAT(text_of(changes_of(replicated)), HasSubstr("it needs more devices"));
}

TEST(FittingChanges, AreInTheMessage) {
  try {
    run_scenario(llama("{name: fully_sharded}", 64));
    FAIL();
  } catch (const MemoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("GB; it fits with workload.gradient_accumulation_steps: 8 ("));
  }
}

}  // namespace
}  // namespace tandem
