// Where arguments of Megatron-LM are kept: scripts, launchers, Markdown, and what it prints when it starts.
#include "tests/scenarios/import/megatron_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

class MegatronSources : public MegatronFiles {};

// The form in which Megatron-LM's own examples keep their arguments.
const char* const kArrays = R"(
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096   # wide
    # --hidden-size 8192
    --num-attention-heads 32
    --seq-length 4096
    --max-position-embeddings 4096
    --vocab-size 32000
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 128
)
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]}
)";

TEST_F(MegatronSources, ArgumentsAreReadFromArrays) {
  const MegatronJob job = this->job(kArrays);
  EXPECT_EQ(job.spec.blocks.front().copies, 32);
  EXPECT_EQ(job.spec.hidden, 4096);
  EXPECT_EQ(job.global_batch, 128);
  const Scenario scenario = this->scenario(kArrays);
  EXPECT_EQ(scenario.topology->worker_count(), 2);
  EXPECT_EQ(scenario.strategy.mesh.data, 16);
}

TEST_F(MegatronSources, ScriptsAreReadAsBashReadsThem) {
  const MegatronJob job = this->job(R"(
TP=${TP:-4}; PP=2
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-4}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
MODEL_SIZE=8b
if [[ $MODEL_SIZE == "8b" ]]; then
  SIZES="--num-layers 32 --hidden-size 4096 --num-attention-heads 32"
  GQA=(--group-query-attention --num-query-groups 8)
else
  SIZES="--num-layers 80 --hidden-size 8192 --num-attention-heads 64"
fi
ARGS=( $SIZES "${GQA[@]}" --seq-length=2048 --vocab-size 1000 )
ARGS+=(
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP}
  --micro-batch-size 1 --global-batch-size $((WORLD_SIZE * 4))
)
if [ "$DEBUG" = "1" ]; then
  torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --hidden-size 64
else
  NCCL_ALGO=Ring torchrun --nproc_per_node=$GPUS_PER_NODE --nnodes=$NNODES --node_rank $RANK pretrain_gpt.py "${ARGS[@]}" 2>&1 | tee log
fi
)");
  EXPECT_EQ(job.spec.blocks.front().copies, 32);
  EXPECT_EQ(job.spec.blocks.front().block.attention->key_heads, 8);
  EXPECT_EQ(job.spec.tokens, 2048);
  EXPECT_EQ(job.tensor, 4);
  EXPECT_EQ(job.pipeline, 2);
  EXPECT_EQ(job.nodes, 4);
  EXPECT_EQ(job.devices, 8);
  EXPECT_EQ(job.global_batch, 128);
  EXPECT_EQ(job.nccl.at("NCCL_ALGO"), "Ring");
  EXPECT_TRUE(job.left_out.empty());
}

TEST_F(MegatronSources, ArgumentsOfTheScriptItselfAreNoWord) {
  const MegatronJob job = this->job(
      "NONE=()\ntorchrun pretrain_gpt.py --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 "
      "\"$@\" "
      "--vocab-size 1000 \"${NONE[@]}\" --attention-backend unfused \"$@\"");
  EXPECT_TRUE(job.keeps_scores);
  EXPECT_EQ(job.spec.tokens, 16);
  EXPECT_EQ(job.spec.vocabulary, 1024);
}

TEST_F(MegatronSources, LaunchersSayHowManyDevicesThereAre) {
  const std::string sizes = " pretrain_gpt.py --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16";
  EXPECT_EQ(job("srun -N 4 --gpus-per-node=8 --ntasks-per-node 8 python" + sizes).nodes, 4);
  EXPECT_EQ(job("srun -N 4 --gpus-per-node=8 --ntasks-per-node 8 python" + sizes).devices, 8);
  EXPECT_EQ(job("mpirun -np 16 -x NCCL_ALGO=Tree python" + sizes).world, 16);
  EXPECT_EQ(job("mpirun -np 16 -x NCCL_ALGO=Tree python" + sizes).nccl.at("NCCL_ALGO"), "Tree");
  EXPECT_EQ(job("deepspeed --num_gpus 4 --num_nodes 2" + sizes).devices, 4);
  EXPECT_EQ(job("#SBATCH --nodes=8\n#SBATCH --gres=gpu:4\nsrun python" + sizes).nodes, 8);
  EXPECT_EQ(job("#SBATCH --nodes=8\n#SBATCH --gres=gpu:4\nsrun python" + sizes).devices, 4);
  EXPECT_EQ(job("srun --ntasks-per-node=1 torchrun --nproc_per_node 8" + sizes).devices, 8);
  // Each task of srun starts the processes of its machine.
  for (const char* tasks : {"srun -N 8 -n 8", "srun -N 8 --ntasks 8"}) {
    const MegatronJob nested = job(tasks + std::string(" torchrun --nproc_per_node 8") + sizes);
    EXPECT_EQ(nested.nodes, 8);
    EXPECT_EQ(nested.devices, 8);
    EXPECT_EQ(nested.world, std::nullopt);
  }
  EXPECT_EQ(job("nice -n 10 python" + sizes).world, std::nullopt) << "an option of another program";
  EXPECT_EQ(job("numactl -N 0 python" + sizes).nodes, std::nullopt);
  EXPECT_EQ(job("mpirun -np 16 -N 8 python" + sizes).devices, 8);
  EXPECT_EQ(job("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nsrun torchrun" + sizes).devices, std::nullopt);
  EXPECT_EQ(job("SLURM_NNODES=()\npython" + sizes).nodes, std::nullopt);
  const MegatronJob unknown = job("torchrun --nnodes $N --nproc_per_node gpu" + sizes);
  EXPECT_FALSE(unknown.nodes);
  EXPECT_FALSE(unknown.devices);
  EXPECT_THAT(unknown.assumed, Contains("line 1: --nnodes $N is not known here (--devices, --workers)"));
}

TEST_F(MegatronSources, FindsTheArgumentsInMarkdown) {
  const MegatronJob job = this->job(
      "I don't know why:\n```bash\n--num-layers 4 --hidden-size 32\n--num-attention-heads 4 --seq-length 16\n```\n");
  EXPECT_EQ(job.spec.hidden, 32);
}

TEST_F(MegatronSources, SaysWhatAScriptLeavesOpen) {
  const std::string text =
      "if [ \"$1\" = 7b ]; then\n  SIZES=\"--num-layers 32 --hidden-size 4096\"\nfi\ntorchrun pretrain_gpt.py $SIZES "
      "$DATA "
      "--seq-length 16 --num-layers 4 --num-attention-heads 4\n";
  EXPECT_EQ(problem(text),
            "job.sh:4:39: --hidden-size: is missing, and the size of the model depends on it; line 1: $1 has no "
            "value in this file: taken as empty");
  EXPECT_THAT(job("x.py $EXTRA --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16").assumed,
              Contains("line 1: $EXTRA has no value in this file: what it would add is left out"));
  const std::string two = "x.py --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16\n";
  EXPECT_THAT(job(two + two).assumed, Contains("line 2: another command with the sizes of a model is not read"));
}

// What Megatron-LM prints when it starts.
const char* const kPrinted = R"(
using world size: 16, data-parallel-size: 4, context-parallel-size: 1 tensor-model-parallel size: 4, pipeline-model-parallel size: 1
------------------------ arguments ------------------------
  bf16 ............................................ True
  ffn_hidden_size ................................. 14336
  global_batch_size ............................... 128
  group_query_attention ........................... True
  hidden_size ..................................... 4096
  max_position_embeddings ......................... 4096
  micro_batch_size ................................ 1
  normalization ................................... RMSNorm
  num_attention_heads ............................. 32
  num_experts ..................................... None
  num_layers ...................................... 32
  num_query_groups ................................ 8
  padded_vocab_size ............................... 32128
  pipeline_model_parallel_size .................... 1
  seq_length ...................................... 4096
  sequence_parallel ............................... True
  swiglu .......................................... True
  tensor_model_parallel_size ...................... 4
  use_distributed_optimizer ....................... True
  world_size ...................................... 16
-------------------- end of arguments ---------------------
)";

TEST_F(MegatronSources, TheBlockOfArgumentsSaysWhatTheCommandLineSaid) {
  const Scenario scenario = this->scenario(kPrinted, {}, "train.log");
  EXPECT_EQ(scenario.topology->worker_count() * scenario.devices.per_worker, 16);
  EXPECT_EQ(scenario.strategy.mesh.tensor, 4);
  EXPECT_EQ(scenario.strategy.mesh.data, 4);
  EXPECT_TRUE(scenario.strategy.mesh.distributed_optimizer);
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  EXPECT_EQ(layers.model.parameters(), 7'242'780'672);
  EXPECT_TRUE(layers.sequence_parallel);
  const MegatronJob job = this->job(kPrinted);
  EXPECT_THAT(job.assumed, Contains(HasSubstr("the block leaves out position_embedding_type, "
                                              "untie_embeddings_and_output_weights, add_bias_linear")));
  EXPECT_TRUE(job.left_out.empty());
}

// Returns a text with something put before every line.
std::string prefixed(const std::string& text, const std::string& prefix) {
  std::string result = prefix;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += prefix;
  }
  return result;
}

TEST_F(MegatronSources, PrefixesOfLaunchersAndLogsDoNotMatter) {
  for (const char* prefix : {"[default0]:", "0: ", "gpu-a: ", "2025-11-02 10:11:12,345 INFO ", "[1,0]<stdout>:", "> ",
                             "\x1b[32m", "(TrainWorker pid=77) "}) {
    const MegatronJob job = this->job(prefixed(kPrinted, prefix));
    EXPECT_EQ(job.spec.hidden, 4096) << prefix;
    EXPECT_EQ(job.world, 16) << prefix;
    EXPECT_EQ(job.tensor, 4) << prefix;
  }
}

TEST_F(MegatronSources, PrintedArgumentsThatAreOffAreOff) {
  const std::string printed =
      "------------------------ arguments ------------------------\n"
      "  add_bias_linear ................ False\n  apply_rope_fusion .............. True\n"
      "  bias_gelu_fusion ............... False\n  clip_grad ...................... 1.0\n"
      "  data_parallel_size ............. 8\n  decoder_seq_length ............. None\n"
      "  encoder_num_layers ............. 4\n  fp8 ............................ None\n"
      "  hidden_size .................... 32\n  kv_lora_rank ................... 512\n"
      "  multi_latent_attention ......... False\n  num_attention_heads ............ 4\n"
      "  num_experts .................... [1]\n  num_layers ..................... 4\n"
      "  position_embedding_type ........ rope\n  seq_length ..................... 16\n"
      "  some_new_argument .............. 7\n  swiglu ......................... False\n"
      "  untie_embeddings_and_output_weights . True\n  vocab_size ..................... 128\n"
      "  world_size ..................... 8\n";
  const MegatronJob job = this->job(printed);
  const std::int64_t h = 32;
  EXPECT_EQ(table_of(job.spec).parameters(), 2 * 128 * h + 4 * (4 * h + 4 * h * h + 8 * h * h) + 2 * h);
  EXPECT_THAT(job.left_out, testing::ElementsAre("--no-bias-gelu-fusion: see workload.stack: fusion"));
  EXPECT_THAT(job.assumed,
              Contains("1 arguments of the block are not known here, and have no effect: some_new_argument"));
  EXPECT_THAT(
      problem(printed + "  data_parallel_size ............. 4\n"),
      HasSubstr("--data-parallel-size: data 4 x tensor 1 x pipeline 1 x context 1 are 4 devices, and world_size is 8"));
}

}  // namespace
}  // namespace tandem
