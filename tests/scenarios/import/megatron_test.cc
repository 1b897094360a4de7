#include "scenarios/import/megatron.h"

#include "tests/scenarios/import/megatron_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Megatron : public MegatronFiles {};

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
  EXPECT_EQ(layers.recomputed, RecomputedBlocks{.any = true});
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

std::string small_job(const std::string& flags) {
  return "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 32 --num-attention-heads 4 "
         "--seq-length 64 --max-position-embeddings 64 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 8 "
         "--bf16 " +
         flags + "\n";
}

// argparse refuses what follows them, too. A variable that nobody set may hold flags.
TEST_F(Megatron, SwitchesTakeNoValue) {
  EXPECT_EQ(
      problem(small_job("--moe-shared-expert-overlap 3")),
      "job.sh:1:214: --moe-shared-expert-overlap: takes no value, or true or false in a configuration; found '3'");
  EXPECT_THAT(problem(small_job("--sequence-parallel=1 --swiglu")), HasSubstr("--sequence-parallel: takes no value"));
  EXPECT_THAT(problem(small_job("--mock-data /data/text")), HasSubstr("--mock-data: takes no value"));
  EXPECT_TRUE(job(small_job("--tensor-model-parallel-size 2 --sequence-parallel $MORE")).sequence_parallel);
  const auto is_f16 = [&](const std::string& value) {
    return job("MODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 32\n  --num-attention-heads: 4\n  --seq-length: 64\n"
               "  --vocab-size: 1000\n  --fp16: " +
               value + "\n")
               .dtype == "f16";
  };
  EXPECT_TRUE(is_f16("true"));
  EXPECT_FALSE(is_f16("false"));
}

TEST_F(Megatron, WhatIsKeptOnTheHostIsRead) {
  const auto offload = [&](const std::string& flags) {
    return std::get<LayersSettings>(scenario(small_job(flags)).workload.kind).offload;
  };
  EXPECT_FALSE(offload("").any());
  EXPECT_FALSE(offload("--cpu-offloading-num-layers 2").any()) << "without --cpu-offloading";
  EXPECT_EQ(offload("--cpu-offloading --cpu-offloading-num-layers 2").blocks, 2);
  EXPECT_EQ(offload("--optimizer-cpu-offload").optimizer, 1);
  EXPECT_EQ(offload("--optimizer-cpu-offload --optimizer-offload-fraction 0.25").optimizer, 0.25);
  EXPECT_TRUE(
      job(small_job("--cpu-offloading --cpu-offloading-num-layers 2 --optimizer-cpu-offload")).left_out.empty());
  EXPECT_THAT(job(small_job("--cpu-offloading --cpu-offloading-weights")).left_out,
              testing::ElementsAre("--cpu-offloading-weights: weights stay on the device"));
  EXPECT_THAT(job(small_job("--optimizer-cpu-offload --use-megatron-fsdp --data-parallel-sharding-strategy "
                            "optim_grads_params"))
                  .left_out,
              testing::Contains(HasSubstr("on pieces of parameters")));
  EXPECT_THAT(problem(small_job("--optimizer-cpu-offload --optimizer-offload-fraction 2")),
              HasSubstr("--optimizer-offload-fraction: must be a share from 0 to 1"));
}

TEST_F(Megatron, MomentsHaveTheTypesOfThePrecisionAwareOptimizer) {
  const auto text = [](const std::string& flags) { return small_job("--use-distributed-optimizer " + flags); };
  const std::string aware = "--use-precision-aware-optimizer ";
  const auto moments = [&](const std::string& flags) { return job(text(flags)).moments; };
  EXPECT_EQ(moments(""), "");
  EXPECT_EQ(moments(aware), "");
  EXPECT_EQ(moments(aware + "--exp-avg-dtype fp32"), "");
  EXPECT_EQ(moments(aware + "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16"), "bf16");
  EXPECT_EQ(moments(aware + "--exp-avg-dtype fp8 --exp-avg-sq-dtype fp16"), "{first: fp8, second: f16}");
  EXPECT_EQ(moments(aware + "--optimizer sgd --exp-avg-dtype bf16"), "");
  EXPECT_EQ(moments("--exp-avg-dtype bf16"), "");
  EXPECT_THAT(job(text("--exp-avg-dtype bf16")).left_out,
              testing::ElementsAre(HasSubstr("moments are f32 without --use-precision-aware-optimizer")));
  EXPECT_THAT(job(text(aware + "--main-params-dtype fp16")).left_out,
              testing::ElementsAre("--main-params-dtype: copies of parameters are f32"));
  EXPECT_THAT(problem(text(aware + "--exp-avg-sq-dtype int8")),
              HasSubstr("--exp-avg-sq-dtype: must be fp32, fp16, bf16 or fp8, found 'int8'"));
  const std::string both = aware + "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16";
  const auto layers = [&](const std::string& flags, const ImportChoices& options = {}) {
    return std::get<LayersSettings>(scenario(text(flags), options).workload.kind);
  };
  EXPECT_EQ(layers(both).moments.second, DType::bf16);
  EXPECT_EQ(layers(both + " --fp8-format hybrid").quantised, Quantised::fp8);
  EXPECT_EQ(layers(both + " --fp8-format hybrid").moments.first, DType::bf16);
  EXPECT_EQ(layers(both, {.optimizer = "sgd"}).moments.first, std::nullopt);
}

TEST_F(Megatron, WhatIsComputedAgainAndWhatIsShardedAreRead) {
  const auto with = [&](const std::string& flags) { return job(small_job(flags)); };
  const auto again = [&](const std::string& flags) { return with(flags).recompute; };
  EXPECT_EQ(again(""), "");
  EXPECT_EQ(again("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"), "true");
  EXPECT_EQ(again("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2"), "{together: 2}");
  EXPECT_EQ(again("--recompute-granularity full --recompute-method block --recompute-num-layers 3"), "{first: 3}");
  EXPECT_EQ(again("--recompute-activations"), "{modules: [core_attn]}");
  EXPECT_EQ(again("--recompute-granularity selective --recompute-modules layernorm mlp moe_act"),
            "{modules: [layernorm, mlp]}");
  EXPECT_THAT(with("--recompute-granularity selective --recompute-modules mlp shared_experts").left_out,
              Contains(HasSubstr("shared_experts: kept, as other layers")));

  const std::string fsdp = "--use-megatron-fsdp --data-parallel-sharding-strategy ";
  EXPECT_TRUE(with(fsdp + "optim_grads_params").shard_parameters);
  EXPECT_FALSE(with(fsdp + "optim_grads_params").distributed_optimizer);
  EXPECT_TRUE(with(fsdp + "optim").distributed_optimizer);
  EXPECT_FALSE(with(fsdp + "no_shard").distributed_optimizer);
  EXPECT_EQ(with("--use-distributed-optimizer --num-distributed-optimizer-instances 2").replicate, 2);
  EXPECT_FALSE(with(fsdp + "optim_grads_params --pipeline-model-parallel-size 2").shard_parameters);
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
  EXPECT_EQ(layers.stack.attention, AttentionKernels::fused_softmax);
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

TEST_F(Megatron, ExpertsSayHowManyMachinesThereAre) {
  const auto workers = [&](const std::string& flags) {
    return scenario(
               "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 --num-experts "
               "48 --moe-router-topk 2 --moe-ffn-hidden-size 24 --disable-bias-linear " +
               flags)
        .topology->worker_count();
  };
  EXPECT_EQ(workers("--expert-model-parallel-size 8"), 1);
  EXPECT_EQ(workers("--expert-model-parallel-size 16"), 2);
  EXPECT_EQ(workers("--expert-model-parallel-size 12"), 3) << "24 devices";
  const std::string by_two = "--expert-model-parallel-size 16 --tensor-model-parallel-size 2 --sequence-parallel ";
  EXPECT_EQ(workers(by_two), 4);
  EXPECT_EQ(workers(by_two + "--expert-tensor-parallel-size 1"), 2);
  const std::string by_four = "--expert-model-parallel-size 16 --tensor-model-parallel-size 4 --sequence-parallel ";
  EXPECT_EQ(workers(by_four + "--expert-tensor-parallel-size 2"), 4);
  EXPECT_EQ(workers("--expert-model-parallel-size 16 --context-parallel-size 4 --pipeline-model-parallel-size 2"), 4);
}

TEST_F(Megatron, RowsReachExpertsAsTheDispatcherSaysIt) {
  const std::string text =
      "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 --num-experts 8 "
      "--moe-router-topk 2 --moe-ffn-hidden-size 24 --expert-model-parallel-size 4 --bf16 ";
  const auto layers = [&](const std::string& more) {
    return std::get<LayersSettings>(scenario(text + more).workload.kind);
  };
  EXPECT_EQ(layers("--moe-token-dispatcher-type alltoall").experts.dispatch, Dispatch::all_to_all);
  EXPECT_EQ(layers("--moe-token-dispatcher-type flex --moe-enable-deepep").experts.dispatch, Dispatch::deepep);
  EXPECT_EQ(layers("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep").experts.dispatch,
            Dispatch::hybridep);
  EXPECT_EQ(layers("--moe-expert-capacity-factor 1.25").experts.capacity, 0) << "nothing is dropped or padded";
  EXPECT_EQ(layers("--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity").experts.capacity, 1.25);
  EXPECT_EQ(layers("--moe-expert-capacity-factor 0.5").experts.capacity, 0.5);
  EXPECT_EQ(layers("").stack.experts, ExpertKernels::separate);
  EXPECT_EQ(layers("--moe-use-legacy-grouped-gemm").stack.experts, ExpertKernels::grouped);
  EXPECT_EQ(layers("--use-transformer-engine-op-fuser").stack.experts, ExpertKernels::fused);
  EXPECT_EQ(layers("").parameter_dtype, DType::f32);
  EXPECT_EQ(layers("--grad-reduce-in-bf16").parameter_dtype, std::nullopt);
  EXPECT_FALSE(job(text).overlaps_experts);
  EXPECT_TRUE(job(text + "--overlap-moe-expert-parallel-comm").overlaps_experts);
  const std::string by_two = text + "--tensor-model-parallel-size 2 --sequence-parallel ";
  EXPECT_EQ(job(by_two).expert_tensor, 0);
  EXPECT_EQ(job(by_two + "--expert-tensor-parallel-size 2").expert_tensor, 0);
  EXPECT_EQ(scenario(by_two + "--expert-tensor-parallel-size 1").strategy.mesh.expert_tensor, 1);
  EXPECT_TRUE(job(by_two + "--expert-tensor-parallel-size 1").left_out.empty());
  EXPECT_THAT(job(text + "--tensor-model-parallel-size 2 --expert-tensor-parallel-size 1").left_out,
              testing::Contains(HasSubstr("devices have no tokens of their own")));
  const std::string by_four =
      text + "--tensor-model-parallel-size 4 --sequence-parallel --expert-tensor-parallel-size ";
  EXPECT_EQ(scenario(by_four + "2").strategy.mesh.expert_tensor, 2);
  EXPECT_TRUE(job(by_four + "2").left_out.empty());
  EXPECT_THAT(job(by_four + "8").left_out,
              testing::Contains("--expert-tensor-parallel-size 8: experts are divided as the other layers are; it does "
                                "not divide --tensor-model-parallel-size 4"));
  EXPECT_THAT(job(text + "--moe-token-dispatcher-type allgather").left_out,
              testing::Contains(HasSubstr("tokens go to experts by all-to-all")));
  EXPECT_EQ(problem("x " + text + "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend other"),
            "job.sh:1:224: --moe-flex-dispatcher-backend: 'other' is neither deepep nor hybridep");
  EXPECT_EQ(problem("x " + text + "--moe-expert-capacity-factor none"),
            "job.sh:1:191: --moe-expert-capacity-factor: expected a number from 0 to 1000, found 'none'");
}

TEST_F(Megatron, SharedExpertsAreComputedBesideExchanges) {
  const auto text = [](const std::string& flags) {
    return "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 32 --num-attention-heads 4 "
           "--seq-length 64 --max-position-embeddings 64 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 16 "
           "--bf16 --swiglu --disable-bias-linear --num-experts 8 --moe-ffn-hidden-size 64 " +
           flags + "\n";
  };
  const std::string shared = "--moe-shared-expert-intermediate-size 64 ", expert = "--expert-model-parallel-size 4 ";
  const std::string overlap = "--moe-shared-expert-overlap ";
  const auto overlaps = [&](const std::string& flags) {
    return scenario(text(flags)).strategy.mesh.overlap_shared_expert;
  };
  EXPECT_TRUE(overlaps(shared + expert + overlap));
  EXPECT_FALSE(overlaps(shared + expert));
  EXPECT_FALSE(overlaps(shared + overlap)) << "nothing is exchanged";
  EXPECT_FALSE(overlaps(expert + overlap)) << "no token uses all experts";
  EXPECT_TRUE(job(text(shared + expert + overlap)).left_out.empty());
  const std::string passes = "--overlap-moe-expert-parallel-comm ";
  EXPECT_FALSE(overlaps(shared + expert + overlap + passes));
  EXPECT_THAT(job(text(shared + expert + overlap + passes)).left_out,
              testing::ElementsAre(HasSubstr("--moe-shared-expert-overlap: not with --overlap-moe-expert")));
}

TEST_F(Megatron, StagesMayBeNearerThanReplicas) {
  const std::string text =
      "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 "
      "--use-tp-pp-dp-mapping --global-batch-size 8";
  EXPECT_EQ(scenario(text + " --pipeline-model-parallel-size 2").strategy.mesh.axis_order,
            AxisOrder::tensor_pipeline_data);
  EXPECT_EQ(scenario(text).strategy.mesh.axis_order, AxisOrder::tensor_data_pipeline) << "there are no stages";
}

TEST_F(Megatron, SequencesAreDivided) {
  const std::string text =
      "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 "
      "--context-parallel-size 2 --global-batch-size 8";
  const Scenario scenario = this->scenario(text);
  EXPECT_EQ(scenario.strategy.mesh.data, 4);
  EXPECT_EQ(scenario.strategy.mesh.context, 2);
  EXPECT_EQ(scenario.strategy.mesh.context_exchange, ContextExchange::ring) << "as without the flag there";
  EXPECT_EQ(scenario.devices.per_worker, 8);
  const auto exchange = [&](const std::string& flag) { return job(text + " --cp-comm-type " + flag).context_exchange; };
  EXPECT_EQ(exchange("p2p"), ContextExchange::ring);
  EXPECT_EQ(exchange("a2a"), ContextExchange::all_to_all);
  EXPECT_EQ(exchange("allgather"), ContextExchange::all_gather);
  EXPECT_EQ(exchange("allgather allgather"), ContextExchange::all_gather);
  EXPECT_TRUE(job(text + " --cp-comm-type a2a").left_out.empty());
  EXPECT_THAT(job(text + " --cp-comm-type a2a p2p").left_out,
              testing::ElementsAre("--cp-comm-type: every layer exchanges as the first one (a2a)"));
  const MegatronJob both = job(text + " --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 1");
  EXPECT_EQ(both.context_exchange, ContextExchange::ring);
  EXPECT_THAT(both.left_out, testing::Contains(HasSubstr("rounds and bytes between their groups are 1/n")));
  EXPECT_EQ(problem("x " + text + " --cp-comm-type ring"),
            "job.sh:1:140: --cp-comm-type: must be p2p, a2a, allgather or a2a+p2p, found 'ring'");
  const std::string heads = " --tensor-model-parallel-size 2 --group-query-attention --num-query-groups 2";
  EXPECT_EQ(problem("x " + text + heads + " --cp-comm-type a2a"),
            "job.sh:1:216: --cp-comm-type: a2a divides heads: 2 devices of --context-parallel-size do not divide the "
            "heads of keys and values, of which a device has 1; 1 does; p2p and allgather divide tokens only");
  EXPECT_EQ(this->scenario(text + heads + " --cp-comm-type p2p").strategy.mesh.context_exchange, ContextExchange::ring);
}

TEST_F(Megatron, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(problem("x --num-layers 4"),
            "job.sh:1:3: --hidden-size: is missing, and the size of the model depends on it");
  const std::string sizes = "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16\n";
  EXPECT_EQ(problem(sizes + " --pipeline-model-parallel-size 3"),
            "job.sh:2:2: --pipeline-model-parallel-size: 3 does not divide 4 layers");
  EXPECT_EQ(problem(sizes + " --tensor-model-parallel-size 8"),
            "job.sh:2:2: --tensor-model-parallel-size: 8 does not divide 4 heads");
  EXPECT_EQ(problem(sizes + " --global-batch-size 12"),
            "job.sh:2:2: --global-batch-size: 12 is no multiple of 8 replicas x micro-batches of 1");
  const auto with = [&](const std::string& flags, const ImportChoices& options) {
    const auto file = write("job.sh", sizes + flags);
    return refusal([&] { import_file(file, options, ""); });
  };
  EXPECT_EQ(with(" --global-batch-size 64", {.batch = 65}),
            "job.sh:1:1: --batch: 65 is no multiple of 8 replicas x micro-batches of 1");
  const std::string context = " --context-parallel-size 3 --tensor-model-parallel-size 4";
  EXPECT_EQ(with(context, {}),
            "job.sh:2:2: --context-parallel-size: 16 devices cannot be divided into groups of tensor 4 x pipeline 1 x "
            "context 3");
  EXPECT_EQ(with(context, {.workers = 1}),
            "job.sh:1:1: --workers: 8 devices cannot be divided into groups of tensor 4 x pipeline 1 x context 3");
  EXPECT_THAT(with(context, {.devices = 4, .workers = 4}), HasSubstr("job.sh:1:1: --workers: 16 devices"));
  EXPECT_THAT(with(context, {.devices = 16}), HasSubstr("job.sh:1:1: --devices: 16 devices"));
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
