// Adapters for features of single families of language models that no flag of DecoderFamily describes. Each changes a
// specification with one block for each layer.
#pragma once

#include "scenarios/import/models/config_values.h"
#include "scenarios/import/models/transformer.h"

namespace tandem {

void adapt_afmoe(const ConfigValues& config, TransformerSpec& spec);
void adapt_apertus(const ConfigValues& config, TransformerSpec& spec);
void adapt_bailing_moe_v2(const ConfigValues& config, TransformerSpec& spec);
void adapt_bamba(const ConfigValues& config, TransformerSpec& spec);
void adapt_bigcode(const ConfigValues& config, TransformerSpec& spec);
void adapt_bloom(const ConfigValues& config, TransformerSpec& spec);
void adapt_chatglm(const ConfigValues& config, TransformerSpec& spec);
void adapt_cohere(const ConfigValues& config, TransformerSpec& spec);
void adapt_dbrx(const ConfigValues& config, TransformerSpec& spec);
void adapt_deepseek(const ConfigValues& config, TransformerSpec& spec);
void adapt_exaone_moe(const ConfigValues& config, TransformerSpec& spec);
void adapt_falcon(const ConfigValues& config, TransformerSpec& spec);
void adapt_gemma2(const ConfigValues& config, TransformerSpec& spec);
void adapt_gemma3(const ConfigValues& config, TransformerSpec& spec);
void adapt_gemma4(const ConfigValues& config, TransformerSpec& spec);
void adapt_glm4_moe(const ConfigValues& config, TransformerSpec& spec);
void adapt_gpt_neo(const ConfigValues& config, TransformerSpec& spec);
void adapt_gpt_oss(const ConfigValues& config, TransformerSpec& spec);
void adapt_gptj(const ConfigValues& config, TransformerSpec& spec);
void adapt_granite_hybrid(const ConfigValues& config, TransformerSpec& spec);
void adapt_head_bias(const ConfigValues& config, TransformerSpec& spec);
void adapt_hunyuan(const ConfigValues& config, TransformerSpec& spec);
void adapt_internlm(const ConfigValues& config, TransformerSpec& spec);
void adapt_kimi_linear(const ConfigValues& config, TransformerSpec& spec);
void adapt_lfm2(const ConfigValues& config, TransformerSpec& spec);
void adapt_llama4(const ConfigValues& config, TransformerSpec& spec);
void adapt_longcat_flash(const ConfigValues& config, TransformerSpec& spec);
void adapt_mimo_v2(const ConfigValues& config, TransformerSpec& spec);
void adapt_minimax(const ConfigValues& config, TransformerSpec& spec);
void adapt_mpt(const ConfigValues& config, TransformerSpec& spec);
void adapt_nemotron_h(const ConfigValues& config, TransformerSpec& spec);
void adapt_nemotron_nas(const ConfigValues& config, TransformerSpec& spec);
void adapt_neox(const ConfigValues& config, TransformerSpec& spec);
void adapt_opt(const ConfigValues& config, TransformerSpec& spec);
void adapt_phi(const ConfigValues& config, TransformerSpec& spec);
void adapt_qwen1(const ConfigValues& config, TransformerSpec& spec);
void adapt_qwen2(const ConfigValues& config, TransformerSpec& spec);
void adapt_qwen3_next(const ConfigValues& config, TransformerSpec& spec);
void adapt_router_bias(const ConfigValues& config, TransformerSpec& spec);
void adapt_seed_oss(const ConfigValues& config, TransformerSpec& spec);
void adapt_stablelm(const ConfigValues& config, TransformerSpec& spec);
void adapt_starcoder2(const ConfigValues& config, TransformerSpec& spec);
void adapt_step3(const ConfigValues& config, TransformerSpec& spec);
void adapt_step3p5(const ConfigValues& config, TransformerSpec& spec);

}  // namespace tandem
