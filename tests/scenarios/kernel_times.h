// Published times of single kernels (tests/validation/kernels), and what the model of GPUs predicts for them.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/op.h"
#include "engine/sim/costs/device_costs.h"
#include "engine/sim/costs/matrix_units.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

struct KernelRow {
  std::string gpu;
  std::vector<std::int64_t> sizes;
  double measured_s = 0;
};

// A line has the GPU, sizes, and milliseconds; comments and the names of the columns come first.
inline std::vector<KernelRow> kernel_rows(const std::string& name) {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/validation/kernels/" + name);
  std::vector<KernelRow> rows;
  bool has_columns = false;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#' || !std::exchange(has_columns, true)) continue;
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    KernelRow& read = rows.emplace_back(KernelRow{.gpu = row.front(), .sizes = {}});
    for (std::size_t i = 1; i + 1 < row.size(); ++i) read.sizes.push_back(std::stoll(row[i]));
    read.measured_s = std::stod(row.back()) * 1e-3;
  }
  return rows;
}

// Times of kernels by the figures of a machine's GPU, which nothing has heated up.
class KernelTimes {
 public:
  explicit KernelTimes(const std::string& machine)
      : topology_(
            parse_scenario(
                "schema_version: 1\nworkload: {kind: layers, model: gpt, batch: 1}\nengine: {name: sim}\ntopology: "
                "{cluster: {workers: 1, node: " +
                    machine +
                    ", overrides: {gpu: {sustained: 1, sustained_quantised: 1}}}}\ndevices: {type: gpu, "
                    "per_worker: 1}\nsteps: 1\n",
                "kernel")
                .topology),
        costs_(topology_->device(topology_->nodes_of(0, NodeKind::gpu).front()), {.is_gpu = true}, notes_) {}

  double product_s(const std::vector<std::int64_t>& sizes, DType dtype) const {
    const ProductShape shape{.m = sizes[0], .n = sizes[1], .k = sizes[2]};
    Op op = product();
    const auto operands = static_cast<double>(shape.m * shape.k + shape.k * shape.n);
    const auto result = static_cast<double>(shape.m * shape.n);  // in two bytes, whatever the operands have
    op.cost = {.bytes = operand_bytes(dtype) * operands + 2 * result, .dtype = dtype, .shape = shape};
    return costs_.op_s(op) + costs_.op_overhead_s();
  }

  // Both products of the forward pass, in one kernel.
  double attention_s(const std::vector<std::int64_t>& sizes) const {
    const std::int64_t batch = sizes[0], tokens = sizes[1], heads = sizes[2], key_heads = sizes[3];
    AttentionShape shape{
        .count = batch * heads, .queries = tokens, .keys = tokens, .head_size = sizes[4], .attended = 0.5};
    double seconds = costs_.op_overhead_s();
    for (const bool makes_scores : {true, false}) {
      shape.makes_scores = makes_scores;
      Op op = product();
      op.cost = {.bytes = 2.0 * static_cast<double>(batch * tokens * (heads + key_heads) * sizes[4]),
                 .dtype = DType::bf16,
                 .shape = shape};
      seconds += costs_.op_s(op);
    }
    return seconds;
  }

 private:
  static Op product() {
    Op op;
    op.kernel.emplace<kernel::Gemm>();
    return op;
  }

  std::shared_ptr<const Topology> topology_;
  sim::Notes notes_;
  sim::DeviceCosts costs_;
};

// Returns the machine of the catalog that has the GPU which a row names.
inline const std::string& kernel_machine(const std::string& gpu) {
  static const std::map<std::string, std::string> machines{
      {"a100", "dgx-a100"}, {"h100", "hgx-h100"}, {"b200", "hgx-b200"}};
  return machines.at(gpu.substr(0, 4));
}

// "b200 fp8": the GPU, and the type of the operands unless it is bf16.
inline DType kernel_type(const std::string& gpu) {
  return gpu.ends_with("nvfp4") ? DType::fp4 : gpu.ends_with("fp8") ? DType::fp8 : DType::bf16;
}

}  // namespace tandem
