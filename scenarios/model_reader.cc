#include <algorithm>

#include "scenarios/model.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
constexpr int kMostPasses = 64;

Layer::Gemm read_gemm(const YamlReader& map) {
  Layer::Gemm gemm;
  gemm.rows = map.required("rows").whole_number(1, kMostElements, 1);
  gemm.columns = map.required("columns").whole_number(1, kMostElements, 1);
  gemm.depth = map.required("depth").whole_number(1, kMostElements, 1);
  gemm.count = map.optional("count").whole_number(1, kMostElements, 1);
  gemm.input_elements = map.optional("input").whole_number(1, kMostElements, gemm.rows * gemm.depth);
  gemm.batched = map.optional("batched").boolean(false);
  if (gemm.count > 1 && !gemm.batched && map.optional("count").present()) {
    map.optional("count").error("is for batched products; give the rows of all of them instead");
  }
  return gemm;
}

Layer::Elementwise read_elementwise(const YamlReader& map) {
  Layer::Elementwise elementwise;
  elementwise.elements = map.required("elements").whole_number(1, kMostElements, 1);
  // A single pass would read or write nothing useful: an op takes two or three.
  elementwise.forward_passes = map.required("forward").integer(2, kMostPasses, 2);
  elementwise.backward_passes = map.required("backward").integer(2, kMostPasses, 2);
  return elementwise;
}

Layer read_layer(const YamlReader& map) {
  Layer layer;
  layer.name = map.required("name").text();
  map.exactly_one_of({"gemm", "elementwise"});
  if (const YamlReader gemm = map.optional("gemm")) layer.gemm = read_gemm(gemm);
  if (const YamlReader elementwise = map.optional("elementwise")) layer.elementwise = read_elementwise(elementwise);
  const YamlReader parameters = map.optional("parameters");
  layer.parameters = parameters.whole_number(0, kMostElements, 0);
  if (layer.gemm && layer.gemm->batched && layer.parameters > 0) {
    parameters.error("a batched product has two operands of the example, and no parameters");
  }
  return layer;
}

// Expands `repeat: n` with `layers:` into n copies, named "encoder.0.query" and so on.
void read_group(const YamlReader& map, std::vector<Layer>& layers) {
  const std::string name = map.required("name").text();
  const int repeat = map.required("repeat").integer(1, 10000, 1);
  std::vector<Layer> group;
  for (const YamlReader& layer : map.required("layers").list()) group.push_back(read_layer(layer));
  for (int i = 0; i < repeat; ++i) {
    for (Layer layer : group) {
      layer.name = name + "." + std::to_string(i) + "." + layer.name;
      layers.push_back(std::move(layer));
    }
  }
}

// Compares the totals that a file states with those of its layers, to catch a slip in one of them.
void check_total(const YamlReader& stated, std::int64_t found, const char* what) {
  const std::int64_t value = stated.whole_number(0, kMostElements * 1024, found);
  if (value != found) {
    stated.error("states " + std::to_string(value) + " " + what + ", the layers have " + std::to_string(found));
  }
}

}  // namespace

Model read_model(const std::filesystem::path& path) {
  const YamlDocument document = YamlDocument::load(path);
  Diagnostics problems;
  const YamlReader root(document, problems);
  Model model;
  const YamlReader version = root.required("schema_version");
  const int value = version.integer(1, 1 << 30, 1);
  if (value > 1) version.error("schema version " + std::to_string(value) + " is newer than this tandem reads (1)");
  model.name = root.required("name").text();
  model.source = root.required("source").text();
  model.unit = root.optional("unit").text("examples");
  model.input_elements = root.required("input").whole_number(1, kMostElements, 1);
  const YamlReader layers = root.required("layers");
  for (const YamlReader& layer : layers.list()) {
    if (layer.is_map() && layer.has("layers")) {
      read_group(layer, model.layers);
    } else {
      model.layers.push_back(read_layer(layer));
    }
  }
  const bool has_gemm = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& l) { return !!l.gemm; });
  if (layers.is_list() && !has_gemm) layers.error("needs at least one layer with a gemm");
  if (problems.empty()) {
    check_total(root.required("parameters"), model.parameters(), "parameters");
    check_total(root.required("macs"), model.forward_macs(), "multiply-accumulates");
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

std::int64_t Layer::forward_macs() const {
  return gemm ? gemm->rows * gemm->columns * gemm->depth * gemm->count : 0;
}

std::int64_t Layer::output_elements() const {
  return gemm ? gemm->rows * gemm->columns * gemm->count : elementwise->elements;
}

namespace {
template <typename Of>
std::int64_t total(const std::vector<Layer>& layers, Of of) {
  std::int64_t sum = 0;
  for (const Layer& layer : layers) sum += of(layer);
  return sum;
}
}  // namespace

std::int64_t Model::parameters() const {
  return total(layers, [](const Layer& layer) { return layer.parameters; });
}

std::int64_t Model::forward_macs() const {
  return total(layers, [](const Layer& layer) { return layer.forward_macs(); });
}

std::int64_t Model::output_elements() const {
  return total(layers, [](const Layer& layer) { return layer.output_elements(); });
}

}  // namespace tandem
