// What the arguments of Megatron-LM say about layers: how stages divide them, and which kernels they start.

#include "tests/scenarios/import/megatron_files.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::HasSubstr;

class MegatronLayers : public MegatronFiles {};

TEST_F(MegatronLayers, StagesHaveUnequalNumbersOfLayers) {
  const std::string sizes =
      "--hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 --pipeline-model-parallel-size 4 ";
  const auto blocks = [&](const std::string& more) { return job(sizes + more).stage_blocks; };
  using Blocks = std::vector<std::int64_t>;
  EXPECT_EQ(blocks("--num-layers 8"), Blocks());
  EXPECT_EQ(blocks("--num-layers 14 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split "
                   "--num-virtual-stages-per-pipeline-rank 2"),
            (Blocks{1, 2, 2, 2, 2, 2, 2, 1}));
  EXPECT_EQ(blocks("--num-layers 9 --decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 1"),
            (Blocks{2, 3, 3, 1}));
  EXPECT_EQ(blocks("--num-layers 9 --model.config.num_layers_in_last_pipeline_stage 3"), (Blocks{2, 2, 2, 3}));
  EXPECT_EQ(blocks("--num-layers 8 --pipeline-model-parallel-size 1 --account-for-loss-in-pipeline-split"), Blocks());
  const MegatronJob job = this->job(sizes + "--num-layers 13 --pipeline-model-parallel-layout 'Ett|(tt|)*5,t|L'");
  EXPECT_EQ(job.stage_blocks, (Blocks{2, 2, 2, 2, 2, 2, 1, 0}));
  EXPECT_EQ(job.virtual_stages, 2);
  EXPECT_THAT(problem(sizes + "--num-layers 13 --pipeline-model-parallel-layout 'Ett|(tt|'"),
              HasSubstr("is no layout such as Ett|(tt|)*6tL"));
  EXPECT_THAT(problem(sizes + "--num-layers 9 --pipeline-model-parallel-layout 'Et|t|t|tL'"),
              HasSubstr("has 4 layers, and --num-layers is 9"));
  EXPECT_THAT(problem(sizes + "--num-layers 9 --decoder-first-pipeline-num-layers 2"),
              HasSubstr("3 does not divide 7 layers"));
  EXPECT_THAT(
      problem(sizes + "--num-layers 9 --decoder-first-pipeline-num-layers 9"),
      HasSubstr("4 stages, of which the first has 9 layers and the last 0 (0: as the others), do not divide 9"));
  EXPECT_THAT(problem(sizes + "--num-layers 8 --decoder-last-pipeline-num-layers 2 "
                              "--account-for-loss-in-pipeline-split"),
              HasSubstr("cannot be given together"));
  EXPECT_THAT(problem(sizes + "--num-layers 6 --pipeline-model-parallel-layout 'Ettt|tt||tL'"),
              HasSubstr("stage 2 has no layer t"));
  EXPECT_THAT(problem(sizes + "--num-layers 4 --pipeline-model-parallel-layout '" + std::string(200000, '(') + "'"),
              HasSubstr("is no layout"));
}

TEST_F(MegatronLayers, TokensOfSomeSeeAWindow) {
  const std::string sizes = "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 ";
  const auto windows = [&](const std::string& more) {
    std::vector<std::int64_t> of_layers;
    for (const Blocks& blocks : job(sizes + more).spec.blocks) {
      of_layers.insert(of_layers.end(), static_cast<std::size_t>(blocks.copies), blocks.block.attention->window);
    }
    return of_layers;
  };
  using Windows = std::vector<std::int64_t>;
  EXPECT_EQ(windows("--window-size 7,0"), (Windows{8, 8, 8, 8})) << "seven before it, and itself";
  EXPECT_EQ(windows("--window-size '(7, 0)' --window-attn-skip-freq 2"), (Windows{8, 0, 8, 0}));
  EXPECT_EQ(windows("--window-size 7,0 --window-attn-skip-freq '([1]*3+[0]*1)'"), (Windows{8, 8, 8, 0}));
  EXPECT_EQ(windows("--window-size -1,0"), (Windows{0, 0, 0, 0})) << "all tokens before it";
  for (const std::string wrong : {"foo", "9223372036854775807", "128abc", "128.7"}) {
    EXPECT_THAT(problem(sizes + "--window-size " + wrong),
                HasSubstr("--window-size: expected how many tokens before it a token sees, found '" + wrong + "'"));
  }
  EXPECT_THAT(problem(sizes + "--window-size 7,0 --window-attn-skip-freq [1,0]"),
              HasSubstr("'[1,0]' does not give 0 or 1 for each of 4 layers"));
}

TEST_F(MegatronLayers, MorePredictFurtherTokens) {
  using Counts = std::vector<std::int64_t>;
  const std::string sizes =
      "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 --disable-bias-linear "
      "--normalization RMSNorm --untie-embeddings-and-output-weights --bf16 ";
  const auto table = [&](const std::string& more) { return table_of(job(sizes + more).spec); };
  const std::int64_t block = table("--mtp-num-layers 2").parameters() - table("--mtp-num-layers 1").parameters();
  constexpr std::int64_t kBlock = 4 * 32 * 32 + 2 * 4 * 32 * 32 + 2 * 32;  // attention, two layers, two norms
  EXPECT_EQ(block, kBlock + 2 * 32 * 32 + 3 * 32) << "a product for both inputs, their norms, and one before the loss";
  EXPECT_EQ(table("--mtp-num-layers 1").macs() - table("").macs(),
            16 * (12 * 32 * 32 + 2 * 16 * 32 + 2 * 32 * 32 + 32 * 128))
      << "with the loss once more";
  const auto blocks = [&](const std::string& more) { return job(sizes + more).stage_blocks; };
  EXPECT_EQ(blocks("--mtp-num-layers 1 --pipeline-model-parallel-size 4"), (Counts{1, 1, 1, 2}));
  EXPECT_EQ(blocks("--mtp-num-layers 1 --pipeline-model-parallel-size 3 --pipeline-model-parallel-layout 'Ett|tt|mL'"),
            (Counts{2, 2, 1}));
  EXPECT_THAT(problem(sizes + "--mtp-num-layers 1 --pipeline-model-parallel-size 2 "
                              "--pipeline-model-parallel-layout 'Ett|ttL'"),
              HasSubstr("has 4 layers, and --num-layers is 4 and --mtp-num-layers 1"));
  EXPECT_THAT(problem(sizes + "--mtp-num-layers 99"), HasSubstr("can be at most 16"));
}

TEST_F(MegatronLayers, ProductsOfFp8AreQuantised) {
  const std::string sizes = "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 ";
  const auto quantised = [&](const std::string& more, const ImportChoices& choices = {}) {
    return std::get<LayersSettings>(scenario(sizes + more, choices).workload.kind).quantised;
  };
  EXPECT_EQ(quantised("--bf16"), Quantised::none);
  EXPECT_EQ(quantised("--bf16 --fp8-format hybrid"), Quantised::fp8);
  EXPECT_EQ(quantised("--bf16 --fp8-format e4m3 --fp8-recipe mxfp8"), Quantised::mxfp8);
  EXPECT_EQ(quantised("--bf16 --fp4-format e2m1"), Quantised::nvfp4);
  EXPECT_EQ(quantised("--bf16 --fp8-format None"), Quantised::none);
  EXPECT_EQ(quantised("--bf16 --fp8-format hybrid", {.dtype = "f32"}), Quantised::none);
  EXPECT_EQ(quantised("--bf16", {.precision = "fp8"}), Quantised::fp8);
  const auto recipe = [&](const std::string& more, const ImportChoices& choices = {}) {
    return std::get<LayersSettings>(scenario(sizes + "--bf16 --fp8-format hybrid" + more, choices).workload.kind)
        .recipe;
  };
  EXPECT_EQ(recipe(""), ScalingRecipe::delayed) << "Megatron-LM's default";
  EXPECT_EQ(recipe(" --fp8-recipe delayed"), ScalingRecipe::delayed);
  EXPECT_EQ(recipe(" --fp8-recipe tensorwise"), ScalingRecipe::tensorwise);
  EXPECT_EQ(recipe(" --fp8-recipe blockwise"), ScalingRecipe::blockwise);
  EXPECT_EQ(recipe(" --fp8-recipe blockwise", {.precision = "mxfp8"}), ScalingRecipe::tensorwise);
  EXPECT_THAT(job(sizes + "--bf16 --fp8-format e4m3 --fp8-recipe custom").left_out,
              Contains("--fp8-recipe custom: a scale for each tensor"));
}

TEST_F(MegatronLayers, KernelsFollowFromTheFusionsThatAreOn) {
  const std::string sizes =
      "--num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --vocab-size 128 --bf16 ";
  const auto stack = [&](const std::string& more) {
    return std::get<LayersSettings>(scenario(sizes + more).workload.kind).stack;
  };
  EXPECT_EQ(stack("").accumulation, Accumulation::in_products);
  EXPECT_EQ(stack("--no-gradient-accumulation-fusion").accumulation, Accumulation::separate);
  EXPECT_EQ(stack("").attention, AttentionKernels::flash);
  EXPECT_EQ(stack("--attention-backend unfused").attention, AttentionKernels::fused_softmax);
  EXPECT_EQ(stack("--attention-backend unfused --no-masked-softmax-fusion").attention, AttentionKernels::separate);
  EXPECT_EQ(stack("").loss, Loss::separate);
  const auto overlaps = [&](const std::string& more) {
    return std::get<LayersSettings>(scenario(sizes + more).workload.kind).overlap_products;
  };
  EXPECT_TRUE(overlaps("--tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap"));
  EXPECT_FALSE(overlaps("--tp-comm-overlap")) << "no layer is divided";
  EXPECT_EQ(stack("--cross-entropy-loss-fusion").loss, Loss::fused);
}

}  // namespace
}  // namespace tandem
