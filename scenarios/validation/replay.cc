#include "scenarios/validation/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/engine_info.h"
#include "scenarios/collectives/collective_job.h"
#include "scenarios/estimates/expected_error.h"
#include "scenarios/validation/rules.h"

namespace tandem::validation {
namespace {

CollectiveResult simulate(const CollectiveTable& table, const ReplayMachine& machine) {
  CollectiveJob job;
  job.engine = model_engine().name;
  job.topology = machine.topology;
  job.device_type = DeviceType::gpu;
  job.workers = machine.nodes;
  job.devices = table.devices / machine.nodes;
  job.nccl = machine.nccl_of_job(job.devices, table.nccl_version);
  CollectiveSweep sweep;
  sweep.kind = *kind_of_operation(table.operation);
  sweep.dtype = *dtype_of_nccl(table.dtype);
  sweep.reduction = reduction_of_nccl(table.redop).value_or(Reduction::sum);
  sweep.warmup = 0;
  sweep.iterations = 1;
  for (const CollectiveRow& row : table.rows) sweep.sizes.push_back(row.bytes);
  return run_collective(job, sweep);
}

// The rows of one measured table, each with the simulated time of its size, which the sweep rounds down.
std::vector<ReplayedRow> rows_beside(const CollectiveTable& measured, const CollectiveTable& simulated) {
  std::map<std::int64_t, const CollectiveRow*> by_bytes;
  for (const CollectiveRow& row : simulated.rows) by_bytes[row.bytes] = &row;
  std::vector<ReplayedRow> rows;
  for (const CollectiveRow& row : measured.rows) {
    const auto after = by_bytes.upper_bound(row.bytes);
    if (after == by_bytes.begin()) continue;  // less than an element of each rank
    const CollectiveRow& model = *std::prev(after)->second;
    rows.push_back({row.bytes, row.time_us(), model.time_us(), model.algorithm});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ReplayedRow& a, const ReplayedRow& b) { return a.bytes < b.bytes; });
  return rows;
}

ReplayedTable replayed(const MeasurementFile& file, const MeasuredTable& measured) {
  const ReplayMachine& machine = *measured.machine;
  ReplayedTable table;
  table.file = file.file;
  table.site = file.site.empty() ? file.file : file.site;
  table.group = collective_group(*machine.topology, machine.nodes);
  table.family = machine.family();
  table.node = machine.node;
  table.operation = measured.table.operation;
  table.dtype = measured.table.dtype;
  table.devices = measured.table.devices;
  table.nodes = machine.nodes;
  table.apart = apart_by(machine);
  table.rows = rows_beside(measured.table, simulate(measured.table, machine).table);
  return table;
}

}  // namespace

Replay replay_collectives(const std::vector<MeasurementFile>& files, const std::function<void(int, int)>& progress) {
  Replay replay;
  int total = 0;
  for (const MeasurementFile& file : files) total += static_cast<int>(file.tables.size());
  int done = 0;
  for (const MeasurementFile& file : files) {
    for (const MeasuredTable& table : file.tables) {
      if (const std::string why = left_out_by(file, table); !why.empty()) {
        const bool is_known =
            !replay.left_out.empty() && replay.left_out.back().file == file.file && replay.left_out.back().why == why;
        if (!is_known) replay.left_out.push_back({file.file, why});
      } else {
        replay.tables.push_back(replayed(file, table));
      }
      if (progress) progress(++done, total);
    }
  }
  return replay;
}

}  // namespace tandem::validation
