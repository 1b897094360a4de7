// What is written for Megatron-LM and torchtitan is read as the same job, with equal simulated times.
//
// TANDEM_WRITTEN_JOBS=N draws N meshes instead of the few of every day.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

#include "tests/scenarios/export/written_jobs.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

int drawn_jobs_of_the_day(int usual) {
  const char* const asked = std::getenv("TANDEM_WRITTEN_JOBS");
  return asked == nullptr ? usual : std::atoi(asked);
}

class WrittenJobs : public WrittenFiles {
 protected:
  Scenario imported(const std::string& name, const std::string& text, const ImportChoices& options = {}) const {
    const auto file = write(name, text);
    return parse_scenario(import_file(file, options, "").scenario, file.string());
  }
  Scenario imported_example(const std::string& name) const {
    std::ifstream file(TANDEM_SOURCE_DIR "/docs/examples/" + name);
    return imported(name, {std::istreambuf_iterator<char>(file), {}});
  }
};

// Arguments of Megatron-LM on 16 devices, each of which must come back.
const std::vector<std::string> kArguments{
    "",
    "--group-query-attention --num-query-groups 2 --swiglu --normalization RMSNorm --disable-bias-linear "
    "--untie-embeddings-and-output-weights --position-embedding-type rope --attention-dropout 0 --hidden-dropout 0",
    "--disable-bias-linear --add-qkv-bias --qk-layernorm --normalization RMSNorm --position-embedding-type none",
    "--squared-relu --kv-channels 96 --max-position-embeddings 512",
    "--window-size 63,0 --window-attn-skip-freq 4",
    "--window-size 63,0",
    "--tensor-model-parallel-size 4 --sequence-parallel --tp-comm-overlap --use-distributed-optimizer "
    "--overlap-grad-reduce --overlap-param-gather",
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --no-scatter-gather-tensors-in-pipeline",
    "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1",
    "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 1",
    "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|(t|)*6tL'",
    "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Ettt|tt|tt|tL'",
    "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --mtp-num-layers 1 "
    "--position-embedding-type rope",
    "--context-parallel-size 2",
    "--context-parallel-size 2 --cp-comm-type a2a --use-distributed-optimizer",
    "--context-parallel-size 4 --cp-comm-type allgather --grad-reduce-in-bf16",
    "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor",
    "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --num-distributed-optimizer-instances 2",
    "--use-distributed-optimizer --num-distributed-optimizer-instances 2 --ddp-bucket-size 1000000 "
    "--overlap-grad-reduce",
    "--fp8-format hybrid",
    "--fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather --use-distributed-optimizer",
    "--fp8-format e4m3 --fp8-recipe blockwise",
    "--fp8-format e4m3 --fp8-recipe mxfp8",
    "--fp4-format e2m1 --fp4-recipe nvfp4",
    "--use-distributed-optimizer --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype fp8",
    "--optimizer sgd",
    "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
    "--recompute-granularity full --recompute-method block --recompute-num-layers 3",
    "--recompute-granularity selective --recompute-modules core_attn mlp layernorm",
    "--attention-backend unfused",
    "--attention-backend unfused --no-masked-softmax-fusion --no-gradient-accumulation-fusion",
    "--cross-entropy-loss-fusion",
    "--use-distributed-optimizer --optimizer-cpu-offload --use-precision-aware-optimizer --optimizer-offload-fraction "
    "0.5",
    "--cpu-offloading --cpu-offloading-num-layers 2",
    "--num-experts 8",
    "--num-experts 8 --moe-router-topk 4 --moe-ffn-hidden-size 256 --moe-shared-expert-intermediate-size 128 "
    "--expert-model-parallel-size 8 --moe-layer-freq '([0]*2+[1]*6)' --moe-router-enable-expert-bias --swiglu",
    "--num-experts 8 --expert-model-parallel-size 4 --moe-layer-freq 2 --moe-expert-capacity-factor 1.25 "
    "--moe-pad-expert-input-to-capacity --moe-use-legacy-grouped-gemm",
    "--num-experts 16 --expert-model-parallel-size 16 --moe-token-dispatcher-type flex "
    "--moe-flex-dispatcher-backend hybridep --moe-router-num-groups 4 --moe-router-group-topk 2",
    "--num-experts 8 --expert-model-parallel-size 4 --overlap-moe-expert-parallel-comm --moe-enable-deepep "
    "--use-transformer-engine-op-fuser",
    "--num-experts 8 --expert-model-parallel-size 4 --moe-shared-expert-intermediate-size 256 "
    "--moe-shared-expert-overlap",
    "--num-experts 8 --tensor-model-parallel-size 4 --sequence-parallel --expert-tensor-parallel-size 1 "
    "--expert-model-parallel-size 8 --use-distributed-optimizer",
    "--num-experts 8 --tensor-model-parallel-size 4 --sequence-parallel",
    "--multi-latent-attention --q-lora-rank 192 --kv-lora-rank 128 --qk-head-dim 64 --qk-pos-emb-head-dim 32 "
    "--v-head-dim 64 --position-embedding-type rope --normalization RMSNorm --disable-bias-linear",
    "--multi-latent-attention --kv-lora-rank 128 --qk-head-dim 64 --qk-pos-emb-head-dim 32 --v-head-dim 32 "
    "--num-experts 8 --mtp-num-layers 1 --pipeline-model-parallel-size 4 --position-embedding-type rope "
    "--pipeline-model-parallel-layout 'Ett|(tt|)*2ttmL'",
};

TEST_F(WrittenJobs, ArgumentsOfMegatronComeBack) {
  for (const std::string& more : kArguments) {
    SCOPED_TRACE(more);
    const Scenario given =
        imported("job.sh",
                 "NCCL_ALGO=Ring torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size "
                 "512 --num-attention-heads 8 --seq-length 256 --vocab-size 1024 --bf16 --micro-batch-size 1 "
                 "--global-batch-size 64 " +
                     more,
                 {.topology = "hgx-b200"});
    expect_same_job(given, JobForm::megatron);
  }
}

TEST_F(WrittenJobs, ExamplesOfTheDocumentationComeBack) {
  expect_same_job(imported_example("train.sh"), JobForm::megatron);
  expect_same_job(imported_example("train.toml"), JobForm::torchtitan);
  std::ifstream file(TANDEM_SOURCE_DIR "/docs/examples/config.json");
  const std::string config{std::istreambuf_iterator<char>(file), {}};
  expect_same_job(imported("config.json", config, {.batch = 16, .tensor = 2, .pipeline = 2}), JobForm::megatron);
}

// Jobs of torchtitan on 16 devices.
TEST_F(WrittenJobs, JobsOfTorchtitanComeBack) {
  struct Job {
    std::string training{}, parallelism{}, others{};
  };
  const std::vector<Job> jobs{
      {},
      {.training = "dtype = \"bfloat16\"", .others = "[activation_checkpoint]\nmode = \"none\""},
      {.parallelism = "data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 16"},
      {.parallelism = "data_parallel_replicate_degree = 2\nfsdp_reshard_after_forward = \"never\""},
      {.parallelism = "tensor_parallel_degree = 8\nenable_async_tensor_parallel = true",
       .others = "[compile]\nenable = true\n[activation_checkpoint]\nmode = \"full\""},
      {.parallelism = "tensor_parallel_degree = 4\nenable_sequence_parallel = false"},
      {.parallelism = "context_parallel_degree = 4\ncontext_parallel_rotate_method = \"alltoall\""},
      {.parallelism = "pipeline_parallel_degree = 4"},
      {.parallelism = "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                      "pipeline_parallel_layers_per_stage = 2\npipeline_parallel_first_stage_less_layers = 0\n"
                      "pipeline_parallel_last_stage_less_layers = 0"},
      {.parallelism = "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"InterleavedZeroBubble\"\n"
                      "fsdp_reshard_after_forward = \"always\""},
      {.training = "global_batch_size = 256",
       .parallelism = "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"DualPipeV\"\n"
                      "pipeline_parallel_first_stage_less_layers = 0"},
      {.others = "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n[activation_checkpoint]\nmode = \"selective\"\n"
                 "selective_ac_option = \"op\"\n[compile]\nenable = true"},
      {.others = "[optimizer]\nname = \"AdamW\"\nimplementation = \"fused_opt_states_bf16\""},
  };
  for (const Job& job : jobs) {
    const std::string converters =
        job.others.find("float8") == std::string::npos ? "" : "converters = [\"quantize.linear.float8\"]\n";
    const std::string text = fmt::format(
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n{}[training]\nseq_len = 1024\n{}\n[parallelism]\n{}\n{}\n",
        converters, job.training, job.parallelism, job.others);
    SCOPED_TRACE(text);
    expect_same_job(imported("job.toml", text, {.topology = "hgx-b200", .workers = 2}), JobForm::torchtitan);
  }
}

// A mesh of a model whose tables are those of Megatron-LM's arguments.
std::string drawn_mesh(std::mt19937& random) {
  const auto of = [&random](const auto& choices) { return choices[random() % std::size(choices)]; };
  const auto is = [&random](unsigned part) { return random() % part == 0; };
  const std::string machine = of(std::vector<std::string>{"hgx-h100", "dgx-a100", "gb200-nvl72"});
  const int per_worker = machine == "gb200-nvl72" ? 4 : 8, workers = of(std::vector{1, 2, 4});
  int left = workers * per_worker;
  const auto divide_by = [&](const std::vector<int>& sizes) {
    const int size = of(sizes);
    if (left % size != 0) return 1;
    left /= size;
    return size;
  };
  const int pipeline = divide_by({1, 2, 4}), tensor = divide_by({1, 2, 4}), context = divide_by({1, 1, 2});
  const int virtual_stages = pipeline > 1 && is(3) ? 2 : 1;
  const int micro_batches = pipeline * of(std::vector{1, 2, 3});
  std::string strategy = fmt::format("data: {}, tensor: {}, context: {}, pipeline: {}, micro_batches: {}", left, tensor,
                                     context, pipeline, micro_batches);
  if (virtual_stages > 1) strategy += ", virtual_stages: 2";
  if (context > 1)
    strategy += ", context_exchange: " + of(std::vector<std::string>{"ring", "all_to_all", "all_gather"});
  const bool divides_optimizer = is(2), overlaps = is(2);
  if (divides_optimizer) strategy += ", distributed_optimizer: true";
  if (divides_optimizer && overlaps && is(2)) strategy += ", overlap_gather: true";
  if (!divides_optimizer && pipeline == 1 && is(3)) strategy += ", shard_parameters: true";
  const int layers = of(std::vector{8, 9, 12});
  if (pipeline > 1) strategy += ", stage_blocks: balanced";
  std::string model = "llama", sizes = "key_heads: 4, intermediate: 768";
  if (is(3)) {
    model = "mixtral";
    sizes += ", experts: 8, used: 2";
    const int devices = left * context;
    if (devices % 2 == 0) strategy += fmt::format(", expert: {}", devices % 4 == 0 && is(2) ? 4 : 2);
  } else if (is(3)) {
    strategy += ", axis_order: tensor_pipeline_data";
  }
  const std::string again = of(std::vector<std::string>{"false", "true", "{first: 1}", "{together: 2}",
                                                        "{modules: [core_attn]}", "{modules: [layernorm, core_attn]}"});
  const bool is_quantised = machine != "dgx-a100" && is(4);
  return fmt::format(
      "name: drawn\nworkload: {{kind: layers, model: {}, sizes: {{layers: {}, hidden: 512, heads: 8, tokens: 512, "
      "{}}}, "
      "stack: {{fusion: hand, accumulation: {}, loss: {}, experts: separate}}, batch: {}, dtype: bf16{}, optimizer: "
      "adam, overlap: {}, sequence_parallel: {}, activation_checkpointing: {}{}, bucket_bytes: {}}}\n"
      "strategy: {{name: mesh, {}}}\nengine: {{name: sim}}\ntopology: {{cluster: {{node: {}, workers: {}}}}}\n"
      "devices: {{type: gpu, workers: {}, per_worker: {}}}\nsteps: 2\nwarmup_steps: 1\n",
      model, layers, sizes, is(2) ? "separate" : "in_products", is(2) ? "separate" : "fused",
      left * micro_batches * of(std::vector{1, 2}), is(2) ? ", parameter_dtype: f32" : "", overlaps, tensor > 1, again,
      is_quantised ? ", precision: {compute: fp8, recipe: delayed}" : "", of(std::vector{25'000'000, 4'000'000}),
      strategy, machine, workers, workers, per_worker);
}

TEST_F(WrittenJobs, DrawnMeshesAreTheSameJobsOfMegatron) {
  std::mt19937 random(11);
  int same = 0;
  const int jobs = drawn_jobs_of_the_day(16);
  for (int i = 0; i < jobs; ++i) {
    const std::string text = drawn_mesh(random);
    SCOPED_TRACE(text);
    Scenario given;
    try {
      given = read_scenario(text);
      step_time_of(given);
    } catch (const Error&) {  // what the strategy refuses
      continue;
    }
    expect_same_job(given, JobForm::megatron);
    ++same;
  }
  EXPECT_GT(same, jobs / 2);
}

// A mesh of Llama 3 8B as torchtitan has it.
std::string drawn_titan_mesh(std::mt19937& random) {
  const auto of = [&random](const auto& choices) { return choices[random() % std::size(choices)]; };
  const auto is = [&random](unsigned part) { return random() % part == 0; };
  int left = 32;
  const auto divide_by = [&](const std::vector<int>& sizes) {
    const int size = of(sizes);
    left /= size;
    return size;
  };
  const int pipeline = divide_by({1, 2, 4}), tensor = divide_by({1, 2}), context = divide_by({1, 1, 2});
  const int virtual_stages = pipeline > 1 && is(2) ? 2 : 1, micro_batches = pipeline * of(std::vector{1, 2});
  std::string strategy = fmt::format("data: {}, tensor: {}, context: {}, pipeline: {}, micro_batches: {}", left, tensor,
                                     context, pipeline, micro_batches);
  if (virtual_stages > 1) strategy += ", virtual_stages: 2";
  strategy += is(2) ? ", shard_parameters: true" : ", distributed_optimizer: true, overlap_gather: true";
  if (is(3)) strategy += ", replicate: 2";
  if (pipeline > 1 && is(2)) strategy += ", stage_blocks: balanced";
  if (context > 1 && is(2)) strategy += ", context_exchange: ring";
  const std::string again =
      of(std::vector<std::string>{"false", "true", "operations", "{every: 2}", "{every: 3}", "true"});
  return fmt::format(
      "name: drawn\nworkload: {{kind: layers, model: llama, sizes: {{tokens: 1024}}, stack: {{fusion: {}}}, batch: {}, "
      "dtype: bf16, parameter_dtype: f32, optimizer: adam, sequence_parallel: {}, activation_checkpointing: {}{}}}\n"
      "strategy: {{name: mesh, {}}}\nengine: {{name: sim}}\ntopology: {{cluster: {{node: hgx-h100, workers: 4}}}}\n"
      "devices: {{type: gpu, workers: 4, per_worker: 8}}\nsteps: 2\nwarmup_steps: 1\n",
      is(2) ? "none" : "compiled", left * micro_batches * of(std::vector{1, 2}), tensor > 1, again,
      is(3) ? ", precision: {compute: fp8, recipe: rowwise}" : "", strategy);
}

TEST_F(WrittenJobs, DrawnMeshesAreTheSameJobsOfTorchtitan) {
  std::mt19937 random(5);
  int same = 0;
  const int jobs = drawn_jobs_of_the_day(6);
  for (int i = 0; i < jobs; ++i) {
    const std::string text = drawn_titan_mesh(random);
    SCOPED_TRACE(text);
    Scenario given;
    try {
      given = read_scenario(text);
      step_time_of(given);
    } catch (const Error&) {
      continue;
    }
    expect_same_job(given, JobForm::torchtitan);
    ++same;
  }
  EXPECT_GT(same, jobs / 2);
}

// The recipes: what cannot be given is refused at a line of the file, and what is written is read as the same layout.
TEST_F(WrittenJobs, RecipesAreWrittenOrRefused) {
  int written = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios/examples/recipes")) {
    const Scenario given = load_scenario(entry.path());
    for (const auto& [word, form] : job_forms()) {
      SCOPED_TRACE(entry.path().filename().string() + " " + word);
      try {
        const ExportedJob job = export_job(given, form);
        const auto differences = job_differences(given, read_again(given, job.text, form));
        EXPECT_EQ(differences.size(), job.not_said.size());
        for (const JobDifference& one : differences) EXPECT_FALSE(one.is_layout) << one.key;
        for (const std::string& one : job.not_said) EXPECT_THAT(job.text, HasSubstr("# not said: " + one + "\n"));
        ++written;
      } catch (const InputError& error) {
        EXPECT_GT(error.diagnostics().front().line, 0) << error.what();
      }
    }
  }
  EXPECT_GT(written, 40);
}

TEST_F(WrittenJobs, AJobOfMegatronIsAScript) {
  const Scenario given = read_scenario(
      "name: small\nworkload: {kind: layers, model: gpt, sizes: {layers: 7, hidden: 256, heads: 4, tokens: 128}, "
      "batch: "
      "32, dtype: bf16, optimizer: adam, sequence_parallel: true, stack: {attention: flash}}\n"
      "strategy: {name: mesh, data: 2, tensor: 2, pipeline: 2, micro_batches: 4, stage_blocks: balanced}\n"
      "engine: {name: sim, nccl: {NCCL_ALGO: Ring}}\ntopology: hgx-h100\ndevices: {type: gpu, per_worker: 8}\n"
      "steps: 2\nwarmup_steps: 1\n");
  const std::string text = export_job(given, JobForm::megatron).text;
  EXPECT_THAT(text, testing::StartsWith("#!/bin/bash\n# small as arguments of Megatron-LM, by tandem.\n"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("export NCCL_ALGO='Ring'\n"), HasSubstr("export CUDA_DEVICE_MAX_CONNECTIONS=1\n"),
                    HasSubstr("  --pipeline-model-parallel-layout 'Et*4|t*3L'\n"),
                    HasSubstr("  --micro-batch-size 4\n  --global-batch-size 32\n  --bf16\n  --grad-reduce-in-bf16\n"),
                    HasSubstr("\ntorchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py \"${MODEL[@]}\" "
                              "\"${PARALLEL[@]}\" \"${TRAINING[@]}\" \"$@\"\n")));
}

}  // namespace
}  // namespace tandem
