// Which layers of a model have low-rank adapters (LoRA), by the names that other programs give to modules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/models/model_table.h"

namespace tandem {

struct Adapters {
  std::int64_t rank = 0;              // 0: none
  std::vector<std::string> layers{};  // items of workload.lora.layers, as YAML
  std::string yaml() const;           // the value of workload.lora
};

// Adds the rows of a module, such as `q_proj` of Hugging Face or `linear_qkv` of Megatron-LM. Rows of one product that
// frameworks join have one item. Returns whether the table has any; experts are named in `left_out`.
bool add_module(std::string_view module, const ModelTable& table, Adapters& adapters,
                std::vector<std::string>& left_out);

// Reads the `adapter_config.json` of Hugging Face's PEFT. Throws InputError; what is not modelled goes to `left_out`.
Adapters read_adapter_config(const std::filesystem::path& file, const ModelTable& table,
                             std::vector<std::string>& left_out);

}  // namespace tandem
