#include "strategies/training/backup_and_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "strategies/base/errors.h"
#include "strategies/strategy/default_strategy.h"

namespace tandem {
namespace {

constexpr std::int64_t kAllSteps = std::numeric_limits<std::int64_t>::max();

void check_backups(const BackupAndRestoreOptions& options) {
  if (!options.save_freq && !options.save_before_preemption) {
    throw ValueError("either save_freq or save_before_preemption must be set, or nothing is backed up");
  }
  if (options.save_freq && *options.save_freq < 0) {
    throw ValueError(fmt::format("save_freq is {} steps; it must be positive, or kEachEpoch", *options.save_freq));
  }
}

}  // namespace

BackupAndRestore::BackupAndRestore(Checkpoint& checkpoint, std::string backup_dir, BackupAndRestoreOptions options)
    : options_((check_backups(options), std::move(options))),
      manager_(checkpoint, std::move(backup_dir), {.max_to_keep = 1}) {
  const auto saved = [&checkpoint, position = position_] {
    const Tensor tensor = checkpoint.worker().cpu().allocate(DType::i64, {static_cast<std::int64_t>(kCounts)});
    if (tensor.has_values()) std::ranges::copy(*position, tensor.values<std::int64_t>().begin());
    return tensor;
  };
  const auto restore = [position = position_](const Tensor& tensor) {
    if (tensor.has_values()) std::ranges::copy(tensor.values<std::int64_t>(), position->begin());
  };
  checkpoint.add(kPosition, Checkpoint::Saveable{.dtype = DType::i64,
                                                 .shape = {static_cast<std::int64_t>(kCounts)},
                                                 .strategy = &default_strategy(),
                                                 .saved = saved,
                                                 .restore = restore});
  if (!options_.save_before_preemption) return;
  TerminationConfig config = options_.termination;
  config.save = [this] { back_up(); };
  preemption_ =
      std::make_unique<PreemptionCheckpointHandler>(checkpoint.worker(), manager_, std::move(config), options_.workers);
}

BackupAndRestore::~BackupAndRestore() = default;

bool BackupAndRestore::on_train_begin() {
  return manager_.restore_or_initialize().has_value();
}

DistributedIterator BackupAndRestore::iterator(const DistributedDataset& dataset) {
  const bool is_infinite = dataset.cardinality() == kInfiniteCardinality;
  if (is_infinite && has_iterated_) {
    throw ValueError("an infinite dataset is iterated once for all epochs: nobody knows where one of them ended");
  }
  const bool is_first = !std::exchange(has_iterated_, true);
  for (std::int64_t past = 0; is_first && !is_infinite && past < epoch(); ++past) dataset.iterator().skip(kAllSteps);
  DistributedIterator iterator = dataset.iterator();
  iterator.skip(is_infinite ? total_steps() : step());
  return iterator;
}

bool BackupAndRestore::run(const std::function<void()>& train_step) {
  if (!preemption_) {
    train_step();
  } else if (!preemption_->run(train_step)) {
    return false;
  }
  ++(*position_)[kStep];
  ++(*position_)[kTotalSteps];
  const std::int64_t every = options_.save_freq.value_or(BackupAndRestoreOptions::kEachEpoch);
  if (every != BackupAndRestoreOptions::kEachEpoch && total_steps() % every == 0) back_up();
  return true;
}

void BackupAndRestore::on_epoch_end() {
  ++(*position_)[kEpoch];
  (*position_)[kStep] = 0;
  if (options_.save_freq == BackupAndRestoreOptions::kEachEpoch) back_up();
}

void BackupAndRestore::on_train_end() {
  if (options_.delete_checkpoint) manager_.remove_all();
}

void BackupAndRestore::back_up() {
  manager_.save();
}

}  // namespace tandem
