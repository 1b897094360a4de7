// Divides a dataset's elements among the workers that run the same program.
#pragma once

#include "strategies/input/dataset.h"

namespace tandem {

struct Sharded {
  Dataset dataset;
  AutoShardPolicy applied;  // for AUTO the one it chose: FILE or DATA
};

// Rewrites the graph by the policy in the dataset's options:
//   FILE  shards the file names that each reader gets. NotFoundError where anything but a reader makes the elements.
//   DATA  shards the elements at the end of the graph, before trailing prefetches. A rebatch() there becomes a
//         legacy_rebatch(num_replicas), since the shards of an uneven division would not fit together.
//   AUTO  FILE if possible, else DATA.
//   OFF   changes nothing.
//   HINT  shards where the graph has shard(kShardHint, ...).
// InvalidArgumentError for an index that is no shard's. With fewer elements than shards, the shards that have elements
// throw InvalidArgumentError when they are iterated over; the others are empty.
Sharded auto_shard(const Dataset& dataset, std::int64_t num_shards, std::int64_t index, std::int64_t num_replicas = 1);

// TensorFlow 1's rule: shards by files; where there are none, every worker gets a full copy.
Dataset auto_shard_v1(const Dataset& dataset, std::int64_t num_shards, std::int64_t index);

}  // namespace tandem
