#include "scenarios/workloads/computed/training_data.h"

#include <algorithm>
#include <optional>

#include "scenarios/workloads/computed/drawn_word.h"
#include "strategies/input/dataset.h"
#include "strategies/input/staging.h"

namespace tandem {
namespace {

class RowsData final : public TrainingData {
 public:
  RowsData(const LabelledRows& rows, std::int64_t batch, std::uint64_t seed)
      : dataset_(Dataset::from_tensor_slices({HostArray{.row_shape = {rows.columns}, .values = rows.values},
                                              HostArray{.row_shape = {}, .values = rows.labels}})
                     .shuffle(seed)
                     .repeat()
                     .batch(batch)),
        iterator_(dataset_.iterator()) {}

  Batch batch(int /*step*/, Worker& worker) override {
    Device& host = worker.cpu();
    const Value rows = stage(worker, host, {&host}, {iterator_.next().value()}, false).value;
    return {.inputs = rows.parts()[0].tensor(), .labels = rows.parts()[1].tensor()};
  }

 private:
  Dataset dataset_;
  DatasetIterator iterator_;
};

class TextData final : public TrainingData {
 public:
  TextData(std::shared_ptr<const std::string> text, std::int64_t batch, std::int64_t tokens, std::uint64_t seed)
      : text_(std::move(text)), batch_(batch), tokens_(tokens), seed_(seed) {}

  Batch batch(int step, Worker& worker) override {
    Batch made{.inputs = worker.cpu().allocate(DType::i32, {batch_, tokens_}),
               .labels = worker.cpu().allocate(DType::i32, {batch_, tokens_})};
    if (!made.inputs.has_values()) return made;
    const std::span<std::int32_t> inputs = made.inputs.values<std::int32_t>();
    const std::span<std::int32_t> labels = made.labels.values<std::int32_t>();
    for (std::int64_t example = 0; example < batch_; ++example) {
      const std::int64_t first = first_byte(step * batch_ + example);
      for (std::int64_t token = 0; token < tokens_; ++token) {
        const auto place = static_cast<std::size_t>(example * tokens_ + token);
        inputs[place] = byte(first + token);
        labels[place] = byte(first + token + 1);
      }
    }
    return made;
  }

 private:
  std::int32_t byte(std::int64_t place) const {
    return static_cast<unsigned char>((*text_)[static_cast<std::size_t>(place)]);
  }
  std::int64_t first_byte(std::int64_t number) const {
    const std::uint32_t word = drawn_word(seed_, static_cast<std::uint64_t>(number));
    const auto windows = static_cast<std::uint64_t>(text_->size()) - static_cast<std::uint64_t>(tokens_);
    return static_cast<std::int64_t>(word % windows);
  }

  std::shared_ptr<const std::string> text_;
  std::int64_t batch_, tokens_;
  std::uint64_t seed_;
};

// Copies a part of the columns.
Tensor columns_of(const Tensor& matrix, std::int64_t first, std::int64_t count, Device& host) {
  Tensor part = host.allocate(matrix.dtype(), {matrix.shape()[0], count});
  if (!part.has_values()) return part;
  const std::span<std::int32_t> to = part.values<std::int32_t>(), from = matrix.values<std::int32_t>();
  for (std::int64_t row = 0; row < matrix.shape()[0]; ++row) {
    const auto begin = from.begin() + row * matrix.shape()[1] + first;
    std::copy(begin, begin + count, to.begin() + row * count);
  }
  return part;
}

}  // namespace

std::unique_ptr<TrainingData> rows_data(const LabelledRows& rows, std::int64_t batch, std::uint64_t seed) {
  return std::make_unique<RowsData>(rows, batch, seed);
}

std::unique_ptr<TrainingData> text_data(std::shared_ptr<const std::string> text, std::int64_t batch,
                                        std::int64_t tokens, std::uint64_t seed) {
  return std::make_unique<TextData>(std::move(text), batch, tokens, seed);
}

Batch part_of_batch(const Batch& batch, const BatchPart& part, Device& host) {
  const auto of = [&](const Tensor& whole) {
    Tensor rows = whole.slice(part.first, part.examples);
    if (part.context_parts == 1) return rows;
    const std::int64_t columns = rows.shape()[1] / part.context_parts;
    return columns_of(rows, part.context_part * columns, columns, host);
  };
  return {.inputs = part.has_inputs ? of(batch.inputs) : Tensor(),
          .labels = part.has_labels ? of(batch.labels) : Tensor()};
}

}  // namespace tandem
