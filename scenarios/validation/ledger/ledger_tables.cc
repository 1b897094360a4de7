#include "scenarios/validation/ledger/ledger_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "scenarios/validation/ledger/ledger_job.h"

namespace tandem::validation {
namespace {

using Json = nlohmann::ordered_json;

// Submitter, accelerator and round.
using Series = std::tuple<std::string, std::string, std::string>;

Json row_of(const LedgerRow& row, const LedgerJob& job) {
  return {{"devices", row.devices()},
          {"nodes", row.nodes},
          {"throughput", static_cast<double>(row.batch) / row.step_s},
          {"workload", job.workload},
          {"strategy", job.strategy}};
}

// A file of one table, whose only row is the result.
std::string training_file(const LedgerRow& stated) {
  const LedgerRow row = as_trained(stated);
  const LedgerJob job = job_of(row);
  const Json table{{"topology", machine_of(row)}, {"workload", job.workload}, {"rows", {row_of(row, job)}}};
  const Json file{{"source", {{"title", row.submitter}}},
                  {"unit", "examples/s"},
                  {"strategy", job.strategy.at("name")},
                  {"tables", {table}}};
  return file.dump();
}

// Adds a row to its series.
class Tables {
 public:
  explicit Tables(std::string file) : file_(std::move(file)) {}

  void add(const LedgerRow& row) {
    if (row.devices() == 0 || row.batch == 0 || row.step_s <= 0)
      return leave_out("it states no devices, no batch or no time of a step");
    // Later rounds repeat results of earlier ones, and a measurement of power those of the same runs.
    const auto [known, is_new] =
        known_.try_emplace({row.submitter, row.accelerator, row.devices(), row.batch, row.step_s}, row.round);
    if (!is_new) {
      return leave_out(known->second != row.round ? "an earlier round has the same result"
                                                  : "another system of the round has the same result");
    }
    try {
      TrainingTable table = parse_training(training_file(row), file_).front();
      table.rows.front().place = row.place;
      table.rows.front().name = fmt::format("{} {} {}", row.round, row.submitter, row.system);
      std::vector<TrainingTable>& series = series_[{row.submitter, row.accelerator, row.round}];
      series.push_back(std::move(table));
    } catch (const NotPredicted& reason) {
      leave_out(reason.why());
    } catch (const InputError& error) {  // what the strategy or the machine refuses
      leave_out(error.diagnostics().front().message);
    }
  }

  LedgerTables finish() {
    LedgerTables all;
    for (auto& [key, tables] : series_) all.tables.push_back(together(tables));
    std::vector<std::pair<int, std::string>> reasons;
    for (const auto& [why, count] : reasons_) reasons.emplace_back(-count, why);
    std::ranges::sort(reasons);
    for (const auto& [count, why] : reasons)
      all.left_out.push_back({file_, fmt::format("{} row{}: {}", -count, count == -1 ? "" : "s", why)});
    return all;
  }

 private:
  void leave_out(const std::string& why) { ++reasons_[why]; }

  static TrainingTable together(std::vector<TrainingTable>& tables) {
    std::ranges::stable_sort(tables, {}, [](const TrainingTable& table) { return table.rows.front().devices; });
    TrainingTable all = std::move(tables.front());
    for (std::size_t i = 1; i < tables.size(); ++i) all.rows.push_back(std::move(tables[i].rows.front()));
    return all;
  }

  std::string file_;
  std::map<Series, std::vector<TrainingTable>> series_{};
  // The rounds of results by submitter, accelerator, devices, batch and time.
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t, double>, std::string> known_{};
  std::map<std::string, int> reasons_{};
};

}  // namespace

LedgerTables tables_of_ledger(const std::vector<LedgerRow>& rows, const std::string& file) {
  Tables tables(file);
  for (const LedgerRow& row : rows) tables.add(row);
  return tables.finish();
}

}  // namespace tandem::validation
