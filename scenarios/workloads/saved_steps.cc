#include "scenarios/workloads/saved_steps.h"

#include <fmt/format.h>

#include <cstring>

#include "strategies/parallel/divided_training.h"
#include "strategies/strategy/default_strategy.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr const char* kTraining = "run/training";

void add_hash(Checkpoint& checkpoint, std::int64_t training) {
  const auto saved = [&checkpoint, training] {
    const Tensor tensor = checkpoint.worker().cpu().allocate(DType::i64, {1});
    if (tensor.has_values()) tensor.values<std::int64_t>()[0] = training;
    return tensor;
  };
  checkpoint.add(kTraining, Checkpoint::Saveable{.dtype = DType::i64,
                                                 .shape = {1},
                                                 .strategy = &default_strategy(),
                                                 .saved = saved,
                                                 .restore = [](const Tensor&) {}});
}

// All workers go on from the same step, or none does.
void check_agreement(Worker& worker, std::int64_t first_step, const std::string& directory) {
  const std::vector<float> sums = sum_over_workers(worker, {1, static_cast<float>(first_step)});
  if (sums[1] == sums[0] * static_cast<float>(first_step)) return;
  throw UnavailableError(fmt::format(
      "the workers find checkpoints of different steps in {} (worker {}: {}); all need to see the same directory",
      directory, worker.index(), first_step));
}

std::int64_t number_in(const CheckpointReader& reader, const std::string& name, std::size_t place) {
  const CheckpointReader::Entry& entry = reader.entry(name);
  std::int64_t number = 0;
  std::memcpy(&number, reader.bytes(entry) + place * sizeof(number), sizeof(number));
  return number;
}

}  // namespace

SavedSteps::SavedSteps(Workload& workload, Worker& worker, const StepCheckpoints& checkpoints)
    : checkpoint_(worker), backup_(checkpoint_, checkpoints.directory, {.save_freq = checkpoints.every}) {
  workload.add_to(checkpoint_);
  add_hash(checkpoint_, checkpoints.training);
  backup_.on_train_begin();
  first_step_ = backup_.total_steps();
  check_agreement(worker, first_step_, checkpoints.directory);
  if (first_step_ > 0) workload.pass_over(static_cast<int>(first_step_));
}

std::optional<SavedRun> saved_run(const std::string& directory) {
  const std::optional<std::string> latest = latest_checkpoint(directory);
  if (!latest) return {};
  const CheckpointReader reader(*latest);
  return SavedRun{.checkpoint = *latest,
                  .steps = number_in(reader, BackupAndRestore::kPosition, BackupAndRestore::kTotalSteps),
                  .training = number_in(reader, kTraining, 0)};
}

}  // namespace tandem
