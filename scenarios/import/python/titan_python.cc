#include "scenarios/import/python/titan_python.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "scenarios/import/python/python_config.h"

namespace tandem {
namespace {

// Sections of the TOML files that have the same names as arguments of Trainer.Config.
constexpr std::array<std::string_view, 7> kSections{
    "training", "parallelism", "activation_checkpoint", "compile", "optimizer", "experimental", "debug"};

// Other arguments that are read here, and those that change nothing of a step's time.
constexpr std::array<std::string_view, 17> kKnownArguments{
    "checkpoint", "comm",     "dataloader", "dump_folder", "fault_tolerance", "hf_assets_path",
    "job",        "loss",     "metrics",    "model",       "lr_scheduler",    "model_converters",
    "model_spec", "profiler", "profiling",  "tokenizer",   "validator"};

std::string toml_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    if (code < 0x20 || code == 0x7f) {
      quoted += fmt::format("\\u{:04x}", code);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Returns a literal as TOML; nothing for what TOML has no word for.
std::string toml_of(const PythonValue& value) {
  switch (value.kind) {
    case PythonValue::Kind::boolean:
      return value.text == "True" ? "true" : "false";
    case PythonValue::Kind::whole:
      return value.text;
    case PythonValue::Kind::real:
      return value.text.starts_with('.') || value.text.ends_with('.') ? "" : value.text;
    case PythonValue::Kind::text:
      return toml_text(value.text);
    case PythonValue::Kind::list: {
      std::vector<std::string> items;
      for (const PythonValue& item : value.items) {
        if (item.kind == PythonValue::Kind::text) items.push_back(toml_text(item.text));
      }
      return items.size() == value.items.size() ? fmt::format("[{}]", fmt::join(items, ", ")) : "";
    }
    case PythonValue::Kind::none:
    case PythonValue::Kind::call:
    case PythonValue::Kind::unread:
      break;
  }
  return "";
}

class TitanToml {
 public:
  TitanToml(const PythonConfig& config, const std::filesystem::path& file) : config_(config) {
    // torchtitan/models/llama3/config_registry.py has llama3_8b; elsewhere the function's name says the model.
    const std::filesystem::path folder = file.parent_path();
    if (folder.parent_path().filename() == "models") model_name_ = folder.filename().string();
    if (model_name_.empty()) model_name_ = config.name.substr(0, config.name.find('_'));
  }

  TitanPython make() && {
    model();
    for (const std::string_view section : kSections) {
      line(fmt::format("[{}]", section), config_.value);
      const PythonValue* const value = config_.value.find(section);
      if (value != nullptr) keys(section, *value);
      const bool is_in_backward = value != nullptr && value->text.find("InBackward") != std::string::npos;
      if (section == "optimizer" && is_in_backward && value->find("early_step_in_backward") == nullptr) {
        line("early_step_in_backward = true", *value);
      }
      // Later versions choose by operation only, and have no option for it.
      const bool is_selective = section == "activation_checkpoint" && value != nullptr &&
                                value->kind == PythonValue::Kind::call && value->find("selective_ac_option") == nullptr;
      if (is_selective) line("selective_ac_option = \"op\"", *value);
    }
    name_unknown();
    for (const std::string& statement : config_.skipped) {
      made_.left_out.push_back(fmt::format("{} ...: what this statement changes", statement));
    }
    return std::move(made_);
  }

 private:
  void line(const std::string& text, const PythonValue& at) {
    made_.toml += text + "\n";
    made_.places.push_back({.line = at.line, .column = at.column});
  }

  // A section is a call of its class by keywords; None is one without keys.
  void keys(std::string_view section, const PythonValue& value) {
    const bool is_section =
        value.kind == PythonValue::Kind::call && value.items.empty() && value.text.find("Config") != std::string::npos;
    const bool is_made = value.kind == PythonValue::Kind::call && value.text.empty();  // by assignments to its keys
    if (!is_section && !is_made && value.kind != PythonValue::Kind::none) {
      made_.unread[std::string(section)] = {.line = value.line, .column = value.column};
    }
    for (const PythonArgument& argument : value.arguments) key(section, argument.name, argument.value);
  }

  void key(std::string_view section, std::string_view name, const PythonValue& value) {
    if (value.kind == PythonValue::Kind::none) return;
    if (const std::string text = toml_of(value); !text.empty()) {
      line(fmt::format("{} = {}", name, text), value);
    } else {
      made_.unread[fmt::format("{}.{}", section, name)] = {.line = value.line, .column = value.column};
    }
  }

  // model_spec=model_registry("8B"), or in some versions model=ModelConfig(name="llama3", flavor="8B").
  void model() {
    line("[model]", config_.value);
    const PythonValue* const spec = config_.value.find("model_spec");
    const PythonValue* const older = config_.value.find("model");
    if (spec != nullptr) {
      line(fmt::format("name = {}", toml_text(model_name_)), *spec);
      const PythonValue* flavor = spec->items.empty() ? spec->find("flavor") : &spec->items.front();
      if (flavor == nullptr || spec->kind != PythonValue::Kind::call) flavor = spec;
      key("model", "flavor", flavor->kind == PythonValue::Kind::text ? *flavor : unread_at(*flavor));
    } else if (older != nullptr) {
      keys("model", *older);
    }
    const bool has_assets = spec == nullptr && older != nullptr && older->find("hf_assets_path") != nullptr;
    const PythonValue* const assets = config_.value.find("hf_assets_path");
    if (assets != nullptr && !has_assets) key("model", "hf_assets_path", *assets);
    converters();
  }

  void name_unknown() {
    for (const PythonArgument& argument : config_.value.arguments) {
      if (std::ranges::count(kSections, argument.name) + std::ranges::count(kKnownArguments, argument.name) > 0)
        continue;
      made_.left_out.push_back(fmt::format("{}:{}: {}: not known here; what it changes is left out",
                                           argument.value.line, argument.value.column, argument.name));
    }
  }

  static PythonValue unread_at(const PythonValue& at) {
    return {.arguments = {}, .line = at.line, .column = at.column};
  }

  // Each is a call: Float8LinearConverter.Config(...), MXFP8Converter.Config(...).
  void converters() {
    const PythonValue* const container = config_.value.find("model_converters");
    if (container == nullptr || container->kind == PythonValue::Kind::none) return;
    const PythonValue* const list = container->find("converters");
    const auto is_call = [](const PythonValue& one) { return one.kind == PythonValue::Kind::call; };
    if (list == nullptr || list->kind != PythonValue::Kind::list || !std::ranges::all_of(list->items, is_call)) {
      const PythonValue& at = list == nullptr ? *container : *list;
      made_.unread["model.converters"] = {.line = at.line, .column = at.column};
      return;
    }
    std::vector<std::string> names;
    const PythonValue* float8 = nullptr;
    for (const PythonValue& one : list->items) {
      names.push_back(toml_text(one.text.find("MX") != std::string::npos       ? "mx"
                                : one.text.find("Float8") != std::string::npos ? "float8"
                                                                               : one.text));
      if (names.back() == "\"float8\"") float8 = &one;
    }
    line(fmt::format("converters = [{}]", fmt::join(names, ", ")), *list);
    if (float8 == nullptr) return;
    line("[float8]", *float8);
    keys("float8", *float8);
  }

  const PythonConfig& config_;
  std::string model_name_;
  TitanPython made_;
};

}  // namespace

bool is_titan_python(std::string_view text) {
  const auto has = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
  return has("torchtitan") && has("import") && (has("Trainer.Config(") || has("JobConfig("));
}

TitanPython read_titan_python(const InputFile& file, const std::string& name) {
  const PythonConfig config = read_python_config(file.text(), file.name(), name);
  return TitanToml(config, file.path()).make();
}

}  // namespace tandem
