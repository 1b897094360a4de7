// tf.compat.v1's ParameterServerStrategy: variables on parameter servers, updated by workers that do not wait for each
// other.
#pragma once

#include <string_view>
#include <vector>

#include "strategies/base/stored_extended.h"
#include "strategies/cluster/partitioners.h"
#include "strategies/cluster/placement.h"
#include "strategies/variables/sharded_variable.h"

namespace tandem {

VariablePlacement variable_placement_from_name(std::string_view name);  // "round_robin"; ValueError

struct ParameterServerOptions {
  VariablePlacement placement = VariablePlacement::round_robin;
  Partitioner partitioner{};  // for create_sharded_variable; empty: variables stay whole
};

// Variables on the tasks of the job "ps", which run no program of their own. Workers update them without waiting for
// each other; a worker's own replicas are in step. Without a ps job (one worker): on the only GPU, else on CPU:0.
class ParameterServerExtended final : public StoredExtended {
 public:
  ParameterServerExtended(Worker& worker, std::vector<Device*> compute_devices, ParameterServerOptions options);
  bool experimental_between_graph() const override { return true; }
  bool experimental_should_init() const override { return is_chief_; }
  bool should_checkpoint() const override { return is_chief_; }
  bool should_save_summary() const override { return is_chief_; }
  bool in_multi_worker_mode() const override { return has_servers_; }
  const Partitioner& partitioner() const { return options_.partitioner; }

 protected:
  InputWorkers input_workers() override;
  Device& place(const VariableSpec& spec) override;
  std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) override;

 private:
  ParameterServerOptions options_;
  PlacementStrategy next_task_;
  bool has_servers_, is_chief_;
};

class ParameterServerStrategy final : public Strategy {
 public:
  // ValueError where the worker is a ps task itself: those call Server::join() or just return.
  explicit ParameterServerStrategy(Worker& worker, std::vector<Device*> devices = {},
                                   ParameterServerOptions options = {});
  // A variable in shards along axis 0, as the partitioner says, placed one after the other.
  ShardedVariable create_sharded_variable(const VariableSpec& spec);
  Staleness staleness() const;
};

}  // namespace tandem
