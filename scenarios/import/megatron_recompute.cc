#include "scenarios/import/megatron_recompute.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "strategies/model/recomputation.h"

namespace tandem {
namespace {

// "core_attn mlp", or as Python prints a list: "['core_attn', 'mlp']".
std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
  std::vector<std::string> words;
  for (std::size_t at = text.find_first_of(kLetters); at != text.npos; at = text.find_first_of(kLetters, at)) {
    const std::size_t end = std::min(text.find_first_not_of(kLetters, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// `act` is a name of Tandem's own.
bool is_known_module(std::string_view name) {
  return name != "act" && std::ranges::count(recomputed_modules(), name) > 0;
}

bool has_module(const Flags& flags, std::string_view name) {
  const bool has_experts = flags.number("num_experts", 0) > 0;
  if (name == "moe" || name == "moe_act") return has_experts;
  const std::string pattern = flags.text("moe_layer_freq", "1");
  if (name == "mlp") return !has_experts || pattern != "1";  // some layers have none
  return name != "mla_up_proj" || flags.is_on("multi_latent_attention");
}

std::string blocks_of(const Flags& flags) {
  const std::string method = flags.text("recompute_method");
  const std::int64_t layers = flags.number("recompute_num_layers", 1);
  if (layers == 0) return "";
  if (method == "block") return fmt::format("{{first: {}}}", layers);
  if (!method.empty() && method != "uniform") flags.fail("recompute_method", "is neither uniform nor block");
  return layers > 1 ? fmt::format("{{together: {}}}", layers) : "true";
}

std::string modules_of(const Flags& flags) {
  std::vector<std::string> modules = words_of(flags.text("recompute_modules", "core_attn"));
  if (flags.is_on("moe_layer_recompute")) modules.emplace_back("moe");
  std::erase_if(modules, [&](const std::string& name) { return !is_known_module(name) || !has_module(flags, name); });
  return modules.empty() ? "" : fmt::format("{{modules: [{}]}}", fmt::join(modules, ", "));
}

}  // namespace

std::string recomputation_of(const Flags& flags) {
  const std::string granularity = flags.text("recompute_granularity");
  if (granularity == "full" || flags.is_on("checkpoint_activations")) return blocks_of(flags);
  const bool is_selective = granularity == "selective" || flags.is_on("recompute_activations");
  if (is_selective || flags.is_on("moe_layer_recompute")) return modules_of(flags);
  if (granularity.empty() || granularity == "None") return "";
  flags.fail("recompute_granularity", "is neither full nor selective");
}

std::string unknown_modules(const Flag& flag) {
  std::vector<std::string> modules = words_of(flag.value);
  std::erase_if(modules, [](const std::string& name) { return is_known_module(name); });
  return fmt::format("{}", fmt::join(modules, ", "));
}

}  // namespace tandem
