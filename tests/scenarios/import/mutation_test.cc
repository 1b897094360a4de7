// Files with bytes changed, left out and repeated: each is read, or refused with a message.
#include <random>

#include "scenarios/import/traces/chakra.h"
#include "scenarios/import/traces/trace.h"
#include "scenarios/scenario/scenario.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

constexpr int kMutations = 400;

std::string mutated(std::string text, std::mt19937& random) {
  static const std::vector<std::string> words{"-1", "1e999",    "null", "[", "{", "\"", "99999999999999999999",
                                              "0",  "\xff\xff", ""};
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (std::size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
    const std::size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, below(40));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), below(60)));
        break;
      case 3:
        text.replace(at, below(6), words[below(words.size())]);
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

class Mutations : public ImportFiles {
 protected:
  static std::string example(const std::string& name) {
    std::ifstream in(std::string(TANDEM_SOURCE_DIR) + "/docs/examples/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Reads each mutation; counts those that are read.
  int survivors(const std::string& name, const std::string& text, unsigned seed) {
    std::mt19937 random(seed);
    int read = 0;
    for (int i = 0; i < kMutations; ++i) {
      const auto file = write(name, mutated(text, random));
      try {
        import_file(file, {}, "");
        ++read;
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()), "");
      }
    }
    return read;
  }
};

TEST_F(Mutations, OfConfigurations) {
  const std::string text = example("config.json");
  EXPECT_GT(survivors("config.json", text, 1), 0);
  const std::string gemma = R"({"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "hidden_size": 64,
    "intermediate_size": 96, "vocab_size": 100, "num_hidden_layers": 6, "num_attention_heads": 4, "head_dim": 16,
    "num_key_value_heads": 2, "enable_moe_block": true, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 8,
    "layer_types": ["sliding_attention", "full_attention"]}, "vision_config": {"model_type": "gemma4_vision",
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "patch_size": 16}})";
  EXPECT_GT(survivors("config.json", gemma, 2), 0);
}

TEST_F(Mutations, OfArguments) {
  EXPECT_GT(survivors("train.sh", example("train.sh"), 3), 0);
}

TEST_F(Mutations, OfTraces) {
  EXPECT_GT(survivors("trace.json", example("trace.json"), 4), 0);
  EXPECT_GT(survivors("job.0.json", example("job.0.json"), 5), 0);
}

TEST_F(Mutations, OfMessages) {
  const std::string bytes(
      "\x07\x0a\x05"
      "0.0.4"
      "\x1a\x08\x01\x12\x03sum\x18\x07\x52\x0e\x0a\x09"
      "comm_size"
      "H\x80\x20",
      34);
  survivors("job.0.et", bytes, 6);
}

}  // namespace
}  // namespace tandem
