#include "scenarios/import/models/unknown_architecture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "topologies/base/error.h"

namespace tandem {
namespace {

// Why an architecture cannot be read, and the nearest one that can; empty: there is none.
struct Obstacle {
  std::string_view what;
  std::string_view nearest{};
};

constexpr Obstacle kTwoStacks{"models with an encoder and a decoder are not modelled"};
constexpr Obstacle kStateSpace{"state-space layers without attention are not modelled"};
constexpr Obstacle kMixedStateSpace{"not modelled as it is: state-space layers among those of attention", "nemotron_h"};
constexpr Obstacle kRecurrent{"recurrent layers without attention are not modelled"};
constexpr Obstacle kWindows{"attention within windows of an image, in stages of several sizes, is not modelled", "vit"};
constexpr Obstacle kConvolutions{"networks of convolutions are not imported"};
constexpr Obstacle kSound{"networks that begin with convolutions over sound are not modelled"};
constexpr Obstacle kTwoTowers{"a tower of text beside one of images is not modelled", "clip_vision_model"};

struct NamedObstacle {
  std::string_view family;  // a word of the name, without its version
  const Obstacle* obstacle;
};
constexpr std::array kObstacles = {
    NamedObstacle{"t5", &kTwoStacks},
    NamedObstacle{"mt5", &kTwoStacks},
    NamedObstacle{"umt5", &kTwoStacks},
    NamedObstacle{"longt5", &kTwoStacks},
    NamedObstacle{"speecht5", &kTwoStacks},
    NamedObstacle{"t5gemma", &kTwoStacks},
    NamedObstacle{"switch_transformers", &kTwoStacks},
    NamedObstacle{"bart", &kTwoStacks},
    NamedObstacle{"mbart", &kTwoStacks},
    NamedObstacle{"plbart", &kTwoStacks},
    NamedObstacle{"blenderbot", &kTwoStacks},
    NamedObstacle{"pegasus", &kTwoStacks},
    NamedObstacle{"marian", &kTwoStacks},
    NamedObstacle{"m2m_100", &kTwoStacks},
    NamedObstacle{"nllb", &kTwoStacks},
    NamedObstacle{"led", &kTwoStacks},
    NamedObstacle{"fsmt", &kTwoStacks},
    NamedObstacle{"prophetnet", &kTwoStacks},
    NamedObstacle{"whisper", &kTwoStacks},
    NamedObstacle{"moonshine", &kTwoStacks},
    NamedObstacle{"seamless", &kTwoStacks},
    NamedObstacle{"trocr", &kTwoStacks},
    NamedObstacle{"florence", &kTwoStacks},
    NamedObstacle{"detr", &kTwoStacks},
    NamedObstacle{"encoder-decoder", &kTwoStacks},
    NamedObstacle{"mamba", &kStateSpace},
    NamedObstacle{"jamba", &kMixedStateSpace},
    NamedObstacle{"zamba", &kMixedStateSpace},
    NamedObstacle{"falcon_h1", &kMixedStateSpace},
    NamedObstacle{"rwkv", &kRecurrent},
    NamedObstacle{"xlstm", &kRecurrent},
    NamedObstacle{"recurrent_gemma", &kRecurrent},
    NamedObstacle{"swin", &kWindows},
    NamedObstacle{"swin2sr", &kWindows},
    NamedObstacle{"hiera", &kWindows},
    NamedObstacle{"resnet", &kConvolutions},
    NamedObstacle{"convnext", &kConvolutions},
    NamedObstacle{"regnet", &kConvolutions},
    NamedObstacle{"efficientnet", &kConvolutions},
    NamedObstacle{"mobilenet", &kConvolutions},
    NamedObstacle{"wav2vec2", &kSound},
    NamedObstacle{"hubert", &kSound},
    NamedObstacle{"wavlm", &kSound},
    NamedObstacle{"vits", &kSound},
    NamedObstacle{"clip", &kTwoTowers},
    NamedObstacle{"siglip", &kTwoTowers},
};

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// Returns whether the rest of a name is a version or another word: "swinv2", "swin-tiny", but not "swing".
bool ends_word(std::string_view rest) {
  if (rest.size() > 1 && rest[0] == 'v' && !is_letter(rest[1])) return true;
  return rest.empty() || !is_letter(rest[0]);
}

bool has_word(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const bool begins = at == 0 || name[at - 1] == '_' || name[at - 1] == '-';
    if (begins && ends_word(name.substr(at + word.size()))) return true;
  }
  return false;
}

const Obstacle* obstacle_of(std::string_view type, const ConfigValues& config) {
  for (const NamedObstacle& one : kObstacles) {
    if (has_word(type, one.family)) return one.obstacle;
  }
  const JsonValue* two_stacks = config.find({"is_encoder_decoder"});
  if (two_stacks != nullptr && two_stacks->text == "true") return &kTwoStacks;
  if (config.has({"encoder_layers"}) && config.has({"decoder_layers"})) return &kTwoStacks;
  if (!config.has({"state_size", "ssm_state_size", "mamba_d_state", "ssm_cfg"})) return nullptr;
  return config.has({"num_attention_heads"}) ? &kMixedStateSpace : &kStateSpace;
}

std::string_view letters_of(std::string_view name) {
  const auto end = std::find_if_not(name.begin(), name.end(), is_letter);
  return name.substr(0, static_cast<std::size_t>(end - name.begin()));
}

// Returns the known architecture that begins with the same word: the nearest in spelling and, of several versions, the
// latest. If there is none, returns the one that has the longest beginning in common with the name.
std::string nearest_of_family(std::string_view type, const std::vector<std::string>& known) {
  std::vector<std::string> family;
  for (const std::string& name : known) {
    if (letters_of(name) == letters_of(type)) family.push_back(name);
  }
  std::sort(family.rbegin(), family.rend());
  std::string near = nearest_name(type, family);
  if (!near.empty() || family.empty()) return near;
  const auto shared = [&](const std::string& name) {
    return std::mismatch(name.begin(), name.end(), type.begin(), type.end()).first - name.begin();
  };
  return *std::max_element(family.begin(), family.end(),
                           [&](const std::string& a, const std::string& b) { return shared(a) < shared(b); });
}

// Returns the plainest architecture with the sizes that a configuration has; empty if its keys fit none.
std::string nearest_by_keys(const ConfigValues& config) {
  if (config.has({"kv_lora_rank"})) return "deepseek_v3";
  if (config.has({"num_local_experts", "num_experts", "n_routed_experts"})) return "mixtral";
  if (config.has({"patch_size"})) return "vit";
  if (config.has({"type_vocab_size"})) return "bert";
  if (config.has({"n_embd"})) return "gpt2";
  const bool is_plain = config.has({"hidden_size"}) && config.has({"num_attention_heads"});
  return is_plain && config.has({"rms_norm_eps", "num_key_value_heads"}) ? "llama" : "";
}

std::string advice(std::string_view nearest) {
  return fmt::format("the nearest one known is '{}': put that in its place only if the layers are alike", nearest);
}

}  // namespace

std::string about_unknown_architecture(const std::string& type, const ConfigValues& config,
                                       const std::vector<std::string>& known) {
  const std::string unknown = fmt::format("unknown architecture '{}'", shortened(type));
  if (const Obstacle* obstacle = obstacle_of(type, config)) {
    const std::string text = fmt::format("{}: {}", unknown, obstacle->what);
    return obstacle->nearest.empty() ? text : text + "; " + advice(obstacle->nearest);
  }
  std::string near = nearest_of_family(type, known);
  if (near.empty()) near = nearest_name(type, known);
  if (!near.empty()) return unknown + "; " + advice(near);
  near = nearest_by_keys(config);
  if (!near.empty()) return unknown + "; by its keys " + advice(near);
  return fmt::format("{}, and none that is known is near; known are {}", unknown, fmt::join(known, ", "));
}

}  // namespace tandem
