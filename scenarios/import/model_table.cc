#include "scenarios/import/model_table.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
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

std::string row_text(const TableRow& row) {
  std::string text = fmt::format("{{name: {}, {}", row.name, row.form);
  if (!row.split.empty()) text += fmt::format(", split: {}", row.split);
  if (row.norm_size > 0) text += fmt::format(", norm_size: {}", row.norm_size);
  if (!row.then.empty()) text += fmt::format(", then: [{}]", fmt::join(row.then, ", "));
  return text + "}\n";
}

}  // namespace

std::string TableSize::text() const {
  if (factor == 0) return std::to_string(number);
  return factor == 1 ? "tokens" : fmt::format("{} * tokens", factor);
}

std::int64_t TableRow::parameters() const {
  std::int64_t sum = weights;
  for (const std::string& operation : then) {
    sum = plus(sum, times(tensors_of(operation), operation != "bias" && norm_size > 0 ? norm_size : columns));
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
    return row.parameters() - std::llround(static_cast<double>(row.weights) * (1 - row.used_weights));
  });
}

std::int64_t ModelTable::macs() const {
  return total(groups, [](const TableRow& row) { return row.macs; });
}

std::string ModelTable::yaml() const {
  std::string text;
  for (const std::string& comment : comments) text += "# " + comment + "\n";
  text +=
      fmt::format("schema_version: 1\nname: {}\nsource: {}\nunit: {}\n", yaml_text(name_), yaml_text(source_), unit);
  text += "stack: {fusion: hand, attention: flash}\n";
  if (has_tokens) text += fmt::format("sizes: {{tokens: {}}}\n", tokens_);
  text += fmt::format("input: {}\n", input > 0 ? std::to_string(input) : "tokens");
  text += fmt::format("parameters: {}\nmacs: {}\nlayers:\n", parameters(), macs());
  for (const TableGroup& group : groups) {
    if (group.name.empty()) {
      for (const TableRow& row : group.rows) text += "  - " + row_text(row);
      continue;
    }
    text += fmt::format("  - name: {}\n", group.name);
    if (group.first > 0) text += fmt::format("    first: {}\n", group.first);
    text += fmt::format("    repeat: {}\n    layers:\n", group.copies);
    for (const TableRow& row : group.rows) text += "      - " + row_text(row);
  }
  return text;
}

TableRow dense_row(const DenseRow& row, std::int64_t tokens) {
  std::string form =
      fmt::format("dense: {{rows: {}, inputs: {}, outputs: {}", row.rows.text(), row.inputs, row.outputs);
  if (row.experts > 1) form += fmt::format(", experts: {}", row.experts);
  form += row.shared_weights ? ", shared_weights: true}" : "}";
  return {.name = row.name,
          .form = form,
          .then = row.then,
          .split = row.split,
          .columns = row.outputs,
          .norm_size = row.norm_size,
          .weights = row.shared_weights ? 0 : product({row.experts, row.inputs, row.outputs}),
          .macs = product({row.rows.at(tokens), row.inputs, row.outputs}),
          .used_weights = static_cast<double>(row.used_experts) / static_cast<double>(row.experts)};
}

TableRow embedding_row(const std::string& name, TableSize rows, std::int64_t columns, std::int64_t entries,
                       std::vector<std::string> then, std::int64_t) {
  return {.name = name,
          .form = fmt::format("embedding: {{rows: {}, columns: {}, entries: {}}}", rows.text(), columns, entries),
          .then = std::move(then),
          .split = "entries",
          .columns = columns,
          .weights = entries * columns};
}

TableRow elementwise_row(const std::string& name, TableSize elements, int forward, int backward,
                         std::int64_t parameters) {
  std::string form =
      fmt::format("elementwise: {{elements: {}, forward: {}, backward: {}}}", elements.text(), forward, backward);
  if (parameters > 0) form += fmt::format(", parameters: {}", parameters);
  return {.name = name, .form = form, .weights = parameters};
}

TableRow batched_row(const BatchedRow& row, std::int64_t tokens) {
  std::string form = fmt::format("gemm: {{rows: {}, columns: {}, depth: {}, count: {}, batched: true", row.rows.text(),
                                 row.columns.text(), row.depth.text(), row.count);
  form += row.sharing > 1 ? fmt::format(", sharing: {}}}", row.sharing) : "}";
  return {.name = row.name,
          .form = form,
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
          .form = fmt::format("dense: {{rows: {}, inputs: {}, outputs: {}}}", patches, depth, width),
          .then = std::move(then),
          .columns = width,
          .weights = depth * width,
          .macs = product({patches, depth, width})};
}

std::string yaml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

}  // namespace tandem
