#include "scenarios/validation/rules.h"

#include <fmt/format.h>

namespace tandem::validation {

std::string left_out_by(const MeasurementFile& file, const MeasuredTable& table) {
  if (!file.healthy) return "the machine was not healthy, by its publisher's words";
  if (!table.lacks.empty()) return fmt::format("does not state {}", table.lacks);
  if (!kind_of_operation(table.table.operation)) {
    return fmt::format("'{}' is no collective of Tandem", table.table.operation);
  }
  if (!dtype_of_nccl(table.table.dtype)) return fmt::format("Tandem has no elements of type '{}'", table.table.dtype);
  const std::string& reduction = table.table.redop;
  const bool reduces = is_reducing(*kind_of_operation(table.table.operation));
  if (reduces && !reduction.empty() && !reduction_of_nccl(reduction)) {
    return fmt::format("Tandem has no reduction '{}'", reduction);
  }
  return "";
}

std::string training_apart_by(const ReplayMachine& machine) {
  if (machine.devices_per_process > 1) return "several devices a process";
  return machine.power_limited ? "power limited" : "";
}

std::string apart_by(const ReplayMachine& machine) {
  if (auto rule = training_apart_by(machine); !rule.empty()) return rule;
  if (!machine.topology->facts().p2p) return "no P2P";
  if (!machine.p2p_stated) return "P2P not stated";
  if (machine.nodes <= machine.topology->facts().nvlink_domain) return "";  // nothing goes over a network
  if (!machine.nics_stated) return "NICs not stated";
  const bool is_rdma = machine.transport == "infiniband" || machine.transport == "roce";
  if (is_rdma) return "";
  return machine.transport.empty() ? "network not stated" : fmt::format("network: {}", machine.transport);
}

}  // namespace tandem::validation
