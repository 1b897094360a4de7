// The part of SpanningCollectives whose values travel with the votes. Every process gets the same values and adds them
// in the same order, so that all have the same sums.
#include <algorithm>

#include "engine/kernels/kernels.h"
#include "engine/mpi/spanning_collectives.h"

namespace tandem::mpi {
namespace {

// The most bytes that a vote carries. MPI does not send larger messages before the receiver has asked for them, and the
// values of a vote go to every process of the group.
constexpr std::size_t kCarriedBytes = 2048;

const std::byte* data_of(const std::string& values, std::size_t offset_bytes = 0) {
  return reinterpret_cast<const std::byte*>(values.data()) + offset_bytes;
}

void append(std::string& values, const std::byte* operand, std::size_t bytes) {
  if (bytes > 0) values.append(reinterpret_cast<const char*>(operand), bytes);
}

}  // namespace

bool SpanningCollectives::is_small(const CollectiveSpec& spec) const {
  const int most_ranks = *std::max_element(counts_.begin(), counts_.end());
  return spec.buffer_bytes(ranks()) * static_cast<std::size_t>(most_ranks) <= kCarriedBytes;
}

std::string SpanningCollectives::values_given(const HostCall& call) {
  const CollectiveSpec& spec = call.spec();
  const std::size_t part = spec.part_bytes(), all = part * owners().size();
  std::string values;
  switch (spec.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      values.resize(part);
      reduce_here(call, 0, spec.count, reinterpret_cast<std::byte*>(values.data()));
      return values;
    case CollectiveKind::reduce_scatter:
      values.resize(all);
      reduce_here(call, 0, spec.count * ranks(), reinterpret_cast<std::byte*>(values.data()));
      return values;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_receive:
      if (is_here(spec.root)) append(values, call.input(spec.root), part);
      return values;
    case CollectiveKind::all_gather:
      for (const int rank : here_) append(values, call.input(rank), part);
      return values;
    case CollectiveKind::all_to_all:
      for (const int rank : here_) append(values, call.input(rank), all);
      return values;
  }
  TANDEM_UNREACHABLE("a collective that no case handles");
}

// Adds the others to the first.
SpanningCollectives::Bytes SpanningCollectives::sum_of(const CollectiveSpec& spec,
                                                       const std::vector<std::string>& values) const {
  Bytes sum(data_of(values.front()), data_of(values.front(), values.front().size()));
  const auto count = static_cast<std::int64_t>(sum.size() / size_of(spec.dtype));
  for (std::size_t i = 1; i < values.size(); ++i) {
    accumulate(spec.dtype, spec.reduction, sum.data(), data_of(values[i]), count);
  }
  return sum;
}

void SpanningCollectives::take_values(const HostCall& call, const std::vector<std::string>& values) {
  const CollectiveSpec& spec = call.spec();
  if (spec.count == 0) return;
  const std::size_t part = spec.part_bytes();
  const auto to = [&](int rank, std::size_t at) { return call.output(rank, at * part); };
  const auto at_rank = [](int rank) { return static_cast<std::size_t>(rank); };
  switch (spec.kind) {
    case CollectiveKind::all_reduce: {
      const Bytes sum = sum_of(spec, values);
      for (const int rank : here_) copy_unless_same(to(rank, 0), sum.data(), part);
      return;
    }
    case CollectiveKind::reduce:
      if (is_here(spec.root)) copy_unless_same(to(spec.root, 0), sum_of(spec, values).data(), part);
      return;
    case CollectiveKind::reduce_scatter: {
      const Bytes sum = sum_of(spec, values);
      for (const int rank : here_) copy_unless_same(to(rank, 0), sum.data() + at_rank(rank) * part, part);
      return;
    }
    case CollectiveKind::broadcast: {
      const std::string& of_root = values[static_cast<std::size_t>(place_of(spec.root))];
      for (const int rank : here_) copy_unless_same(to(rank, 0), data_of(of_root), part);
      return;
    }
    case CollectiveKind::send_receive:
      if (is_here(1)) copy_unless_same(to(1, 0), data_of(values[static_cast<std::size_t>(place_of(0))]), part);
      return;
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      break;
  }
  // A sender has one part for all ranks, or one for each of them.
  const bool is_for_each = spec.kind == CollectiveKind::all_to_all;
  std::size_t sender = 0;  // in order_
  for (std::size_t place = 0; place < counts_.size(); ++place) {
    for (int i = 0; i < counts_[place]; ++i, ++sender) {
      const std::size_t first = is_for_each ? at_rank(i) * owners().size() : at_rank(i);
      for (const int rank : here_) {
        const std::size_t from = first + (is_for_each ? at_rank(rank) : 0);
        copy_unless_same(to(rank, at_rank(order_[sender])), data_of(values[place], from * part), part);
      }
    }
  }
}

}  // namespace tandem::mpi
