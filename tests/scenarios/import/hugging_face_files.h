// Configurations of Hugging Face for tests, and what becomes of them.
#pragma once

#include <map>
#include <string>

#include "scenarios/import/models/hugging_face.h"
#include "scenarios/import/models/model_table.h"
#include "scenarios/model/model_reader.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {

class HuggingFaceFiles : public ImportFiles {
 protected:
  static ModelTable table(const JsonValue& config, std::int64_t tokens = 0) {
    return table_of(read_hugging_face(config, "config.json", tokens).spec);
  }
  Model model(const std::string& config, const std::map<std::string, std::int64_t>& sizes = {}) const {
    return read_model(write("config.json", config), sizes);
  }
  std::string problem(const std::string& config) const {
    return refusal([&] { model(config); });
  }

  // A Llama of two small blocks.
  static constexpr const char* kSmall =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 100,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "torch_dtype": "bfloat16"})";
};

}  // namespace tandem
