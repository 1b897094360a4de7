// A table of layers as model files have it (docs/workloads.md), with its totals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/yaml_writer.h"

namespace tandem {

// A number of rows or elements that may depend on the size `tokens`: factor x tokens, or a number.
struct TableSize {
  std::int64_t factor = 0;
  std::int64_t number = 0;
  std::int64_t at(std::int64_t tokens) const { return factor > 0 ? factor * tokens : number; }
  std::string text() const;
  TableSize times(std::int64_t by) const { return {factor * by, number * by}; }
};

struct TableRow {
  std::string name;
  YamlMap form;                     // {dense: {rows: tokens, ...}}
  std::vector<std::string> then{};  // operations on the output
  std::string split{};              // empty: none
  std::int64_t columns = 0;         // of the output
  std::int64_t norm_size = 0;       // of a norm's parameters, where they are not `columns`
  std::int64_t weights = 0;         // parameters but those of `then`
  std::int64_t macs = 0;            // of one example
  double used_weights = 1;          // share of the parameters that one token uses
  std::int64_t biases = 1;          // of a bias in `then`: one for each expert

  std::int64_t parameters() const;
};

// Rows, or copies of rows.
struct TableGroup {
  std::string name{};  // empty: no copies
  std::int64_t first = 0, copies = 1;
  std::vector<TableRow> rows{};
};

class ModelTable {
 public:
  ModelTable(std::string name, std::string source, std::int64_t tokens);

  std::int64_t tokens() const { return tokens_; }
  const std::string& name() const { return name_; }
  std::int64_t parameters() const;
  std::int64_t used_parameters() const;  // those that one token passes through
  std::int64_t macs() const;
  std::string yaml() const;

  std::string unit = "sequences";
  bool has_tokens = true;  // whether `tokens` is a size of the file
  std::int64_t input = 0;  // elements of an example; 0: tokens
  std::vector<std::string> comments{};
  std::vector<TableGroup> groups{};

 private:
  std::string name_, source_;
  std::int64_t tokens_;
};

// The forms of layers. `rows` and other numbers are those of one example.
struct DenseRow {
  std::string name;
  TableSize rows;
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t experts = 1;
  std::int64_t used_experts = 1;  // by a token
  bool shared_weights = false;
  std::vector<std::string> then{};
  std::string split{};
  std::int64_t norm_size = 0;
};
TableRow dense_row(const DenseRow& row, std::int64_t tokens);
TableRow embedding_row(const std::string& name, TableSize rows, std::int64_t columns, std::int64_t entries,
                       std::vector<std::string> then, std::int64_t tokens);
// Makes the row of what surrounds experts: "dispatch" or "combine".
struct RoutingRow {
  TableSize rows;
  std::int64_t columns = 0;
  std::int64_t used_experts = 1;  // by a token
};
TableRow routing_row(const std::string& way, const RoutingRow& row, std::vector<std::string> then);
// Makes the row of work that reads and writes every element, with parameters of its own.
TableRow elementwise_row(const std::string& name, TableSize elements, int forward, int backward,
                         std::int64_t parameters);
// Products of operands that both belong to the example.
struct BatchedRow {
  std::string name;
  TableSize rows, columns, depth;
  std::int64_t count = 1;
  std::int64_t sharing = 1;  // products that have one right operand
  bool causal = false;
  std::vector<std::string> then{};
};
TableRow batched_row(const BatchedRow& row, std::int64_t tokens);
// Makes the row of an image's patches, each of which is a row of its input.
TableRow patches_row(const std::string& name, std::int64_t image, std::int64_t channels, std::int64_t width,
                     std::int64_t patch, std::vector<std::string> then);

}  // namespace tandem
