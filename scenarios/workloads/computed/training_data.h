// The data of a model that is really computed: batches of rows with labels, or of a text's bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/worker.h"
#include "scenarios/scenario/labelled_rows.h"
#include "strategies/parallel/stages/trainable_model.h"

namespace tandem {

class TrainingData {
 public:
  virtual ~TrainingData() = default;
  // Makes the batch of a step, on the worker's CPU. Steps follow each other from 0.
  virtual Batch batch(int step, Worker& worker) = 0;
};

// Rows of numbers and their classes, shuffled anew in each epoch.
std::unique_ptr<TrainingData> rows_data(const LabelledRows& rows, std::int64_t batch, std::uint64_t seed);

// Windows of `tokens` bytes of a text, which is longer, at places that the seed draws. The label of a byte is the next
// one.
std::unique_ptr<TrainingData> text_data(std::shared_ptr<const std::string> text, std::int64_t batch,
                                        std::int64_t tokens, std::uint64_t seed);

// Returns the part of a batch that a device reads, on the same CPU. The batch has been written.
Batch part_of_batch(const Batch& batch, const BatchPart& part, Device& host);

}  // namespace tandem
