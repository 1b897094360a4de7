#include <algorithm>
#include <numeric>

#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"

namespace tandem {
namespace {

// The rows of a table that begins elsewhere.
template <typename T>
class Table {
 public:
  Table(const Tensor& table, std::int64_t first)
      : rows_(elements<T>(table)), count_(table.shape()[0]), width_(table.shape()[1]), first_(first) {}

  std::int64_t width() const { return width_; }
  // Null where the table has no such row.
  T* row(std::int64_t index) const {
    const std::int64_t at = index - first_;
    return at < 0 || at >= count_ ? nullptr : rows_ + at * width_;
  }

 private:
  T* rows_;
  std::int64_t count_, width_, first_;
};

// Sums of halves are rounded once: rows of one index are added one after the other.
template <typename T>
void add_sorted_rows(const Table<T>& table, const T* rows, const std::int32_t* indices, std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [indices](std::int64_t one, std::int64_t other) { return indices[one] < indices[other]; });
  std::vector<Wide<T>> sums = wide_row<T>(table.width());
  for (auto next = order.begin(); next != order.end();) {
    const std::int32_t index = indices[*next];
    T* const to = table.row(index);
    if (to != nullptr) widen(sums.data(), static_cast<const T*>(to), table.width());
    for (; next != order.end() && indices[*next] == index; ++next) {
      const T* row = rows + *next * table.width();
      for (std::size_t i = 0; to != nullptr && i < sums.size(); ++i) sums[i] += row[i];
    }
    if (to != nullptr) narrow(to, sums.data(), table.width());
  }
}

}  // namespace

void execute_gather_rows(const kernel::GatherRows& op) {
  const auto* indices = elements<const std::int32_t>(op.indices);
  with_type(op.to.dtype(), "gather_rows", [&]<typename T>() {
    const Table<const T> table(op.table, op.first);
    for (std::int64_t r = 0; r < op.indices.element_count(); ++r) {
      T* to = elements<T>(op.to) + r * table.width();
      const T* row = table.row(indices[r]);
      if (!op.accumulates && row == nullptr) std::fill_n(to, table.width(), T{});
      if (!op.accumulates && row != nullptr) std::copy_n(row, table.width(), to);
      if (!op.accumulates || row == nullptr) continue;
      for (std::int64_t i = 0; i < table.width(); ++i) to[i] = T(wrapped_add<Wide<T>>(to[i], row[i]));
    }
  });
}

void execute_add_rows(const kernel::AddRows& op) {
  const auto* indices = elements<const std::int32_t>(op.indices);
  with_type(op.table.dtype(), "add_rows", [&]<typename T>() {
    const Table<T> table(op.table, op.first);
    const T* rows = elements<const T>(op.rows);
    if constexpr (is_half<T>) return add_sorted_rows(table, rows, indices, op.indices.element_count());
    for (std::int64_t r = 0; r < op.indices.element_count(); ++r) {
      T* to = table.row(indices[r]);
      if (to == nullptr) continue;
      for (std::int64_t i = 0; i < table.width(); ++i) to[i] = wrapped_add(to[i], rows[r * table.width() + i]);
    }
  });
}

}  // namespace tandem
