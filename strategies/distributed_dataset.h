// tf.distribute.DistributedDataset: global batches divided among the replicas and brought to their devices.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "engine/worker.h"
#include "strategies/dataset.h"
#include "strategies/value.h"

namespace tandem {

// How a global batch is divided among `replicas`: the first ones get one more where it does not divide. A batch smaller
// than the dataset's batch size is cut by the same sizes, so that late replicas may get fewer or no rows.
std::vector<std::int64_t> rebatch(std::int64_t global_batch, int replicas);

class DistributedIterator {
 public:
  DistributedIterator(Dataset dataset, Worker& worker, std::vector<Device*> devices);

  // The next global batch: a tuple with one per-replica tensor for each array (rows first). Replicas without rows get
  // tensors of no rows. Nothing after the last batch. The copy of the batch after it is already under way, on the
  // input streams; compute streams wait for the batch they are given.
  std::optional<Value> next();

 private:
  struct Batch {
    Value value;
    std::vector<Event> ready;  // per device
  };
  void fetch();

  Dataset dataset_;
  Worker& worker_;
  std::vector<Device*> devices_;
  std::int64_t next_index_ = 0;
  std::deque<Batch> ahead_;
};

class DistributedDataset {
 public:
  // ValueError for a dataset without batches.
  DistributedDataset(Dataset dataset, Worker& worker, std::vector<Device*> devices);
  DistributedIterator iterator() const { return {dataset_, *worker_, devices_}; }  // from the start

 private:
  Dataset dataset_;
  Worker* worker_;
  std::vector<Device*> devices_;
};

}  // namespace tandem
