// Which layers of a model have low-rank adapters (LoRA), by the names that other programs give to modules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/origins.h"
#include "scenarios/import/models/model_table.h"
#include "scenarios/import/models/module_names.h"

namespace tandem {

struct Adapters {
  std::int64_t rank = 0;              // 0: none
  std::vector<std::string> layers{};  // items of workload.lora.layers, as YAML
  std::vector<Origin> origins{};
  std::string yaml() const;  // the value of workload.lora
};

// Collects the layers that have adapters. A scenario's adapters are in all blocks: names of single ones are counted,
// and named where they are not all of them.
class AdapterTargets {
 public:
  // `architecture`: the `model_type` of Hugging Face; empty for Megatron-LM. Both must outlive this.
  AdapterTargets(const ModelTable& table, std::string_view architecture) : table_(table), architecture_(architecture) {}

  // Adds the layers of a module, or takes them out again. Return what is wrong with the name.
  std::optional<std::string> add(std::string_view name);
  std::optional<std::string> exclude(std::string_view name);
  void add_all();  // dense layers of blocks but for experts and their routers

  bool has_row(std::string_view name) const;  // of the table
  bool is_empty() const { return items_.empty(); }
  // Returns what is wrong where they are empty.
  std::string why_empty() const;
  std::vector<std::string> layers() const;
  // Returns sentences about what differs, each beginning with the key that gave the names.
  std::vector<std::string> differences(std::string_view key) const;
  // Returns one where adapters are in some blocks only; nothing if these are all.
  std::optional<std::string> difference(std::string_view key, std::string_view what,
                                        const std::set<std::int64_t>& blocks) const;

 private:
  struct Item {
    std::string layers;  // "query", or "[query, key, value]"
    bool is_everywhere = false;
    std::set<std::int64_t> blocks{};  // else
  };

  std::optional<std::string> find(const ModuleName& name, std::string_view written,
                                  std::vector<std::string>& items) const;
  bool means_experts(const ModuleName& name, const JoinedRows& joined) const;
  std::int64_t blocks() const;
  void add_item(std::string layers, const std::optional<std::int64_t>& block);

  const ModelTable& table_;
  std::string_view architecture_;
  std::vector<Item> items_{};
  std::set<std::string> of_experts_{};                            // names as written
  std::map<std::string, std::set<std::int64_t>> not_excluded_{};  // layers that are excluded in these blocks only
};

// Reads the `adapter_config.json` of Hugging Face's PEFT for a model of this `model_type`. Throws InputError; what is
// not modelled goes to `left_out`.
Adapters read_adapter_config(const std::filesystem::path& file, const ModelTable& table, std::string_view architecture,
                             std::vector<std::string>& left_out);

}  // namespace tandem
