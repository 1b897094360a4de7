#include "scenarios/import/models/hugging_face.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "scenarios/import/models/config_values.h"
#include "scenarios/import/models/decoder_families.h"
#include "scenarios/import/models/encoder_families.h"
#include "scenarios/import/models/unknown_architecture.h"
#include "scenarios/import/models/unused_keys.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kUsualTokens = 4096;
constexpr std::int64_t kMostParameters = std::int64_t{1} << 50;
constexpr std::int64_t kMostTotal = std::int64_t{1} << 60;

// Models of several parts: the key of the language model's configuration, and its `model_type` if it has none.
struct Composite {
  std::string_view name;
  std::string_view language;  // empty: the part's own
};
constexpr std::array kComposites = {
    Composite{"gemma3", "gemma3_text"},
    Composite{"gemma4", "gemma4_text"},
    Composite{"llama4", "llama4_text"},
    Composite{"mistral3", "mistral"},
    Composite{"llava", "llama"},
    Composite{"llava_next", "llama"},
    Composite{"llava_onevision", "qwen2"},
    Composite{"qwen2_vl", "qwen2"},
    Composite{"qwen2_5_vl", "qwen2"},
    Composite{"qwen3_vl", "qwen3"},
    Composite{"qwen3_vl_moe", "qwen3_moe"},
    Composite{"qwen3_5", "qwen3_5_text"},
    Composite{"qwen3_5_moe", "qwen3_5_moe_text"},
    Composite{"internvl", "qwen2"},
    Composite{"internvl_chat", "qwen2"},
    Composite{"kimi_vl", "deepseek_v3"},
    Composite{"kimi_k25", "deepseek_v3"},
    Composite{"step3_vl", "step3_text"},
    Composite{"glm4v", "glm4v_text"},
    Composite{"glm4v_moe", "glm4v_moe_text"},
    Composite{"paligemma", "gemma"},
    Composite{"aya_vision", "cohere2"},
    Composite{"idefics3", "llama"},
    Composite{"smolvlm", "llama"},
};

std::string dtype_of(const ConfigValues& config) {
  const std::string word = config.text({"torch_dtype", "dtype"});
  if (word == "bfloat16") return "bf16";
  if (word == "float16" || word == "half") return "f16";
  return word == "float32" || word == "float" ? "f32" : "";
}

std::string model_type_of(const ConfigValues& config) {
  return config.text({"model_type"});
}

[[noreturn]] void refuse(const ConfigValues& config, const std::string& type) {
  const JsonValue* at = config.find({"model_type"});
  config.fail(at != nullptr ? *at : config.object(), "model_type",
              about_unknown_architecture(type, config, known_architectures()));
}

class Reader {
 public:
  Reader(const JsonValue& document, std::string file, std::int64_t tokens)
      : root_(document, std::move(file)), tokens_(tokens) {}

  HuggingFaceModel read() {
    model_.architecture = model_type_of(root_);
    model_.dtype = dtype_of(root_);
    const std::string type = model_.architecture;
    if (type.empty()) root_.fail(root_.object(), "model_type", "is missing: which architecture this is");
    if (!read_plain(root_, type)) read_composite(type);
    check_sizes();
    return std::move(model_);
  }

 private:
  bool read_plain(const ConfigValues& config, const std::string& type) {
    for (const DecoderFamily& family : decoder_families()) {
      if (family.name != type) continue;
      model_.spec = read_decoder(config, family);
      finish_language(config, type);
      return true;
    }
    for (const EncoderFamily& family : encoder_families()) {
      if (family.name != type) continue;
      const std::vector<std::string> classes = root_.texts({"architectures"});
      model_.spec = family.read(config, classes.empty() ? "" : classes.front());
      set_name(config, type);
      if (!model_.spec.image) set_tokens(config, 512);
      note_unused(config);
      return true;
    }
    return false;
  }

  void read_composite(const std::string& type) {
    const auto known =
        std::find_if(kComposites.begin(), kComposites.end(), [&](const Composite& one) { return one.name == type; });
    auto language = root_.map({"text_config", "llm_config", "language_config"});
    if (known == kComposites.end()) return read_language_of_unknown(language, type);
    if (!language) language = root_;
    std::string part = language->text({"model_type"});
    if (part.empty() || part == type) part = known->language;
    if (model_.dtype.empty()) model_.dtype = dtype_of(*language);
    set_defaults(*language, part, "text_config");
    if (!read_plain(*language, part)) refuse(*language, part);
    if (const JsonValue* stated = root_.find({"tie_word_embeddings"});
        stated != nullptr && !language->has({"tie_word_embeddings"})) {
      model_.spec.tied = root_.boolean({"tie_word_embeddings"}, model_.spec.tied);
    }
    read_vision(type);
  }

  // A model of unknown parts, whose language model is known.
  void read_language_of_unknown(std::optional<ConfigValues>& language, const std::string& type) {
    const std::string part = language ? language->text({"model_type"}) : "";
    if (part.empty() || part == type) refuse(root_, type);
    set_defaults(*language, part, "text_config");
    if (model_.dtype.empty()) model_.dtype = dtype_of(*language);
    if (!read_plain(*language, part)) refuse(root_, type);
    model_.assumed.push_back(fmt::format("only the language model ('{}') of '{}' is counted", part, type));
  }

  // Part of a model's configuration may leave out sizes that are its family's defaults.
  void set_defaults(ConfigValues& config, const std::string& type, const char* part) {
    const SizeDefaults& defaults = size_defaults_of(type);
    config.set_defaults(defaults);
    for (const auto& [name, value] : defaults) {
      if (!config.has({name})) {
        model_.assumed.push_back(fmt::format("{}.{} {}, the default of '{}' in transformers", part, name, value, type));
      }
    }
  }

  void read_vision(const std::string& type) {
    auto vision = root_.map({"vision_config"});
    if (!vision) return;
    set_defaults(*vision, vision->text({"model_type"}), "vision_config");
    model_.vision = read_vision_tower(*vision, type, model_.spec.hidden);
    if (model_.vision) {
      model_.vision->name = "vision";
      model_.assumed.emplace_back("batches of text: the vision tower does no work; its parameters are counted apart");
    } else {
      model_.assumed.push_back(fmt::format("the vision tower '{}' is left out: only the language model is counted",
                                           vision->text({"model_type"}, "without a name")));
    }
  }

  void set_name(const ConfigValues& config, const std::string& type) {
    model_.spec.name = config.text({"_name_or_path"}, "");
    if (model_.spec.name.empty() || model_.spec.name.find('/') == 0) model_.spec.name = type;
    model_.spec.source = fmt::format("{} (Hugging Face, model_type {})", root_.file(), type);
  }

  void finish_language(const ConfigValues& config, const std::string& type) {
    set_name(config, type);
    set_tokens(config, kUsualTokens);
    note_predicting_layers(config);
    read_groups(config);
    if (config.has({"quantization_config"})) {
      model_.assumed.emplace_back("quantization_config is left out: --precision says in which type products run");
    }
    const bool has_window = std::any_of(model_.spec.blocks.begin(), model_.spec.blocks.end(), [](const Blocks& blocks) {
      return blocks.block.attention && blocks.block.attention->window > 0;
    });
    if (has_window) model_.assumed.emplace_back("layers with a sliding window read so many tokens for each token");
    note_sparse_attention();
    const bool has_linear = std::any_of(model_.spec.blocks.begin(), model_.spec.blocks.end(), [](const Blocks& blocks) {
      return blocks.block.attention && blocks.block.attention->linear;
    });
    if (has_linear)
      model_.assumed.emplace_back("linear attention takes the time of its products and of two passes over its state");
    note_unused(config);
  }

  // Where each token's experts are within some groups, those of DeepSeek's first models by greedy choice excepted.
  void read_groups(const ConfigValues& config) {
    const std::int64_t groups = config.count({"n_group", "num_expert_group"}, 0);
    const std::int64_t used = config.count({"topk_group"}, 0);
    if (groups > 1 && used > 0 && used < groups && config.text({"topk_method"}) != "greedy") {
      model_.groups = groups;
      model_.used_groups = used;
      model_.origins = {
          {"workload.experts.groups.of", config.place_of(config.has({"n_group"}) ? "n_group" : "num_expert_group")},
          {"workload.experts.groups.used", config.place_of("topk_group")}};
    }
  }

  void note_sparse_attention() {
    const auto most = [&](auto of) {
      std::int64_t found = 0;
      for (const Blocks& blocks : model_.spec.blocks) {
        if (blocks.block.attention) found = std::max(found, of(*blocks.block.attention));
      }
      return found;
    };
    const std::int64_t chosen = most([](const AttentionSpec& one) { return one.latent ? one.latent->chosen : 0; });
    if (chosen > 0) {
      model_.assumed.push_back(fmt::format(
          "sparse attention: a token reads {} tokens at the rate of dense attention, and the indexer scores "
          "all pairs; its own loss is left out",
          chosen));
    }
    const std::int64_t chunk = most([](const AttentionSpec& one) { return one.chunk; });
    if (chunk > 0 && chunk < model_.spec.tokens) {
      model_.assumed.push_back(fmt::format(
          "layers with chunks of {} tokens have the window with as many pairs of tokens as there are in chunks",
          chunk));
    }
  }

  // Layers for multi-token prediction, under the names that families give their number.
  void note_predicting_layers(const ConfigValues& config) {
    for (const std::string_view name : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers",
                                        "num_mtp_layers", "num_mtp_modules", "num_predict_layers"}) {
      if (config.count({name}, 0) == 0) continue;
      model_.assumed.push_back(
          fmt::format("{} ({} {}) are left out: neither their parameters nor their work is counted",
                      kPredictorsAreLeftOut, name, config.count({name}, 0)));
    }
  }

  void note_unused(const ConfigValues& config) {
    const std::vector<std::string> keys = unused_keys(config);
    if (keys.empty()) return;
    model_.assumed.push_back(fmt::format("have no effect here: {}", fmt::join(keys, ", ")));
  }

  void set_tokens(const ConfigValues& config, std::int64_t usual) {
    const std::int64_t most =
        config.count({"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"}, usual);
    model_.spec.tokens = tokens_ > 0 ? tokens_ : std::max<std::int64_t>(1, std::min(most, usual));
    if (tokens_ == 0)
      model_.assumed.push_back(fmt::format("sequences of {} tokens (--sequence-length)", model_.spec.tokens));
    if (tokens_ > most && model_.spec.more_entries > 0) {
      const JsonValue* at = config.find({"max_position_embeddings", "n_positions", "n_ctx"});
      config.fail(at != nullptr ? *at : config.object(), "max_position_embeddings",
                  fmt::format("the model has {} positions, fewer than the {} tokens asked for", most, tokens_));
    }
  }

  void check_sizes() const {
    const ModelTable table = table_of(model_.spec);
    if (table.parameters() <= kMostParameters && table.macs() <= kMostTotal) return;
    root_.fail(
        root_.object(), "",
        "its sizes make a model that is larger than any: more than 2^50 parameters or 2^60 multiply-accumulates");
  }

  ConfigValues root_;
  std::int64_t tokens_;
  HuggingFaceModel model_;
};

}  // namespace

HuggingFaceModel read_hugging_face(const JsonValue& document, const std::string& file, std::int64_t tokens) {
  return Reader(document, file, tokens).read();
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> known;
  for (const DecoderFamily& family : decoder_families()) known.emplace_back(family.name);
  for (const EncoderFamily& family : encoder_families()) known.emplace_back(family.name);
  for (const Composite& composite : kComposites) known.emplace_back(composite.name);
  std::sort(known.begin(), known.end());
  return known;
}

}  // namespace tandem
