#include "scenarios/import/megatron_offload.h"

#include <fmt/format.h>

#include <charconv>

namespace tandem {
namespace {

// Returns a share above 0, as it is written.
std::string share_of(const Flags& flags, std::string_view name, const std::string& otherwise) {
  const std::string text = flags.text(name, otherwise);
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || end != text.data() + text.size() || !(share >= 0 && share <= 1)) {
    flags.fail(name, "must be a share from 0 to 1");
  }
  return share > 0 ? fmt::format("{}", share) : "";
}

}  // namespace

// Megatron-LM offloads the whole optimizer unless --optimizer-offload-fraction says less
// (megatron/training/arguments.py).
MegatronOffload offload_of(const Flags& flags, bool has_pieces, std::vector<std::string>& left_out) {
  MegatronOffload offload;
  if (flags.is_on("cpu_offloading")) {
    offload.blocks = flags.number("cpu_offloading_num_layers", 0);
    if (flags.is_on("cpu_offloading_weights")) {
      left_out.emplace_back("--cpu-offloading-weights: weights stay on the device");
    }
  }
  if (!flags.is_on("optimizer_cpu_offload")) return offload;
  if (has_pieces) {
    left_out.emplace_back("--optimizer-cpu-offload: the optimizer works on the device, on pieces of parameters");
  } else {
    offload.optimizer = share_of(flags, "optimizer_offload_fraction", "1.0");
  }
  return offload;
}

}  // namespace tandem
