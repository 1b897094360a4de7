// Which dense layers of a table a module is, by the names of Hugging Face's transformers and of Megatron-LM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// A name such as `q_proj`, `self_attn.q_proj`, `model.layers.3.self_attn.q_proj` or `*.layers.3.*.linear_qkv`.
struct ModuleName {
  std::string module;                   // what follows the number of the layer
  std::optional<std::int64_t> layer{};  // the only one that is meant
  bool of_experts = false;
  bool of_shared_expert = false;  // which all tokens use
  bool is_pattern = false;        // which layers it means cannot be told
};
ModuleName module_name(std::string_view name);

// Rows of a table that frameworks join in one product, with one input: `c_attn` has query, key and value.
using JoinedRows = std::vector<std::string_view>;

// Returns the products that a module is, none for an unknown one. A short name may mean several: `dense` of BERT.
// `architecture`: the `model_type`; empty for Megatron-LM.
std::vector<JoinedRows> rows_of_module(const ModuleName& name, std::string_view architecture);

// Returns the products that the architecture joins. One of a gate is that of `up` alone in models without gates.
std::vector<JoinedRows> joined_rows(std::string_view architecture);

}  // namespace tandem
