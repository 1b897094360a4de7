// The "tower" API of TensorFlow 1.9 to 1.12 (contrib.distribute), in namespace tandem::tower. Its users include this
// header. The library's strategies, which follow TensorFlow 2, do the work:
//
//   DistributionStrategy           Strategy and its extended()
//   MirroredStrategy, OneDeviceStrategy, CollectiveAllReduceStrategy (MultiWorkerMirrored), ParameterServerStrategy
//   TowerContext                   ReplicaContext
//   get_tower_context              get_replica_context
//   get_cross_tower_context        get_cross_replica_context
//   get_distribution_strategy      get_strategy
//   has_distribution_strategy      has_strategy
//   call_for_each_tower            run, extended().call_for_each_replica
//   tower_id, num_towers           replica_id_in_sync_group, num_replicas_in_sync
//   reduce, batch_reduce           extended().reduce_to, batch_reduce_to
//   broadcast                      extended().broadcast_to
//   unwrap                         experimental_local_results
//   read_var, fetch                extended().read_var
//   distribute_dataset             distribute_dataset_v1 (distributed_dataset_v1.h)
//   run_steps_on_dataset           extended().run_steps
//   DistributedValues, PerDevice   Value::per_replica, Value::mirrored
//   select_device                  select_replica
//   TowerLocalVariable             SyncOnReadVariable
//   kOnlyFirstTower                VariableAggregation::only_first_replica
//   CrossTowerOps                  CrossDeviceOps
#pragma once

#include "strategies/tower/context.h"                // IWYU pragma: export
#include "strategies/tower/cross_tower_ops.h"        // IWYU pragma: export
#include "strategies/tower/distribution_strategy.h"  // IWYU pragma: export
#include "strategies/tower/steps.h"                  // IWYU pragma: export
#include "strategies/tower/strategies.h"             // IWYU pragma: export
#include "strategies/tower/values.h"                 // IWYU pragma: export
#include "strategies/tower/variables.h"              // IWYU pragma: export
