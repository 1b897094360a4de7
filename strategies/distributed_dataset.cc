#include "strategies/distributed_dataset.h"

#include <algorithm>

#include "strategies/errors.h"
#include "strategies/regroup.h"

namespace tandem {
namespace {

constexpr std::size_t kBatchesAhead = 2;  // the one being used and the one being copied

Shape batch_shape(std::int64_t rows, const Shape& row) {
  std::vector<std::int64_t> dimensions = {rows};
  dimensions.insert(dimensions.end(), row.dimensions().begin(), row.dimensions().end());
  return Shape(std::span<const std::int64_t>(dimensions));
}

// The chosen rows of an array in host memory that devices can copy from.
Tensor staged(Device& host, const HostArray& array, std::span<const std::int64_t> rows) {
  const Tensor tensor =
      host.allocate(array.dtype(), batch_shape(static_cast<std::int64_t>(rows.size()), array.row_shape));
  std::visit(
      [&]<typename T>(const std::vector<T>& values) {
        const std::span<T> to = tensor.values<T>();
        if (to.empty()) return;
        const auto width = static_cast<std::size_t>(array.row_elements());
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const auto from = static_cast<std::size_t>(rows[i]) * width;
          std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), width,
                      to.begin() + static_cast<std::ptrdiff_t>(i * width));
        }
      },
      array.values);
  return tensor;
}

}  // namespace

std::vector<std::int64_t> rebatch(std::int64_t global_batch, int replicas) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(replicas), global_batch / replicas);
  for (std::int64_t i = 0; i < global_batch % replicas; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

DistributedIterator::DistributedIterator(Dataset dataset, Worker& worker, std::vector<Device*> devices)
    : dataset_(std::move(dataset)), worker_(worker), devices_(std::move(devices)) {}

void DistributedIterator::fetch() {
  const auto rows = dataset_.batch_rows(next_index_);
  if (!rows) return;
  ++next_index_;
  const std::vector<std::int64_t> sizes = rebatch(dataset_.batch_size(), static_cast<int>(devices_.size()));
  Batch batch;
  std::vector<Value::Parts> parts(dataset_.arrays().size());
  std::int64_t first = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const std::int64_t count = std::clamp<std::int64_t>(static_cast<std::int64_t>(rows->size()) - first, 0, sizes[d]);
    const std::span<const std::int64_t> mine(rows->data() + first, static_cast<std::size_t>(count));
    Stream& stream = devices_[d]->stream(kInputStream);
    for (std::size_t a = 0; a < parts.size(); ++a) {
      const Tensor from = staged(worker_.cpu(), dataset_.arrays()[a], mine);
      const Tensor to = devices_[d]->allocate(from.dtype(), from.shape());
      stream.copy(to, from, Category::input);
      parts[a].emplace_back(to);
    }
    batch.ready.push_back(stream.record());
    first += count;
  }
  Value::Parts arrays;
  for (Value::Parts& array : parts) arrays.push_back(regroup(array));
  batch.value = Value::tuple(std::move(arrays));
  ahead_.push_back(std::move(batch));
}

std::optional<Value> DistributedIterator::next() {
  while (ahead_.size() < kBatchesAhead) {
    const std::size_t before = ahead_.size();
    fetch();
    if (ahead_.size() == before) break;
  }
  if (ahead_.empty()) return std::nullopt;
  const Batch batch = std::move(ahead_.front());
  ahead_.pop_front();
  for (std::size_t d = 0; d < devices_.size(); ++d) devices_[d]->compute_stream().wait(batch.ready[d]);
  return batch.value;
}

DistributedDataset::DistributedDataset(Dataset dataset, Worker& worker, std::vector<Device*> devices)
    : dataset_(std::move(dataset)), worker_(&worker), devices_(std::move(devices)) {
  if (dataset_.batch_size() == 0) throw ValueError("a distributed dataset must be batched by the global batch size");
}

}  // namespace tandem
