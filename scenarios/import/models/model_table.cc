#include "scenarios/import/models/model_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>

namespace tandem {
namespace {

// Returns how many tensors of a row's columns an operation adds (see layer_reader.cc).
int tensors_of(const std::string& operation) {
  if (operation == "bias" || operation == "rms_norm") return 1;
  return operation == "batch_norm" || operation == "layer_norm" ? 2 : 0;
}

// Multiplies sizes. A product that overflows becomes the largest number, which the caller refuses.
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) result = times(result, factor);
  return result;
}

template <typename Of>
std::int64_t total(const std::vector<TableGroup>& groups, Of of) {
  std::int64_t sum = 0;
  for (const TableGroup& group : groups) {
    for (const TableRow& row : group.rows) sum = plus(sum, times(group.copies, of(row)));
  }
  return sum;
}

YamlMap map_of(const TableRow& row) {
  YamlMap map;
  map.set("name", row.name).append(row.form);
  if (!row.split.empty()) map.set("split", row.split);
  if (row.norm_size > 0) map.set("norm_size", row.norm_size);
  if (!row.then.empty()) map.set("then", row.then);
  return map.on_one_line();
}

}  // namespace

std::string TableSize::text() const {
  if (factor == 0) return std::to_string(number);
  return factor == 1 ? "tokens" : fmt::format("{} * tokens", factor);
}

std::int64_t TableRow::parameters() const {
  std::int64_t sum = weights;
  for (const std::string& operation : then) {
    const bool is_bias = operation == "bias";
    const std::int64_t size = is_bias ? times(biases, columns) : norm_size > 0 ? norm_size : columns;
    sum = plus(sum, times(tensors_of(operation), size));
  }
  return sum;
}

ModelTable::ModelTable(std::string name, std::string source, std::int64_t tokens)
    : name_(std::move(name)), source_(std::move(source)), tokens_(tokens) {}

std::int64_t ModelTable::parameters() const {
  return total(groups, [](const TableRow& row) { return row.parameters(); });
}

std::int64_t ModelTable::used_parameters() const {
  return total(groups, [](const TableRow& row) {
    return row.parameters() - std::llround(static_cast<double>(row.parameters()) * (1 - row.used_weights));
  });
}

std::int64_t ModelTable::macs() const {
  return total(groups, [](const TableRow& row) { return row.macs; });
}

std::string ModelTable::yaml() const {
  YamlMap map;
  map.set("schema_version", 1).quote("name", name_).quote("source", source_).set("unit", unit);
  map.set("stack", YamlMap().set("fusion", "hand").set("attention", "flash"));
  if (has_tokens) map.set("sizes", YamlMap().set("tokens", tokens_));
  map.set("input", input > 0 ? std::to_string(input) : "tokens");
  map.set("parameters", parameters()).set("macs", macs());
  std::vector<YamlMap> layers;
  for (const TableGroup& group : groups) {
    std::vector<YamlMap> rows;
    std::ranges::transform(group.rows, std::back_inserter(rows), map_of);
    if (group.name.empty()) {
      layers.insert(layers.end(), rows.begin(), rows.end());
      continue;
    }
    YamlMap copies;
    copies.set("name", group.name);
    if (group.first > 0) copies.set("first", group.first);
    layers.push_back(copies.set("repeat", group.copies).list("layers", rows));
  }
  map.list("layers", layers);
  std::string text;
  for (const std::string& comment : comments) text += "# " + comment + "\n";
  return text + map.text();
}

TableRow dense_row(const DenseRow& row, std::int64_t tokens) {
  YamlMap form;
  form.set("rows", row.rows.text()).set("inputs", row.inputs).set("outputs", row.outputs);
  if (row.experts > 1) form.set("experts", row.experts);
  if (row.shared_weights) form.set("shared_weights", true);
  return {.name = row.name,
          .form = YamlMap().set("dense", form),
          .then = row.then,
          .split = row.split,
          .columns = row.outputs,
          .norm_size = row.norm_size,
          .weights = row.shared_weights ? 0 : product({row.experts, row.inputs, row.outputs}),
          .macs = product({row.rows.at(tokens), row.inputs, row.outputs}),
          .used_weights = static_cast<double>(row.used_experts) / static_cast<double>(row.experts),
          .biases = row.experts};
}

TableRow embedding_row(const std::string& name, TableSize rows, std::int64_t columns, std::int64_t entries,
                       std::vector<std::string> then, std::int64_t) {
  return {.name = name,
          .form = YamlMap().set("embedding",
                                YamlMap().set("rows", rows.text()).set("columns", columns).set("entries", entries)),
          .then = std::move(then),
          .split = "entries",
          .columns = columns,
          .weights = entries * columns};
}

TableRow routing_row(const std::string& way, const RoutingRow& row, std::vector<std::string> then) {
  YamlMap form;
  form.set("rows", row.rows.text()).set("columns", row.columns).set("used", row.used_experts);
  return {.name = way, .form = YamlMap().set(way, form), .then = std::move(then), .columns = row.columns};
}

TableRow elementwise_row(const std::string& name, TableSize elements, int forward, int backward,
                         std::int64_t parameters) {
  YamlMap form;
  form.set("elementwise", YamlMap().set("elements", elements.text()).set("forward", forward).set("backward", backward));
  if (parameters > 0) form.set("parameters", parameters);
  return {.name = name, .form = form, .weights = parameters};
}

TableRow batched_row(const BatchedRow& row, std::int64_t tokens) {
  YamlMap form;
  form.set("rows", row.rows.text()).set("columns", row.columns.text()).set("depth", row.depth.text());
  form.set("count", row.count).set("batched", true);
  if (row.causal) form.set("causal", true);
  if (row.sharing > 1) form.set("sharing", row.sharing);
  return {.name = row.name,
          .form = YamlMap().set("gemm", form),
          .then = row.then,
          .split = "count",
          .columns = row.columns.at(tokens),
          .macs = product({row.rows.at(tokens), row.columns.at(tokens), row.depth.at(tokens), row.count})};
}

TableRow patches_row(const std::string& name, std::int64_t image, std::int64_t channels, std::int64_t width,
                     std::int64_t patch, std::vector<std::string> then) {
  const std::int64_t patches = (image / patch) * (image / patch);
  const std::int64_t depth = channels * patch * patch;
  return {.name = name,
          .form = YamlMap().set("dense", YamlMap().set("rows", patches).set("inputs", depth).set("outputs", width)),
          .then = std::move(then),
          .columns = width,
          .weights = depth * width,
          .macs = product({patches, depth, width})};
}

}  // namespace tandem
