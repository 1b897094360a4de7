// The program of docs/multi-worker.md: every task of the cluster in TF_CONFIG runs it, in a terminal of its own. A
// second launch goes on where the first one has ended.
//
//   tandem-multi-worker CHECKPOINT STEPS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>

#include "engine/engine.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/tf_config_resolver.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/average_loss.h"
#include "strategies/strategy/context.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/variables/apply_gradients.h"
#include "strategies/variables/checkpoint.h"

namespace {

using namespace tandem;

constexpr int kBatchPerReplica = 8, kStepsPerSave = 10;

// Examples are 0, 1, 2, 3, 0, ...: the model learns their mean.
Dataset examples() {
  const auto as_example = [](const Element& index) {
    return HostTensor::scalar(static_cast<float>(static_cast<int>(index.tensor().number()) % 4));
  };
  return Dataset::range(1024).map(as_example).repeat();
}

void train(Worker& worker, const std::string& path, int steps) {
  MultiWorkerMirroredStrategy strategy(worker);
  const Scope scope = strategy.scope();
  const auto weight = create_variable({.name = "weight"});
  const auto step = create_variable({.name = "step", .trainable = false});
  Checkpoint checkpoint(worker);
  checkpoint.add("weight", weight);
  checkpoint.add("step", step);
  if (std::filesystem::exists(path)) checkpoint.restore(path);

  const int replicas = strategy.num_replicas_in_sync(), global_batch = kBatchPerReplica * replicas;
  auto batches = strategy.experimental_distribute_dataset(examples().batch(global_batch)).iterator();
  for (int done = static_cast<int>(host_number(worker, step->read())); done < steps;) {
    strategy.run(
        [&](const Value::Parts& batch) -> Value {
          const Value mean = compute_average_loss(batch[0], std::nullopt, global_batch);
          const Value gradient = Value(weight->value()) * (1.0 / replicas) - mean;
          apply_gradients({{gradient, weight}},
                          [](Variable& variable, const Value& sum) { variable.assign_sub(sum * 0.1); });
          return {};
        },
        {*batches.next()});
    step->assign(++done);
    if (done % kStepsPerSave == 0 || done == steps) checkpoint.save(path);
  }
  std::printf("%s %d of %d replicas: weight %.2f after %d steps\n", worker.job().c_str(), worker.task(), replicas,
              host_number(worker, weight->read()), steps);
}

// Reads each checkpoint that the others have written, until the last one.
void evaluate(const std::string& path, int steps) {
  for (double done = 0; done < steps; std::this_thread::sleep_for(std::chrono::milliseconds(50))) {
    if (!std::filesystem::exists(path)) continue;
    const CheckpointReader checkpoint(path);
    const double step = checkpoint.initial_value("step")(0);
    if (step == done) continue;
    done = step;
    std::printf("evaluator: weight %.2f after %.0f steps\n", checkpoint.initial_value("weight")(0), step);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw ValueError("usage: tandem-multi-worker CHECKPOINT STEPS");
    const std::string path = argv[1];
    const int steps = std::atoi(argv[2]);
    const TfConfigResolver resolver;
    if (resolver.task_type() == "evaluator") return evaluate(path, steps), 0;
    start_task_of(resolver);
    EngineOptions options;
    options.workers = workers_of(resolver.cluster_spec(), DeviceType::cpu, 1);
    open_engine("mpi", std::move(options))->run([&](Worker& worker) { train(worker, path, steps); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
