#include "scenarios/import/megatron_experts.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace tandem {
namespace {

// Returns a number that need not be whole; 0: not given.
double number_of(const Flags& flags, std::string_view name) {
  const std::string text = flags.text(name, "0");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr double kMost = 1000;
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= kMost) return value;
  flags.fail(name, fmt::format("expected a number from 0 to {}, found '{}'", kMost, text));
}

}  // namespace

MegatronExperts read_dispatched_experts(const Flags& flags, std::vector<std::string>& left_out) {
  MegatronExperts experts;
  const bool is_flexible = flags.text("moe_token_dispatcher_type") == "flex";
  if (flags.is_on("moe_enable_deepep")) experts.dispatch = "deepep";
  if (is_flexible) experts.dispatch = flags.text("moe_flex_dispatcher_backend", "deepep");
  if (flags.text("moe_token_dispatcher_type") == "allgather" && !flags.is_printed) {
    left_out.emplace_back("--moe-token-dispatcher-type allgather: tokens go to experts by all-to-all");
  }
  if (!experts.dispatch.empty() && experts.dispatch != "deepep" && experts.dispatch != "hybridep") {
    flags.fail("moe_flex_dispatcher_backend", fmt::format("'{}' is neither deepep nor hybridep", experts.dispatch));
  }
  // Without padding, experts that get equally many tokens drop some only below 1.
  const bool has_capacity = flags.is_on("moe_expert_capacity_factor");
  const double capacity = has_capacity ? number_of(flags, "moe_expert_capacity_factor") : 0;
  if (capacity > 0 && (capacity < 1 || flags.is_on("moe_pad_expert_input_to_capacity"))) {
    experts.capacity = fmt::format("{}", capacity);
  }
  // All-to-all sends a copy for each expert, wherever these are.
  if (!experts.dispatch.empty() && flags.is_on("moe_router_num_groups") && flags.is_on("moe_router_group_topk")) {
    experts.groups = flags.number("moe_router_num_groups", 0);
    experts.used_groups = flags.number("moe_router_group_topk", 0);
    const std::int64_t all = flags.number("num_experts", 0);
    if (experts.groups < 1 || all % experts.groups != 0) {
      flags.fail("moe_router_num_groups", fmt::format("{} groups do not divide {} experts", experts.groups, all));
    }
    const std::int64_t used = flags.number("moe_router_topk", 2),
                       in_groups = all / experts.groups * experts.used_groups;
    if (experts.used_groups < 1 || experts.used_groups > experts.groups || in_groups < used) {
      flags.fail("moe_router_group_topk",
                 fmt::format("of {} groups of experts, {} do not have the {} that a token uses", experts.groups,
                             experts.used_groups, used));
    }
  }
  const bool has_shared = flags.number("moe_shared_expert_intermediate_size", 0) > 0;
  const bool exchanges = flags.number("expert_model_parallel_size", 1) > 1;
  experts.overlaps_shared = flags.is_on("moe_shared_expert_overlap") && has_shared && exchanges;
  if (experts.overlaps_shared && flags.is_on("overlap_moe_expert_parallel_comm")) {
    experts.overlaps_shared = false;
    left_out.emplace_back("--moe-shared-expert-overlap: not with --overlap-moe-expert-parallel-comm, which hides more");
  }
  experts.kernels = flags.is_on("use_transformer_engine_op_fuser") ? "fused"
                    : flags.is_on("moe_use_legacy_grouped_gemm")   ? "grouped"
                                                                   : "separate";
  return experts;
}

}  // namespace tandem
