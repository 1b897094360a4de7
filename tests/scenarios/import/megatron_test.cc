#include "scenarios/import/megatron.h"

#include "scenarios/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Megatron : public ImportFiles {
 protected:
  MegatronJob job(const std::string& text, const std::string& name = "job.sh") const {
    return read_megatron(read_flags(write(name, text)));
  }
  std::string problem(const std::string& text) const {
    const auto file = write("job.sh", text);
    return refusal([&] { import_file(file, {}, ""); });
  }
  Scenario scenario(const std::string& text, const ImportChoices& options = {},
                    const std::string& name = "job.sh") const {
    const auto file = write(name, text);
    return parse_scenario(import_file(file, options, "").scenario, file.string());
  }
};

const char* const kScript = R"(#!/bin/bash
# Trains a small GPT.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS=8; LAYERS=4
SEQ="64"
DISTRIBUTED=(--nproc_per_node $GPUS --nnodes 2)
torchrun ${DISTRIBUTED[@]} pretrain_gpt.py \
  --num-layers ${LAYERS} --hidden-size 32 --num-attention-heads 4 \
  --seq-length $SEQ --max-position-embeddings 64 --vocab-size 1000 \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 \
  --micro-batch-size=2 --global-batch-size ${BATCH:-32} --bf16 --overlap-grad-reduce \
  --recompute-granularity full --sequence-parallel --no-scatter-gather-tensors-in-pipeline \
  --use-distributed-optimizer --overlap-param-gather --clip-grad 1.0 --lr 1.0e-4 --strange-flag 3
)";

TEST_F(Megatron, AScriptBecomesAScenario) {
  const Scenario scenario = this->scenario(kScript);
  EXPECT_EQ(scenario.strategy.mesh.data, 4);
  EXPECT_EQ(scenario.strategy.mesh.tensor, 2);
  EXPECT_EQ(scenario.strategy.mesh.pipeline, 2);
  EXPECT_EQ(scenario.strategy.mesh.virtual_stages, 2);
  EXPECT_EQ(scenario.strategy.mesh.micro_batches, 4);
  EXPECT_EQ(scenario.workload.batch, 32);
  EXPECT_EQ(scenario.devices.per_worker, 8);
  EXPECT_EQ(scenario.topology->worker_count(), 2);
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  EXPECT_EQ(layers.dtype, DType::bf16);
  EXPECT_EQ(layers.parameter_dtype, DType::f32);
  EXPECT_TRUE(layers.overlap);
  EXPECT_TRUE(layers.activation_checkpointing);
  EXPECT_TRUE(layers.sequence_parallel);
  EXPECT_FALSE(scenario.strategy.mesh.scatter_gather);
  EXPECT_TRUE(scenario.strategy.mesh.distributed_optimizer);
  EXPECT_TRUE(scenario.strategy.mesh.overlap_gather);
  EXPECT_EQ(layers.bucket_bytes, 160'000'000);
  // 1,000 words are padded to 1,024. Of a block: both norms, queries, keys and values, output, and two layers.
  const std::int64_t h = 32;
  const std::int64_t block = 4 * h + 3 * (h * h + h) + h * h + h + 2 * 4 * h * h + 4 * h + h;
  EXPECT_EQ(layers.model.parameters(), (1024 + 64) * h + 4 * block + 2 * h);
}

TEST_F(Megatron, FlagsThatAreNotModelledAreListed) {
  const Imported imported = import_file(write("job.sh", kScript), {}, "");
  EXPECT_EQ(imported.kind, ImportKind::megatron);
  EXPECT_THAT(imported.left_out, testing::ElementsAre("--clip-grad 1.0: the norm of the gradients takes no time",
                                                      "--strange-flag 3: not known here; what it changes is left out"));
}

TEST_F(Megatron, ATestOfItsOwnIsRead) {
  const Scenario scenario = this->scenario(
      "ENV_VARS:\n  NCCL_ALGO: Ring\nMODEL_ARGS:\n  # sizes\n  --num-layers: 4\n  --hidden-size: 32\n"
      "  --ffn-hidden-size: 96\n  --ffn-hidden-size: 80\n  --num-attention-heads: 4\n  --seq-length: 16\n"
      "  --group-query-attention: true\n  --num-query-groups: 2\n  --swiglu: true\n  --normalization: RMSNorm\n"
      "  --disable-bias-linear: true\n  --untie-embeddings-and-output-weights: true\n  --vocab-size: 128\n"
      "  --position-embedding-type: rope\n  --micro-batch-size: 1 # of a replica\n  --global-batch-size: 16\n"
      "  --attention-backend: unfused\n  --save: ${PATH}\nTEST_TYPE: regular\n",
      {}, "model_config.yaml");
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  const std::int64_t h = 32;
  EXPECT_EQ(layers.model.parameters(), 2 * 128 * h + 4 * (2 * h + 2 * h * h + 2 * h * 16 + 3 * h * 80) + h);
  EXPECT_EQ(layers.dtype, DType::f32);
  EXPECT_EQ(layers.stack.attention, AttentionKernels::separate);
  EXPECT_EQ(scenario.engine.nccl.at("NCCL_ALGO"), "Ring");
  EXPECT_EQ(scenario.strategy.mesh.data, 8);
  EXPECT_EQ(scenario.strategy.mesh.micro_batches, 2);
}

TEST_F(Megatron, SomeLayersHaveExperts) {
  const std::string text =
      "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 --disable-bias-linear "
      "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 24 --moe-layer-freq '([0]*1+[1]*3)' "
      "--expert-model-parallel-size 4";
  const MegatronJob job = this->job(text);
  const ModelTable table = table_of(job.spec);
  EXPECT_EQ(table.parameters() - table.used_parameters(), 3 * 6 * 2 * 32 * 24);
  EXPECT_TRUE(job.left_out.empty());
  const Scenario scenario = this->scenario(text);
  EXPECT_EQ(scenario.strategy.mesh.expert, 4);
  EXPECT_EQ(scenario.strategy.mesh.data, 8);
}

TEST_F(Megatron, SequencesAreDivided) {
  const std::string text =
      "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 "
      "--context-parallel-size 2 --global-batch-size 8";
  const Scenario scenario = this->scenario(text);
  EXPECT_EQ(scenario.strategy.mesh.data, 4);
  EXPECT_EQ(scenario.strategy.mesh.context, 2);
  EXPECT_EQ(scenario.devices.per_worker, 8);
}

TEST_F(Megatron, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(problem("x --num-layers 4"), "job.sh: --hidden-size: is missing, and the size of the model depends on it");
  const std::string sizes = "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16\n";
  EXPECT_EQ(problem(sizes + " --pipeline-model-parallel-size 3"),
            "job.sh:2:2: --pipeline-model-parallel-size: 3 does not divide 4 layers");
  EXPECT_EQ(problem(sizes + " --tensor-model-parallel-size 8"),
            "job.sh:2:2: --tensor-model-parallel-size: 8 does not divide 4 heads");
  EXPECT_EQ(problem(sizes + " --global-batch-size 12"),
            "job.sh:2:2: --global-batch-size: 12 is no multiple of 8 replicas x micro-batches of 1");
  EXPECT_EQ(problem(sizes + " --ffn-hidden-size $FFN"),
            "job.sh:2:2: --ffn-hidden-size: expected a whole number, found '$FFN': put the variable's value in its "
            "place");
  EXPECT_EQ(problem(sizes + " --num-experts 6 --expert-model-parallel-size 4"),
            "job.sh:2:18: --expert-model-parallel-size: 4 does not divide 6 experts");
  EXPECT_EQ(problem(sizes + " --num-experts 4 --moe-layer-freq [0,1]"),
            "job.sh:2:18: --moe-layer-freq: '[0,1]' does not give 0 or 1 for each of 4 layers");
  EXPECT_THAT(problem("--hybrid-override-pattern M*M- " + sizes), HasSubstr("is of a model that is no GPT or BERT"));
}

}  // namespace
}  // namespace tandem
