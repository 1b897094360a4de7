#include "scenarios/import/models/module_names.h"

#include <algorithm>
#include <array>

namespace tandem {
namespace {

using Architectures = std::vector<std::string_view>;

// Whether the layers of a kind are numbered behind this name (peft/utils/constants.py, COMMON_LAYERS_PATTERN).
bool is_list_of_layers(std::string_view name) {
  constexpr std::array<std::string_view, 5> kLists{"layers", "h", "block", "blocks", "layer"};
  return std::ranges::count(kLists, name) > 0;
}

// As the modeling files of qwen2_moe, deepseek_v3 and hunyuan_v1_moe (huggingface/transformers) name it.
bool is_shared_expert(std::string_view name) {
  return name == "shared_expert" || name == "shared_experts" || name == "shared_mlp";
}

struct Module {
  std::vector<std::string_view> names;  // as much as tells them apart: `mlp.c_proj`
  JoinedRows rows;
  Architectures of{};  // empty: all
};

const Architectures& gpt2_like() {
  static const Architectures kLike{"gpt2", "gpt_bigcode", "gpt_neo", "starcoder2"};
  return kLike;
}
const Architectures& bert_like() {
  static const Architectures kLike{"bert", "roberta", "electra", "deberta-v2", "vit", "deit", "dinov2"};
  return kLike;
}
const Architectures& neox_like() {
  static const Architectures kLike{"gpt_neox", "bloom", "falcon", "phi", "persimmon"};
  return kLike;
}

const std::vector<Module>& modules() {
  static const std::vector<Module> kModules{
      {{"q_proj", "q_b_proj", "wq", "q_lin", "query_proj", "linear_q", "linear_q_proj", "linear_q_up_proj"}, {"query"}},
      {{"k_proj", "wk", "k_lin", "key_proj", "linear_k"}, {"key"}},
      {{"v_proj", "wv", "v_lin", "value_proj", "linear_v"}, {"value"}},
      {{"query"}, {"query"}, bert_like()},
      {{"key"}, {"key"}, bert_like()},
      {{"value"}, {"value"}, bert_like()},
      {{"attn.q"}, {"query"}, {"mpnet"}},
      {{"attn.k"}, {"key"}, {"mpnet"}},
      {{"attn.v"}, {"value"}, {"mpnet"}},
      {{"attn.o"}, {"attention_output"}, {"mpnet"}},
      {{"qkv_proj", "query_key_value", "c_attn", "Wqkv", "wqkv", "W_pack", "linear_qkv"}, {"query", "key", "value"}},
      {{"q_a_proj", "linear_q_down_proj"}, {"query_down"}},
      {{"kv_a_proj_with_mqa", "linear_kv_down_proj"}, {"key_value_down"}},
      {{"kv_b_proj", "linear_kv_up_proj"}, {"key_value"}},
      {{"o_proj", "out_proj", "wo", "out_lin", "linear_proj"}, {"attention_output"}},
      {{"attn.c_proj"}, {"attention_output"}, {"gpt2", "gpt_bigcode", "qwen"}},
      {{"attn.Wo"}, {"attention_output"}, {"modernbert"}},
      {{"attention.dense", "self_attention.dense", "self_attn.dense"}, {"attention_output"}, neox_like()},
      {{"self_attention.dense"}, {"attention_output"}, {"chatglm"}},
      {{"attention.output.dense"}, {"attention_output"}, bert_like()},
      {{"gate_proj", "linear_fc1_gate"}, {"gate"}},
      {{"up_proj", "fc1", "lin1", "linear_fc1_up"}, {"up"}},
      {{"gate_up_proj", "linear_fc1"}, {"gate", "up"}},
      {{"mlp.Wi"}, {"gate", "up"}, {"modernbert"}},
      {{"c_fc"}, {"up"}, gpt2_like()},
      {{"fc_in"}, {"up"}, {"gptj"}},
      {{"intermediate.dense"}, {"up"}, bert_like()},
      {{"dense_h_to_4h"}, {"up"}, neox_like()},
      {{"dense_h_to_4h"}, {"gate", "up"}, {"chatglm"}},
      {{"down_proj", "fc2", "lin2", "linear_fc2"}, {"down"}},
      {{"mlp.c_proj"}, {"down"}, {"gpt2", "gpt_bigcode", "gpt_neo", "starcoder2", "qwen"}},
      {{"mlp.Wo"}, {"down"}, {"modernbert"}},
      {{"fc_out"}, {"down"}, {"gptj"}},
      {{"output.dense"}, {"down"}, bert_like()},
      {{"dense_4h_to_h"}, {"down"}, neox_like()},
      {{"dense_4h_to_h"}, {"down"}, {"chatglm"}},
      // The names of Llama's authors: silu(w1 x) * w3 x.
      {{"w1"}, {"gate"}, {"internlm2", "mixtral", "phimoe", "minimax_m2", "minimax_text_01"}},
      {{"w2"}, {"down"}, {"internlm2", "mixtral", "phimoe", "minimax_m2", "minimax_text_01"}},
      {{"w3"}, {"up"}, {"internlm2", "mixtral", "phimoe", "minimax_m2", "minimax_text_01"}},
      {{"w1"}, {"up"}, {"qwen"}},
      {{"w2"}, {"gate"}, {"qwen"}},
      {{"shared_expert_gate"}, {"shared_expert_gate"}},
      {{"lm_head", "embed_out", "output_layer"}, {"head"}}};
  return kModules;
}

bool ends_with_name(std::string_view path, std::string_view name) {
  return path == name ||
         (path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '.');
}

}  // namespace

ModuleName module_name(std::string_view name) {
  ModuleName found;
  std::string_view rest = name, list;
  while (!rest.empty()) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    rest.remove_prefix(std::min(dot + 1, rest.size()));
    const bool is_number = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    found.of_experts = found.of_experts || part == "experts";
    found.of_shared_expert = found.of_shared_expert || is_shared_expert(part);
    if (part == "*" || (is_number && is_list_of_layers(list))) {
      if (is_number) found.layer = std::stoll(std::string(part));
      found.module.clear();  // what follows is the module
    } else {
      found.is_pattern = found.is_pattern || part.find_first_of("*?[]()|\\+^$") != part.npos;
      found.module += (found.module.empty() ? "" : ".") + std::string(part);
    }
    list = part;
  }
  return found;
}

std::vector<JoinedRows> rows_of_module(const ModuleName& name, std::string_view architecture) {
  std::vector<JoinedRows> found;
  std::size_t longest = 0;  // of names that are the end of the module's
  for (const Module& module : modules()) {
    if (!module.of.empty() && std::ranges::count(module.of, architecture) == 0) continue;
    for (const std::string_view known : module.names) {
      const bool is_whole = name.layer.has_value();  // nothing is missing before it
      if (known == name.module || (!is_whole && ends_with_name(known, name.module))) {
        if (longest < name.module.size()) found.clear();
        longest = std::max(longest, name.module.size());
        found.push_back(module.rows);
        break;
      }
      if (ends_with_name(name.module, known) && known.size() >= longest) {
        if (known.size() > longest) found.clear();
        longest = known.size();
        found.push_back(module.rows);
        break;
      }
    }
  }
  return found;
}

std::vector<JoinedRows> joined_rows(std::string_view architecture) {
  // huggingface/transformers, src/transformers/models/*/modeling_*.py, or the code beside the weights (chatglm, Ling,
  // Phi-4 multimodal); Megatron-LM has linear_qkv and linear_fc1.
  static const Architectures kJoinAttention{
      "",     "gpt2",        "gpt_bigcode",    "gpt_neox", "bloom",     "falcon",   "chatglm",
      "phi3", "phi3small",   "phi4mm",         "mpt",      "dbrx",      "baichuan", "internlm2",
      "qwen", "bailing_moe", "bailing_moe_v2", "codegen",  "modernbert"};
  static const Architectures kJoinGate{"", "phi3", "phi4mm", "chatglm", "glm", "glm4", "glm4v_text", "modernbert"};
  std::vector<JoinedRows> joined;
  if (std::ranges::count(kJoinAttention, architecture) > 0) joined.push_back({"query", "key", "value"});
  if (std::ranges::count(kJoinGate, architecture) > 0) joined.push_back({"gate", "up"});
  return joined;
}

}  // namespace tandem
