#include "strategies/parallel/divided_training.h"

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/types/multi_worker_mirrored.h"

namespace tandem {

void DividedTraining::evaluate(int /*step*/, int /*passes*/) {
  throw NotImplementedError("the strategy evaluates no model that it has divided");
}

void sum_evaluation(Worker& worker) {
  Communicator& all = worker.communicator(devices_in_sync(worker));
  std::vector<Tensor> sums;
  std::vector<Stream*> streams;
  for (Device* device : all.local_devices()) {
    sums.push_back(device->allocate(DType::f32, {kEvaluationSums}));
    streams.push_back(&device->compute_stream());
    streams.back()->launch(op::fill(sums.back(), 0));
  }
  all.all_reduce(sums, Reduction::sum, streams);
}

std::vector<float> sum_over_workers(Worker& worker, std::vector<float> values) {
  Device& host = worker.cpu();
  const Tensor mine = host.allocate(DType::f32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), mine.values<float>().begin());
  std::vector<Tensor> parts;
  std::vector<Stream*> streams;
  for (Device* device : worker.devices()) {
    parts.push_back(device->allocate(DType::f32, mine.shape()));
    streams.push_back(&device->compute_stream());
    if (parts.size() == 1) {
      streams.back()->copy(parts.back(), mine, Category::other);
    } else {
      streams.back()->launch(op::fill(parts.back(), 0));
    }
  }
  worker.communicator(devices_in_sync(worker)).all_reduce(parts, Reduction::sum, streams);
  streams.front()->copy(mine, parts.front(), Category::other);
  for (Stream* stream : streams) stream->synchronize();
  std::copy(mine.values<float>().begin(), mine.values<float>().end(), values.begin());
  return values;
}

}  // namespace tandem
