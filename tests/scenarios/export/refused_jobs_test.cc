// What a program cannot be given is refused where the scenario says it; what only its kernels differ in is said.
#include <vector>

#include "tests/scenarios/export/written_jobs.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Refused {
  std::string strategy, workload{}, message{};
  JobForm form = JobForm::megatron;
  std::string model =
      "llama, sizes: {layers: 32, hidden: 1024, heads: 8, key_heads: 8, intermediate: 1024, tokens: 512}";
  std::string optimizer = "adam";
};

std::string text_of_job(const Refused& job) {
  return fmt::format(
      "name: refused\nworkload: {{kind: layers, model: {}, dtype: bf16, optimizer: {}, batch: 64{}}}\n"
      "strategy: {{{}}}\nengine: {{name: sim}}\ntopology: {{cluster: {{node: hgx-h100, workers: 2}}}}\n"
      "devices: {{type: gpu, workers: 2, per_worker: 8}}\nsteps: 2\nwarmup_steps: 1\n",
      job.model, job.optimizer, job.workload, job.strategy);
}

class RefusedJobs : public WrittenFiles {};

TEST_F(RefusedJobs, AreNamedAtTheirKeys) {
  constexpr auto kTitan = JobForm::torchtitan;
  const std::string eight = "llama, sizes: {tokens: 1024}", experts = "mixtral, sizes: {layers: 8, tokens: 512}";
  const std::vector<Refused> jobs{
      {"name: multi_worker_mirrored", "", "strategy.name: Megatron-LM has no strategy 'multi_worker_mirrored'"},
      {"name: mesh, data: 4, pipeline: 4, micro_batches: 4, schedule: zero_bubble", "",
       "strategy.schedule: Megatron-LM has no zero_bubble; its schedule is 1f1b"},
      {"name: mesh, data: 4, tensor: 2, pipeline: 2, micro_batches: 2, expert: 4, axis_order: tensor_pipeline_data",
       ", sequence_parallel: true", "strategy.axis_order: Megatron-LM's --use-tp-pp-dp-mapping needs as many replicas",
       JobForm::megatron, experts},
      {"name: mesh, data: 8, pipeline: 2, micro_batches: 2, shard_parameters: true, axis_order: tensor_pipeline_data",
       "", "strategy.axis_order: torchtitan cannot be given tensor_pipeline_data", kTitan, eight},
      {.strategy = "name: mesh, data: 16",
       .message = "workload.optimizer: Megatron-LM cannot be given lamb; it would have adam",
       .optimizer = "lamb"},
      {"name: mesh, data: 16", ", activation_checkpointing: {every: 2}",
       "workload.activation_checkpointing: Megatron-LM cannot be given {every: 2}; it would have true"},
      {"name: mesh, data: 16", ", activation_checkpointing: operations", "workload.activation_checkpointing: "},
      {"name: mesh, data: 16", ", activation_checkpointing: {modules: [act]}", "workload.activation_checkpointing: "},
      {"name: mesh, data: 16", ", precision: {compute: fp8, recipe: rowwise}",
       "workload.precision.recipe: Megatron-LM cannot be given rowwise; it would have tensorwise"},
      {"name: mesh, data: 8, pipeline: 2, shard_parameters: true", "",
       "strategy.shard_parameters: Megatron-LM cannot be given true; it would have false"},
      {"name: mesh, data: 16, distributed_optimizer: true, overlap_gather: true", ", overlap: false",
       "strategy.overlap_gather: Megatron-LM's --overlap-param-gather needs workload.overlap: true"},
      {"name: mesh, data: 8, tensor: 2", "", "workload.sequence_parallel: Megatron-LM trains experts",
       JobForm::megatron, experts},
      {"name: mesh, data: 16", "", "workload.model: 'resnet50' is no transformer", JobForm::megatron, "resnet50"},
      {"name: mesh, data: 16", "", "workload.model: is no decoder", JobForm::megatron, "bert_base"},
      {"name: mesh, tensor: 8, pipeline: 2, micro_batches: 2", ", sequence_parallel: true, parameter_dtype: f32",
       "workload.dtype: torchtitan cannot be given bf16; it would have f32", kTitan, eight},
      {"name: mesh, data: 8, tensor: 2", "", "strategy.data: torchtitan keeps whole parameters on replicas (DDP) only",
       kTitan, eight},
      {.strategy = "name: mesh, data: 16, shard_parameters: true",
       .message = "workload.optimizer: torchtitan's optimizers",
       .form = kTitan,
       .model = eight,
       .optimizer = "lamb"},
      {"name: mesh, data: 16, shard_parameters: true", "", "workload.model: the flavors of torchtitan", kTitan,
       experts},
      {"name: mesh, data: 16, shard_parameters: true", "",
       "workload.model: torchtitan cannot be given embeddings of 128256 entries x 1024", kTitan},
      {"name: mesh, data: 16, shard_parameters: true", "",
       "workload.model: torchtitan cannot be given embeddings of 128000 entries x 4096", kTitan,
       "llama, sizes: {tokens: 1024, vocabulary: 128000}"},
      {"name: mesh, data: 4, pipeline: 4, micro_batches: 4, shard_parameters: true, stage_blocks: [2, 10, 12, 8]", "",
       "strategy.stage_blocks: torchtitan divides 32 blocks among 4 stages equally", kTitan, eight},
      {"name: mesh, data: 4, pipeline: 4, micro_batches: 4, shard_parameters: true, schedule: zero_bubble", "",
       "strategy.schedule: torchtitan has no zero_bubble with one stage a device", kTitan, eight},
      {"name: mesh, data: 16", ", precision: {moments: bf16}",
       "workload.precision.moments: Megatron-LM's "
       "--use-precision-aware-optimizer needs strategy.distributed_optimizer: true"},
      {"name: mesh, data: 16", ", offload: {optimizer: 0.5}", "needs strategy.distributed_optimizer: true"},
      {"name: mesh, data: 8, pipeline: 2, micro_batches: 2", ", offload: {activations: 1}",
       "workload.offload.activations: Megatron-LM's --cpu-offloading needs a pipeline of one stage"},
      {"name: mesh, data: 16", ", offload: {activations: 1}, activation_checkpointing: true",
       "needs workload.activation_checkpointing: false"},
      {"name: mesh, data: 16", ", offload: {activations: 32}", "leaves at least one of the 32 blocks"},
      {"name: mesh, data: 16, shard_parameters: true", ", precision: {compute: nvfp4}",
       "workload.precision.compute: torchtitan cannot be given nvfp4", kTitan, eight},
  };
  for (const Refused& job : jobs) {
    const std::string text = text_of_job(job);
    SCOPED_TRACE(text);
    const Scenario scenario = read_scenario(text);
    const std::string message = refusal([&] { export_job(scenario, job.form); });
    EXPECT_THAT(message, HasSubstr(job.message));
    EXPECT_THAT(message, testing::MatchesRegex("[^\n]*in_memory.yaml:[0-9]+:[0-9]+: (.|\n)*"));
  }
}

TEST_F(RefusedJobs, OtherKernelsAreSaid) {
  const Scenario scenario = read_scenario(text_of_job(
      {.strategy = "name: fully_sharded", .workload = ", stack: {fusion: compiled, block_host_time: 1ms}"}));
  const ExportedJob job = export_job(scenario, JobForm::megatron);
  EXPECT_THAT(job.not_said,
              testing::UnorderedElementsAre(
                  "strategy.name is fully_sharded here, and mesh in what tandem reads from the file",
                  "workload.stack.fusion is compiled here, and hand in what tandem reads from the file",
                  "workload.stack.block_host_time is 0.001 here, and 0 in what tandem reads from the file"));
  for (const std::string& one : job.not_said) EXPECT_THAT(job.text, HasSubstr("\n# not said: " + one + "\n"));
}

// Only variables of NCCL are exported, and what their values have in them does nothing else.
TEST_F(RefusedJobs, EnginesAreSaidOrExported) {
  std::string text = text_of_job({.strategy = "name: mesh, data: 16"});
  const std::string engine = "engine: {name: sim";
  text.insert(text.find(engine) + engine.size(),
              ", collectives: message, nccl: {NCCL_ALGO: \"Ring'; touch x; '\", version: \"2.18\"}");
  const ExportedJob job = export_job(read_scenario(text), JobForm::megatron);
  EXPECT_THAT(job.text, HasSubstr(R"(export NCCL_ALGO='Ring'\''; touch x; '\''')"));
  EXPECT_THAT(job.text, testing::Not(HasSubstr("export version")));
  EXPECT_THAT(job.not_said,
              Contains("engine.collectives is message here, and fluid in what tandem reads from the file"));
}

// A vocabulary that devices cannot divide equally is filled up, as Megatron-LM does.
TEST_F(RefusedJobs, AVocabularyIsFilledUp) {
  const Scenario scenario = read_scenario(
      text_of_job({.strategy = "name: mesh, data: 8, tensor: 2",
                   .workload = ", sequence_parallel: true",
                   .model = "gpt, sizes: {layers: 4, hidden: 256, heads: 4, tokens: 128, vocabulary: 50257}"}));
  const ExportedJob job = export_job(scenario, JobForm::megatron);
  EXPECT_THAT(job.text, HasSubstr("  --vocab-size 50257\n  --make-vocab-size-divisible-by 1\n"));
  EXPECT_THAT(job.not_said, Contains(HasSubstr("filled up with 1 for equal parts on all devices")));
}

}  // namespace
}  // namespace tandem
