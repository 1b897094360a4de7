#include "scenarios/import/megatron_offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// The types of moments that Megatron-LM takes, by its words; printed arguments and configurations have PyTorch's names,
// and bytes for fp8.
struct MomentWord {
  DType type = DType::f32;
  std::string_view word, of_pytorch;
};
constexpr std::array kMomentWords{MomentWord{DType::f32, "fp32", "float32"},
                                  MomentWord{DType::bf16, "bf16", "bfloat16"},
                                  MomentWord{DType::f16, "fp16", "float16"}, MomentWord{DType::fp8, "fp8", "uint8"}};

// Returns a type by its name here.
std::string moment_type(const Flags& flags, std::string_view name) {
  std::string text = flags.text(name, "fp32");
  text.erase(0, text.rfind('.') + 1);
  const auto* const found = std::ranges::find_if(
      kMomentWords, [&text](const MomentWord& one) { return text == one.word || text == one.of_pytorch; });
  if (found != kMomentWords.end()) return std::string(name_of(found->type));
  flags.fail(name, fmt::format("must be fp32, fp16, bf16 or fp8, found '{}'", text));
}

}  // namespace

std::string_view moment_word(DType type) {
  return std::ranges::find(kMomentWords, type, &MomentWord::type)->word;
}

// Facts from megatron/training/arguments.py, megatron/core/optimizer/optimizer_config.py, and Transformer Engine's
// transformer_engine/pytorch/optimizers/fused_adam.py.
std::string moment_types_of(const Flags& flags, std::vector<std::string>& left_out) {
  const std::string first = moment_type(flags, "exp_avg_dtype"), second = moment_type(flags, "exp_avg_sq_dtype");
  if (!flags.is_on("use_precision_aware_optimizer")) {
    if (first == "f32" && second == "f32") return "";
    left_out.emplace_back(
        "--exp-avg-dtype, --exp-avg-sq-dtype: moments are f32 without --use-precision-aware-optimizer");
    return "";
  }
  if (!flags.text("main_params_dtype", "fp32").ends_with("32")) {
    left_out.emplace_back("--main-params-dtype: copies of parameters are f32");
  } else {
    left_out.emplace_back(
        "--use-precision-aware-optimizer: copies of parameters are whole, also where Transformer Engine keeps only the "
        "bits that bf16 lacks");
  }
  if (first == "f32" && second == "f32") return "";
  left_out.emplace_back(
      "--exp-avg-dtype, --exp-avg-sq-dtype: moments are updated in their types, without Transformer Engine's copies in "
      "f32");
  return first == second ? first : fmt::format("{{first: {}, second: {}}}", first, second);
}

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
