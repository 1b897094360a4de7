#include "scenarios/import/megatron_adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

namespace tandem {
namespace {

constexpr const char* kKind = "peft_kind";
constexpr const char* kTargets = "peft_target_modules";
constexpr const char* kExcluded = "peft_exclude_modules";

// Linear layers of Megatron-LM.
constexpr std::array<std::string_view, 1> kOfAttention{"linear_qkv"};
constexpr std::array<std::string_view, 5> kOfLatentAttention{"linear_q_proj", "linear_q_down_proj", "linear_q_up_proj",
                                                             "linear_kv_down_proj", "linear_kv_up_proj"};
constexpr std::array<std::string_view, 4> kOfAll{"linear_proj", "linear_fc1", "linear_fc2", "output_layer"};

std::vector<std::string> peft_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// megatron/bridge/peft/canonical_lora.py: CanonicalLoRA has an adapter for each matrix of a joined product.
std::string usual_targets(bool is_canonical) {
  return is_canonical ? "linear_q linear_k linear_v linear_proj linear_fc1_up linear_fc1_gate linear_fc2"
                      : "linear_qkv linear_proj linear_fc1 linear_fc2";
}

void check_kind_of(const Flags& flags, bool is_canonical, const std::string& name) {
  const auto ends = [&](std::string_view module) { return name.ends_with(module); };
  const bool is_joined = ends("linear_qkv") || ends("linear_fc1");
  const bool is_single =
      ends("linear_q") || ends("linear_k") || ends("linear_v") || ends("linear_fc1_up") || ends("linear_fc1_gate");
  if (is_canonical && is_joined) {
    flags.fail(kTargets, fmt::format("'{}' is for LoRA; CanonicalLoRA has linear_q, linear_k, linear_v, linear_fc1_up "
                                     "and linear_fc1_gate",
                                     name));
  }
  if (!is_canonical && is_single) {
    flags.fail(kTargets, fmt::format("'{}' is for CanonicalLoRA; LoRA has linear_qkv and linear_fc1", name));
  }
}

// Adds the layers of a module. Latent attention has other modules, two of which are those of a query, too.
std::optional<std::string> add_target(AdapterTargets& targets, std::string_view name) {
  const auto ends = [&](std::string_view module) { return name.ends_with(module); };
  const bool is_latent = targets.has_row("key_value");
  const bool is_of_latent = std::ranges::any_of(kOfLatentAttention, ends);
  const bool is_of_qkv = ends("linear_qkv") || ends("linear_q") || ends("linear_k") || ends("linear_v");
  if (is_latent ? is_of_qkv : is_of_latent) {
    return fmt::format("the model has no dense layer '{}': its attention is {}latent", name, is_latent ? "" : "not ");
  }
  return targets.add(name);
}

// megatron/bridge/peft/module_matcher.py: without targets, all linear layers have adapters but for those excluded.
void add_all_but(const Flags& flags, AdapterTargets& targets) {
  const auto add = [&](const auto& modules) {
    for (const std::string_view module : modules) targets.add(module);  // those that the model has
  };
  if (targets.has_row("key_value")) {
    add(kOfLatentAttention);
  } else {
    add(kOfAttention);
  }
  add(kOfAll);
  for (const std::string& name : peft_words(flags.text(kExcluded))) {
    if (const auto problem = targets.exclude(name)) flags.fail(kExcluded, *problem);
  }
}

}  // namespace

Adapters read_megatron_adapters(const Flags& flags, const ModelTable& table, std::vector<std::string>& left_out) {
  if (flags.find(kKind) == nullptr) return {};
  const std::string kind = flags.text(kKind);
  if (kind.empty()) flags.fail(kKind, "the section peft has no _target_: LoRA or CanonicalLoRA");
  if (kind != "LoRA" && kind != "CanonicalLoRA") {
    flags.fail(kKind, fmt::format("'{}' is not modelled; LoRA is", kind));
  }
  const bool is_canonical = kind == "CanonicalLoRA";
  constexpr std::int64_t kUsualRank = 32;
  Adapters adapters{.rank = flags.number("peft_dim", kUsualRank)};
  if (adapters.rank < 1) flags.fail("peft_dim", "expected a rank of at least 1");
  AdapterTargets targets(table, "");
  const bool is_given = flags.find(kTargets) != nullptr;
  const std::vector<std::string> names = peft_words(flags.text(kTargets, usual_targets(is_canonical)));
  if (!names.empty() && !flags.text(kExcluded).empty()) {
    flags.fail(kExcluded, "cannot be given together with target_modules, which must be an empty list");
  }
  for (const std::string& name : names) {
    check_kind_of(flags, is_canonical, name);
    const auto problem = add_target(targets, name);
    if (problem && is_given) flags.fail(kTargets, *problem);  // the usual ones are those that the model has
  }
  if (names.empty()) add_all_but(flags, targets);
  if (targets.is_empty()) flags.fail(kTargets, targets.why_empty());
  adapters.layers = targets.layers();
  for (std::string& sentence : targets.differences("peft.target_modules")) left_out.push_back(std::move(sentence));
  const std::string dropout = flags.text("peft_dropout", "0");
  if (dropout != "0" && dropout != "0.0") {
    left_out.push_back(fmt::format("peft.dropout {}: adapters read their input as it is", dropout));
  }
  return adapters;
}

}  // namespace tandem
