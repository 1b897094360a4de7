#include "scenarios/import/megatron_adapters.h"

#include <fmt/format.h>

#include <sstream>

namespace tandem {

Adapters read_megatron_adapters(const Flags& flags, const ModelTable& table, std::vector<std::string>& left_out) {
  const std::string kind = flags.text("peft_kind");
  if (kind.empty()) return {};
  if (kind != "LoRA" && kind != "CanonicalLoRA") {
    flags.fail("peft_kind", fmt::format("'{}' is not modelled; LoRA is", kind));
  }
  constexpr std::int64_t kUsualRank = 32;
  Adapters adapters{.rank = flags.number("peft_dim", kUsualRank)};
  if (adapters.rank < 1) flags.fail("peft_dim", "expected a rank of at least 1");
  std::istringstream names(flags.text("peft_target_modules", "linear_qkv linear_proj linear_fc1 linear_fc2"));
  for (std::string name; names >> name;) {
    const std::string module = name.substr(name.rfind('.') + 1);
    if (add_module(module, table, adapters, left_out)) continue;
    flags.fail("peft_target_modules", fmt::format("the model has no dense layer '{}'", name));
  }
  if (adapters.layers.empty()) flags.fail("peft_target_modules", "names no layer that is modelled");
  const std::string dropout = flags.text("peft_dropout", "0");
  if (dropout != "0" && dropout != "0.0") {
    left_out.push_back(fmt::format("peft.dropout {}: adapters read their input as it is", dropout));
  }
  return adapters;
}

}  // namespace tandem
