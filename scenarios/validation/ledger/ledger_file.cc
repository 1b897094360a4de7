#include "scenarios/validation/ledger/ledger_file.h"

#include "reports/nccl_tests/nccl_tests_json.h"
#include "topologies/base/strict_yaml.h"

namespace tandem::validation {
namespace {

constexpr int kMostNodes = 1 << 20;
constexpr int kMostDevicesOfNode = 1 << 10;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 40;

LedgerRow read_row(const YamlReader& reader, const std::string& benchmark) {
  LedgerRow row{.benchmark = benchmark,
                .round = reader.required("round").text(),
                .submitter = reader.required("org").text(),
                .system = reader.required("system").text(),
                .accelerator = reader.required("accelerator").text(),
                .network = reader.optional("network").text(),
                .nodes = reader.required("nodes").integer(0, kMostNodes, 1),
                .devices_of_node = reader.required("per_node").integer(0, kMostDevicesOfNode, 1),
                .batch = reader.required("global_batch").whole_number(0, kMostBatch, 1),
                .step_s = reader.required("step_s").number({.least = 0}),
                .configuration = reader.optional("config").text()};
  for (const auto& [name, value] : reader.optional("settings").entries()) {
    if (value.is_scalar() && !value.node()->text.empty()) row.settings[name] = value.node()->text;
  }
  row.place = {.line = reader.line(), .column = reader.column()};
  return row;
}

}  // namespace

std::vector<LedgerRow> parse_ledger(std::string_view text, const std::string& file) {
  check_json(text, file);
  const YamlDocument document = YamlDocument::parse(text, file);
  Diagnostics problems;
  const YamlReader root(document, problems);
  const std::string benchmark = root.required("benchmark").text();
  const std::vector<YamlReader> entries = root.required("rows").list();
  if (entries.empty() && problems.empty()) root.error("holds no rows");
  std::vector<LedgerRow> rows;
  for (const YamlReader& entry : entries) rows.push_back(read_row(entry, benchmark));
  problems.throw_if_any();
  return rows;
}

bool is_ledger_file(std::string_view text) {
  const auto has = [&](std::string_view key) { return text.find(key) != text.npos; };
  return has("\"benchmark\"") && has("\"step_s\"") && !has("\"tables\"");
}

}  // namespace tandem::validation
