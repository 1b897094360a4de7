#include "scenarios/import/models/decoder_families.h"

#include "scenarios/import/models/decoder_adapters.h"

namespace tandem {
namespace {

using Norms = BlockSpec::Norms;
using HeadNorm = AttentionSpec::HeadNorm;
using Bias = DecoderFamily::Bias;
using BiasKey = DecoderFamily::BiasKey;

DecoderFamily named(std::string_view name, DecoderFamily family) {
  family.name = name;
  return family;
}

std::vector<DecoderFamily> like_llama() {  // NOLINT(readability-function-size): a table
  const DecoderFamily llama{.bias_key = BiasKey::all};
  DecoderFamily tied = llama;
  tied.tied = true;
  DecoderFamily experts = llama;
  experts.experts = true;
  const DecoderFamily no_bias{};
  const DecoderFamily key_norm{.bias_key = BiasKey::all, .head_norm = HeadNorm::per_head};
  DecoderFamily key_norm_experts = key_norm;
  key_norm_experts.experts = true;
  const DecoderFamily qwen2{.bias = Bias::inputs, .adapt = adapt_qwen2};
  DecoderFamily qwen2_experts = qwen2;
  qwen2_experts.experts = true;
  return {
      named("llama", llama),
      named("mistral", no_bias),
      named("ministral", no_bias),
      named("ministral3", no_bias),
      named("mixtral", {.experts = true}),
      named("yi", llama),
      named("aquila", no_bias),
      named("xverse", llama),
      named("internlm", {.bias_key = BiasKey::all, .adapt = adapt_internlm}),
      named("internlm2", {.adapt = adapt_internlm}),
      named("internlm3", {.bias_key = BiasKey::inputs, .adapt = adapt_internlm}),
      named("baichuan", no_bias),
      named("exaone", no_bias),
      named("smollm3", tied),
      named("mimo", qwen2),
      named("seed_oss", {.bias = Bias::inputs, .bias_key = BiasKey::inputs, .adapt = adapt_seed_oss}),
      named("granite", llama),
      named("granitemoe", experts),
      named("granitemoeshared", experts),
      named("minicpm", tied),
      named("bitnet", no_bias),
      named("deepseek", experts),
      named("qwen", {.bias = Bias::inputs, .adapt = adapt_qwen1}),
      named("qwen2", qwen2),
      named("qwen2_vl_text", qwen2),
      named("qwen2_5_vl_text", qwen2),
      named("qwen2_moe", qwen2_experts),
      named("qwen3", key_norm),
      named("qwen3_vl_text", key_norm),
      named("qwen3_moe", key_norm_experts),
      named("qwen3_vl_moe_text", key_norm_experts),
      named("qwen3_omni_moe_text", key_norm_experts),
      named("qwen3_next",
            {.bias_key = BiasKey::all, .head_norm = HeadNorm::per_head, .experts = true, .adapt = adapt_qwen3_next}),
      named("qwen3_5_text", {.bias_key = BiasKey::all, .head_norm = HeadNorm::per_head, .adapt = adapt_qwen3_next}),
      named("qwen3_5_moe_text",
            {.bias_key = BiasKey::all, .head_norm = HeadNorm::per_head, .experts = true, .adapt = adapt_qwen3_next}),
      named("hunyuan_v1_dense", {.tied = true, .bias_key = BiasKey::all, .head_norm = HeadNorm::per_head}),
      named("hunyuan_v1_moe",
            {.bias_key = BiasKey::all, .head_norm = HeadNorm::per_head, .experts = true, .adapt = adapt_hunyuan}),
      named("ernie4_5", {.tied = true, .bias_key = BiasKey::all}),
      named("ernie4_5_moe", {.tied = true, .bias_key = BiasKey::all, .experts = true, .adapt = adapt_router_bias}),
      named("minimax_m2", {.head_norm = HeadNorm::whole, .experts = true, .adapt = adapt_router_bias}),
      named("gpt_oss", {.bias = Bias::all, .bias_key = BiasKey::all, .experts = true, .adapt = adapt_gpt_oss}),
      named("olmo", {.norm = NormKind::centred, .bias_key = BiasKey::all}),
      named("olmo2", {.norms = Norms::after, .bias_key = BiasKey::all, .head_norm = HeadNorm::whole}),
      named("olmo3", {.norms = Norms::after, .bias_key = BiasKey::all, .head_norm = HeadNorm::whole}),
      named("olmoe", {.bias_key = BiasKey::all, .head_norm = HeadNorm::whole, .experts = true}),
      named("flex_olmo", {.norms = Norms::after, .head_norm = HeadNorm::whole, .experts = true}),
      named("exaone4", {.norms = Norms::after, .head_norm = HeadNorm::per_head}),
      named("arcee", {.bias_key = BiasKey::all, .gated = false, .activation = Activation::relu}),
      named("apertus", {.bias_key = BiasKey::all,
                        .gated = false,
                        .activation = Activation::relu,
                        .head_norm = HeadNorm::per_head,
                        .adapt = adapt_apertus}),
      named("llama4_text", {.bias_key = BiasKey::all, .experts = true, .adapt = adapt_llama4}),
      named("nemotron_h", {.bias_key = BiasKey::all,
                           .gated = false,
                           .activation = Activation::relu,
                           .experts = true,
                           .adapt = adapt_nemotron_h}),
      named("nemotron-nas", {.bias_key = BiasKey::all, .adapt = adapt_nemotron_nas}),
      named("dots1", key_norm_experts),
      named("afmoe", {.norms = Norms::around, .head_norm = HeadNorm::per_head, .experts = true, .adapt = adapt_afmoe}),
      named("bailing_moe", {.bias_key = BiasKey::inputs, .experts = true}),
      named("bailing_moe_v2", {.bias_key = BiasKey::inputs, .experts = true, .adapt = adapt_bailing_moe_v2}),
      named("solar_open", {.bias_key = BiasKey::all, .experts = true, .adapt = adapt_glm4_moe}),
      named("exaone_moe",
            {.norms = Norms::after, .head_norm = HeadNorm::per_head, .experts = true, .adapt = adapt_exaone_moe}),
      named("mimo_v2_flash", {.bias_key = BiasKey::inputs, .experts = true, .adapt = adapt_mimo_v2}),
      named("mimo_v2", {.bias_key = BiasKey::inputs, .experts = true, .adapt = adapt_mimo_v2}),
      named("granitemoehybrid", {.bias_key = BiasKey::all, .experts = true, .adapt = adapt_granite_hybrid}),
      named("bamba", {.bias_key = BiasKey::all, .adapt = adapt_bamba}),
      named("lfm2", {.tied = true, .head_norm = HeadNorm::per_head, .adapt = adapt_lfm2}),
      named("lfm2_moe", {.tied = true, .head_norm = HeadNorm::per_head, .experts = true, .adapt = adapt_lfm2}),
      named("minimax", {.experts = true, .adapt = adapt_minimax}),
      named("minimax_text_01", {.experts = true, .adapt = adapt_minimax}),
      named("minimax_m1", {.experts = true, .adapt = adapt_minimax}),
      named("step3_text", {.experts = true, .adapt = adapt_step3}),
      named("step3p5", {.head_norm = HeadNorm::per_head, .experts = true, .adapt = adapt_step3p5}),
      named("phi3", no_bias),
      named("phi3small", {.norm = NormKind::layer, .bias = Bias::all, .feed_forward_bias = true}),
      named("phi4mm", no_bias),
  };
}

std::vector<DecoderFamily> with_latent_attention() {
  const DecoderFamily family{.experts = true, .adapt = adapt_deepseek};
  return {named("deepseek_v2", family),
          named("deepseek_v3", family),
          named("deepseek_v32", family),
          named("kimi_k2", family),
          named("glm4_moe_lite", family),
          named("glm_moe_dsa", family),
          named("longcat_flash", {.experts = true, .adapt = adapt_longcat_flash}),
          named("kimi_linear", {.experts = true, .adapt = adapt_kimi_linear}),
          named("mistral4", family),
          named("minicpm3", {.tied = true, .adapt = adapt_deepseek})};
}

std::vector<DecoderFamily> of_google() {
  const DecoderFamily gemma{.tied = true, .bias_key = BiasKey::all, .activation = Activation::gelu};
  DecoderFamily gemma2 = gemma, gemma3 = gemma, gemma4 = gemma;
  gemma2.norms = gemma3.norms = gemma4.norms = Norms::around;
  gemma2.adapt = adapt_gemma2;
  gemma3.head_norm = gemma4.head_norm = HeadNorm::per_head;
  gemma3.adapt = adapt_gemma3;
  gemma4.adapt = adapt_gemma4;
  return {named("gemma", gemma), named("gemma2", gemma2), named("gemma3_text", gemma3), named("gemma4_text", gemma4)};
}

std::vector<DecoderFamily> with_layer_norms() {
  const DecoderFamily gpt{.tied = true,
                          .norm = NormKind::layer,
                          .bias = Bias::all,
                          .feed_forward_bias = true,
                          .gated = false,
                          .activation = Activation::gelu,
                          .positions = true};
  DecoderFamily gpt_neo = gpt, bigcode = gpt, opt = gpt, bloom = gpt, starcoder2 = gpt, neox = gpt, gptj = gpt,
                phi = gpt;
  gpt_neo.adapt = adapt_gpt_neo;
  bigcode.adapt = adapt_bigcode;
  opt.activation = Activation::relu;
  opt.adapt = adapt_opt;
  bloom.positions = starcoder2.positions = neox.positions = gptj.positions = phi.positions = false;
  bloom.adapt = adapt_bloom;
  starcoder2.adapt = adapt_starcoder2;
  neox.tied = gptj.tied = phi.tied = false;
  neox.adapt = adapt_neox;
  gptj.norms = phi.norms = Norms::parallel_one;
  gptj.adapt = adapt_gptj;
  phi.adapt = adapt_phi;
  return {
      named("gpt2", gpt),
      named("gpt_neo", gpt_neo),
      named("gpt_bigcode", bigcode),
      named("opt", opt),
      named("bloom", bloom),
      named("starcoder2", starcoder2),
      named("gpt_neox", neox),
      named("gptj", gptj),
      named("codegen", gptj),
      named("phi", phi),
      named("falcon", {.tied = true,
                       .norm = NormKind::layer,
                       .gated = false,
                       .activation = Activation::gelu,
                       .adapt = adapt_falcon}),
      named(
          "mpt",
          {.tied = true, .norm = NormKind::weight, .gated = false, .activation = Activation::gelu, .adapt = adapt_mpt}),
      named("dbrx", {.norm = NormKind::weight, .experts = true, .adapt = adapt_dbrx}),
      named("stablelm", {.norm = NormKind::layer, .bias_key = BiasKey::inputs, .adapt = adapt_stablelm}),
      named("phimoe", {.norm = NormKind::layer, .bias_key = BiasKey::all, .experts = true, .adapt = adapt_head_bias}),
      named("nemotron",
            {.norm = NormKind::layer, .bias_key = BiasKey::all, .gated = false, .activation = Activation::relu}),
      named("cohere", {.tied = true,
                       .norm = NormKind::weight,
                       .norms = Norms::parallel_one,
                       .bias_key = BiasKey::all,
                       .adapt = adapt_cohere}),
      named("cohere2", {.tied = true,
                        .norm = NormKind::weight,
                        .norms = Norms::parallel_one,
                        .bias_key = BiasKey::all,
                        .adapt = adapt_cohere})};
}

std::vector<DecoderFamily> of_zhipu() {
  return {named("chatglm", {.bias_key = BiasKey::inputs, .adapt = adapt_chatglm}),
          named("glm", {.bias = Bias::inputs, .bias_key = BiasKey::inputs}),
          named("glm4", {.norms = Norms::around, .bias = Bias::inputs, .bias_key = BiasKey::inputs}),
          named("glm4v_text", {.norms = Norms::around, .bias = Bias::inputs, .bias_key = BiasKey::inputs}),
          named("glm4_moe", {.bias_key = BiasKey::inputs, .experts = true, .adapt = adapt_glm4_moe}),
          named("glm4v_moe_text",
                {.bias = Bias::inputs, .bias_key = BiasKey::inputs, .experts = true, .adapt = adapt_glm4_moe})};
}

}  // namespace

const std::vector<DecoderFamily>& decoder_families() {
  static const std::vector<DecoderFamily> families = [] {
    std::vector<DecoderFamily> all;
    for (const auto& part : {like_llama(), with_latent_attention(), of_google(), with_layer_norms(), of_zhipu()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return families;
}

}  // namespace tandem
