// Dividing a dataset's elements among the workers that run the same program.
#pragma once

#include "strategies/input/dataset.h"

namespace tandem {

struct Sharded {
  Dataset dataset;
  AutoShardPolicy applied;  // AUTO is told as what it came to: FILE or DATA
};

// Rewrites the graph by the policy in the dataset's options.
// FILE: shards the file names every reader gets; NotFoundError where something else makes the elements. Nothing to do
// for one shard. DATA: shards the elements at the end, before what prefetches them; a rebatch() there becomes a
// legacy_rebatch(num_replicas), since shards of an uneven division would not fit together. AUTO: FILE, else DATA. OFF:
// nothing. HINT: shards where shard(kShardHint, ...) stands.
// InvalidArgumentError for an index outside of the shards, and later, when elements are asked for, for fewer elements
// than shards: in the shards that have some; others are empty.
Sharded auto_shard(const Dataset& dataset, std::int64_t num_shards, std::int64_t index, std::int64_t num_replicas = 1);

// 1.x: by files, and where there are none a full copy for everyone.
Dataset auto_shard_v1(const Dataset& dataset, std::int64_t num_shards, std::int64_t index);

}  // namespace tandem
