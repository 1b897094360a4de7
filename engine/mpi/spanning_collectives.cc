#include "engine/mpi/spanning_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "engine/kernels/kernels.h"

namespace tandem::mpi {
namespace {

constexpr std::int64_t kScatterBytes = std::int64_t{8} << 20;  // of a piece of a reduce_scatter, over all its parts

// FNV-1a over the devices' places in the timeline, equal in every process. `salt` tells pairs from groups of two.
std::uint64_t hash_of_group(const std::vector<Device*>& devices, std::uint64_t salt) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ salt;
  for (const Device* device : devices) {
    hash = (hash ^ static_cast<std::uint64_t>(device->index() + 1)) * 0x100000001b3ULL;
    hash ^= hash >> 31;
  }
  return hash;
}

std::vector<DeviceId> ids_of(const std::vector<Device*>& devices) {
  std::vector<DeviceId> ids;
  for (const Device* device : devices) ids.push_back(device->id());
  return ids;
}

std::byte* data_of(const Tensor& tensor, std::size_t offset_bytes = 0) {
  return static_cast<std::byte*>(tensor.data()) + offset_bytes;
}

void copy_unless_same(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

SpanningCollectives::SpanningCollectives(Messenger& messenger, Transport& transport,
                                         const std::vector<Device*>& devices, std::vector<int> owners)
    : messenger_(messenger),
      transport_(transport),
      devices_(devices),
      owners_(std::move(owners)),
      processes_(owners_),
      order_(owners_.size()) {
  std::sort(processes_.begin(), processes_.end());
  processes_.erase(std::unique(processes_.begin(), processes_.end()), processes_.end());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [this](int a, int b) { return place_of(a) < place_of(b); });
  for (const int process : processes_) {
    counts_.push_back(static_cast<int>(std::count(owners_.begin(), owners_.end(), process)));
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    if (is_here(rank)) here_.push_back(rank);
  }
  hash_ = hash_of_group(devices, 0);
  messenger_.announce(hash_, ids_of(devices), owners_);
}

std::optional<std::shared_ptr<threads::CollectiveExecutor>> SpanningCollectives::executor_of_pair(int from, int to) {
  const auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  if (owners_[a] == owners_[b]) return std::shared_ptr<threads::CollectiveExecutor>();
  const std::vector<Device*> pair{devices_[a], devices_[b]};
  auto executor =
      std::make_shared<SpanningCollectives>(messenger_, transport_, pair, std::vector{owners_[a], owners_[b]});
  executor->hash_ = hash_of_group(pair, hash_);
  messenger_.announce(executor->hash_, ids_of(pair), executor->owners_);
  return executor;
}

int SpanningCollectives::place_of(int rank) const {
  const auto found = std::lower_bound(processes_.begin(), processes_.end(), owners_[static_cast<std::size_t>(rank)]);
  return static_cast<int>(found - processes_.begin());
}

void SpanningCollectives::note_opened(const std::shared_ptr<threads::CollectiveCall>& call) {
  const CallId id = id_of(*call);
  call->set_record_sequence(id.record_sequence());
  messenger_.note_opened(id, call);
}

void SpanningCollectives::ask_to_break(const threads::CollectiveCall& call, const std::exception_ptr& error) {
  messenger_.ask_to_break(id_of(call), call, error);
}

void SpanningCollectives::execute(const threads::CollectiveCall& call) {
  messenger_.begin_turn(id_of(call), call);
  try {
    perform(call);
  } catch (
      const std::exception& error) {  // out of memory; the other processes are inside the call, and would stay there
    std::fputs(fmt::format("tandem: {} on rank {}: {}\n", call.spec().text(), transport_.rank(), error.what()).c_str(),
               stderr);
    transport_.abort(kRunFailed);
  }
  messenger_.end_turn();
}

void SpanningCollectives::perform(const threads::CollectiveCall& call) {
  if (call.spec().count == 0) return;
  switch (call.spec().kind) {
    case CollectiveKind::all_reduce:
      return all_reduce(call);
    case CollectiveKind::reduce:
      return reduce(call);
    case CollectiveKind::broadcast:
      return broadcast(call);
    case CollectiveKind::all_gather:
      return all_gather(call);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(call);
    case CollectiveKind::all_to_all:
      return all_to_all(call);
    case CollectiveKind::send_receive:
      return send_receive(call);
  }
}

void SpanningCollectives::reduce_here(const threads::CollectiveCall& call, std::size_t offset_bytes, std::int64_t count,
                                      std::byte* sum) {
  const CollectiveSpec& spec = call.spec();
  copy_unless_same(sum, data_of(call.input(here_.front()), offset_bytes),
                   static_cast<std::size_t>(count) * size_of(spec.dtype));
  for (std::size_t i = 1; i < here_.size(); ++i) {
    accumulate(spec.dtype, spec.reduction, sum, data_of(call.input(here_[i]), offset_bytes), count);
  }
}

void SpanningCollectives::all_reduce(const threads::CollectiveCall& call) {
  const CollectiveSpec& spec = call.spec();
  std::byte* const sum = data_of(call.output(here_.front()));
  reduce_here(call, 0, spec.count, sum);
  transport_.all_reduce(processes_, sum, spec.count, spec.dtype, spec.reduction);
  for (const int rank : here_) copy_unless_same(data_of(call.output(rank)), sum, spec.part_bytes());
}

void SpanningCollectives::reduce(const threads::CollectiveCall& call) {
  const CollectiveSpec& spec = call.spec();
  Bytes sum(spec.part_bytes());  // the inputs stay as they are but for the root's
  reduce_here(call, 0, spec.count, sum.data());
  transport_.reduce(processes_, place_of(spec.root), sum.data(), spec.count, spec.dtype, spec.reduction);
  if (is_here(spec.root)) copy_unless_same(data_of(call.output(spec.root)), sum.data(), sum.size());
}

void SpanningCollectives::broadcast(const threads::CollectiveCall& call) {
  const CollectiveSpec& spec = call.spec();
  std::byte* const values = is_here(spec.root) ? data_of(call.input(spec.root)) : data_of(call.output(here_.front()));
  transport_.broadcast(processes_, place_of(spec.root), values, static_cast<std::int64_t>(spec.part_bytes()));
  for (const int rank : here_) copy_unless_same(data_of(call.output(rank)), values, spec.part_bytes());
}

void SpanningCollectives::all_gather(const threads::CollectiveCall& call) {
  const std::size_t part = call.spec().part_bytes();
  Bytes mine(part * here_.size()), all(part * owners_.size());
  for (std::size_t i = 0; i < here_.size(); ++i) {
    copy_unless_same(mine.data() + i * part, data_of(call.input(here_[i])), part);
  }
  transport_.all_gather(processes_, mine.data(), all.data(), static_cast<std::int64_t>(part), counts_);
  for (const int rank : here_) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      copy_unless_same(data_of(call.output(rank), static_cast<std::size_t>(order_[i]) * part), all.data() + i * part,
                       part);
    }
  }
}

// In pieces, whose memory does not grow with the call.
void SpanningCollectives::reduce_scatter(const threads::CollectiveCall& call) {
  const CollectiveSpec& spec = call.spec();
  const std::size_t element = size_of(spec.dtype);
  const std::int64_t piece =
      std::clamp<std::int64_t>(kScatterBytes / static_cast<std::int64_t>(element * owners_.size()), 1, spec.count);
  Bytes sums(static_cast<std::size_t>(piece) * element * owners_.size());
  Bytes mine(static_cast<std::size_t>(piece) * element * here_.size());
  for (std::int64_t first = 0; first < spec.count; first += piece) {
    const std::int64_t count = std::min(piece, spec.count - first);
    const std::size_t bytes = static_cast<std::size_t>(count) * element;
    const std::size_t at = static_cast<std::size_t>(first) * element;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      reduce_here(call, static_cast<std::size_t>(order_[i]) * spec.part_bytes() + at, count, sums.data() + i * bytes);
    }
    std::vector<int> elements;
    for (const int ranks_of_process : counts_) elements.push_back(ranks_of_process * static_cast<int>(count));
    transport_.reduce_scatter(processes_, sums.data(), mine.data(), elements, spec.dtype, spec.reduction);
    for (std::size_t i = 0; i < here_.size(); ++i) {
      copy_unless_same(data_of(call.output(here_[i]), at), mine.data() + i * bytes, bytes);
    }
  }
}

// Between two processes go the parts of each sender's ranks, and of each of them those for the receiver's ranks.
void SpanningCollectives::all_to_all(const threads::CollectiveCall& call) {
  const std::size_t part = call.spec().part_bytes(), mine = here_.size();
  Bytes out(part * mine * owners_.size()), in(out.size());
  std::vector<int> parts;
  for (const int theirs : counts_) parts.push_back(theirs * static_cast<int>(mine));
  const auto each = [&](auto&& visit) {
    std::size_t first = 0, at = 0;
    for (const int count : counts_) {
      const auto theirs = static_cast<std::size_t>(count);
      visit(first, theirs, at);
      first += theirs;
      at += theirs * mine * part;
    }
  };
  each([&](std::size_t first, std::size_t theirs, std::size_t at) {
    for (std::size_t from = 0; from < mine; ++from) {
      for (std::size_t to = 0; to < theirs; ++to) {
        copy_unless_same(out.data() + at + (from * theirs + to) * part,
                         data_of(call.input(here_[from]), static_cast<std::size_t>(order_[first + to]) * part), part);
      }
    }
  });
  transport_.all_to_all(processes_, out.data(), parts, in.data(), parts, static_cast<std::int64_t>(part));
  each([&](std::size_t first, std::size_t theirs, std::size_t at) {
    for (std::size_t from = 0; from < theirs; ++from) {
      for (std::size_t to = 0; to < mine; ++to) {
        copy_unless_same(data_of(call.output(here_[to]), static_cast<std::size_t>(order_[first + from]) * part),
                         in.data() + at + (from * mine + to) * part, part);
      }
    }
  });
}

void SpanningCollectives::send_receive(const threads::CollectiveCall& call) {
  const auto bytes = static_cast<std::int64_t>(call.spec().part_bytes());
  if (is_here(0)) return transport_.send(owners_[1], data_of(call.input(0)), bytes);
  transport_.receive(owners_[0], data_of(call.output(1)), bytes);
}

}  // namespace tandem::mpi
