#include "scenarios/model/model_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/import/base/input_file.h"
#include "scenarios/import/import.h"
#include "scenarios/model/layer_reader.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

// Compares the totals that a file states with those of its layers, to catch a slip in either. If a scenario replaces
// sizes, the totals differ and are not compared.
void check_total(const YamlReader& stated, std::int64_t found, const char* what, bool is_as_in_file) {
  const std::int64_t value = stated.whole_number(0, std::int64_t{1} << 60, found);
  if (is_as_in_file && value != found) {
    stated.error(fmt::format("states {} {}, the layers have {}", value, what, found));
  }
}

// Configurations of other programs are read as the tables of their layers.
YamlDocument model_document(const InputFile& file, const std::map<std::string, std::int64_t>& chosen) {
  if (file.kind() == ImportKind::scenario) return YamlDocument::parse(file.text(), file.name());
  const auto tokens = chosen.find("tokens");
  return YamlDocument::parse(model_file_of(file, tokens == chosen.end() ? 0 : tokens->second), file.name());
}

}  // namespace

Model read_model(const std::filesystem::path& path, const std::map<std::string, std::int64_t>& chosen) {
  return read_model(InputFile(path), chosen);
}

Model read_model(const InputFile& file, const std::map<std::string, std::int64_t>& chosen) {
  const YamlDocument document = model_document(file, chosen);
  Diagnostics problems;
  const YamlReader root(document, problems);
  Model model;
  const YamlReader version = root.required("schema_version");
  const int value = version.integer(1, 1 << 30, 1);
  if (value > 1) version.error(fmt::format("schema version {} is newer than this tandem reads (1)", value));
  model.name = root.required("name").text();
  model.source = root.required("source").text();
  model.unit = root.optional("unit").text("examples");
  model.is_recurrent = root.optional("recurrent").boolean(false);
  model.stack = read_stack(root.optional("stack"), model.stack);
  const ModelSizes sizes(root.optional("sizes"), chosen);
  model.input_elements = sizes.read(root.required("input"), 1, kMostModelElements, 1);
  const YamlReader layers = root.required("layers");
  model.layers = read_model_layers(layers, sizes);
  const bool has_gemm = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& l) { return !!l.gemm; });
  if (layers.is_list() && !has_gemm) layers.error("needs at least one layer with a gemm, convolution or dense");
  if (problems.empty()) sizes.report_unused(root.optional("sizes"));
  if (problems.empty()) {
    const std::int64_t parameters = model.parameters() + model.frozen_parameters();
    check_total(root.required("parameters"), parameters, "parameters", sizes.is_as_in_file());
    check_total(root.required("macs"), model.forward_macs(), "multiply-accumulates", sizes.is_as_in_file());
  } else {
    root.required("parameters");
    root.required("macs");
  }
  root.finish();
  problems.throw_if_any();
  return model;
}

std::vector<std::string> packaged_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(find_data("scenarios/models"))) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tandem
