#include "scenarios/import/traces/trace.h"

#include <algorithm>
#include <array>

namespace tandem {

std::int64_t RankTrace::count(TraceOp::Kind kind) const {
  return std::count_if(ops.begin(), ops.end(), [&](const TraceOp& op) { return op.kind == kind; });
}

std::int64_t RankTrace::kernel_ns() const {
  std::int64_t sum = 0;
  for (const TraceOp& op : ops) {
    if (op.kind == TraceOp::Kind::kernel || op.kind == TraceOp::Kind::memory) sum += op.duration_ns;
  }
  return sum;
}

std::int64_t RankTrace::collective_bytes(CollectiveKind kind) const {
  std::int64_t sum = 0;
  for (const TraceOp& op : ops) {
    if (op.kind == TraceOp::Kind::collective && op.collective == kind) sum += op.bytes;
  }
  return sum;
}

std::int64_t RankTrace::collective_count(CollectiveKind kind) const {
  return std::count_if(ops.begin(), ops.end(), [&](const TraceOp& op) {
    return op.kind == TraceOp::Kind::collective && op.collective == kind;
  });
}

std::string machine_with(const std::string& device) {
  struct Known {
    std::string_view part, machine;
  };
  // Parts of the names that drivers report; the first match counts.
  static constexpr std::array kKnown = {
      Known{"GH200", "gh200"},
      Known{"GB300", "gb300-nvl72"},
      Known{"GB200", "gb200-nvl72"},
      Known{"B200", "hgx-b200"},
      Known{"B300", "hgx-b300"},
      Known{"H200", "hgx-h200"},
      Known{"H100 PCIe", "h100-pcie-8gpu"},
      Known{"H100", "hgx-h100"},
      Known{"H800", "hgx-h800"},
      Known{"A100-SXM4-40GB", "dgx-a100-40gb"},
      Known{"A100-SXM-40GB", "dgx-a100-40gb"},
      Known{"A100", "dgx-a100"},
      Known{"A800", "hgx-a800"},
      Known{"A10G", "aws-g5"},
      Known{"A10", "a10-4gpu"},
      Known{"V100-PCIE", "v100-pcie-4gpu"},
      Known{"V100", "dgx1-v100"},
      Known{"P100", "dgx1-p100"},
      Known{"L40S", "l40s-8gpu"},
      Known{"L4", "aws-g6"},
      Known{"T4", "aws-g4dn"},
      Known{"2080 Ti", "rtx2080ti-2gpu"},
      Known{"3090", "rtx3090-4gpu"},
      Known{"4090", "rtx4090-8gpu"},
      Known{"5090", "rtx5090-8gpu"},
      Known{"6000 Ada", "rtx6000-ada-4gpu"},
      Known{"A6000", "rtx-a6000-4gpu"},
      Known{"MI300X", "mi300x-8gpu"},
      Known{"MI355X", "mi355x-8gpu"},
  };
  for (const Known& known : kKnown) {
    if (device.find(known.part) != std::string::npos) return std::string(known.machine);
  }
  return "";
}

}  // namespace tandem
