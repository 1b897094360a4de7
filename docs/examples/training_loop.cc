// A training loop of two workers with two replicas each: an optimizer, a metric, random data and checkpoints. The
// second run goes on where the first one stopped.
//
//   tandem-training-loop [ENGINE]
#include <cstdio>
#include <filesystem>

#include "engine/engine.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/training/checkpoint_manager.h"
#include "strategies/training/metrics.h"
#include "strategies/training/optimizers.h"
#include "strategies/training/random_generator.h"
#include "strategies/types/multi_worker_mirrored.h"

namespace {

using namespace tandem;

// Learns the factor 3 from random numbers, until `last_step`.
void train(Worker& worker, const std::string& directory, int last_step) {
  MultiWorkerMirroredStrategy strategy(worker);
  const auto step = create_variable({.name = "step", .dtype = DType::i64, .trainable = false});
  const Scope scope = strategy.scope();
  const auto weight = create_variable({.name = "weight", .shape = {1}});
  optimizers::Adam adam({.learning_rate = [](std::int64_t steps) { return steps < 30 ? 0.25 : 0.0625; }});
  metrics::Mean loss("loss");
  auto random = RandomGenerator::from_seed(1);

  adam.build({weight});  // so that its slots are there to be restored
  Checkpoint checkpoint(worker);
  checkpoint.add("step", step);
  checkpoint.add("weight", weight);
  adam.add_to(checkpoint);
  random.add_to(checkpoint);
  CheckpointManager manager(checkpoint, directory, {.max_to_keep = 2, .step_counter = step, .checkpoint_interval = 10});
  const bool resumes = manager.restore_or_initialize().has_value();

  const int first_step = static_cast<int>(host_number(worker, step->read()));
  for (int i = first_step; i < last_step; ++i) {
    loss.reset_state();
    strategy.run([&](const Value::Parts&) -> Value {
      const Value x = random.uniform({1}, 1, 2);
      const Value error = Value(weight->value()) * x - x * 3.0;
      loss.update_state(error * error);
      const double replicas = strategy.num_replicas_in_sync();
      adam.apply_gradients({{error * x * (2 / replicas), weight}});  // sums over the replicas of both workers
      return {};
    });
    step->assign_add(Value(1));
    manager.save();  // after step 1, 11, 21, ...; one worker writes
  }
  const double last_loss = host_number(worker, loss.result());  // adds up over both workers: both call it
  if (worker.index() > 0) return;
  std::printf("%s at step %d: weight %.1f, loss %.1f after step %d\n", resumes ? "went on" : "began", first_step,
              host_number(worker, weight->read()), last_loss, last_step);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string directory = (std::filesystem::temp_directory_path() / "tandem-training-loop").string();
  std::filesystem::remove_all(directory);
  for (const int last_step : {25, 80}) {
    EngineOptions options;
    options.workers = {{.device_count = 2}, {.task = 1, .device_count = 2}};
    open_engine(count > 1 ? arguments[1] : "cpu", std::move(options))->run([&](Worker& worker) {
      train(worker, directory, last_step);
    });
  }
  std::filesystem::remove_all(directory);
}
