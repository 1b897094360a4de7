#include "engine/mpi/spanning_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "engine/kernels/kernels.h"

namespace tandem::mpi {
namespace {

constexpr std::int64_t kScatterBytes = std::int64_t{8} << 20;  // of a piece of a reduce_scatter, all parts together

}  // namespace

SpanningCollectives::SpanningCollectives(Messenger& messenger, Transport& transport,
                                         const std::vector<Device*>& devices, std::vector<int> owners,
                                         threads::ProcessMachine* machine)
    : SpanningCollectives(messenger, transport, devices, std::move(owners), machine, 0) {}

SpanningCollectives::SpanningCollectives(Messenger& messenger, Transport& transport,
                                         const std::vector<Device*>& devices, std::vector<int> owners,
                                         threads::ProcessMachine* machine, std::uint64_t salt)
    : VotedCollectives(messenger, transport.rank(), devices, std::move(owners), salt),
      transport_(transport),
      machine_(machine),
      staging_(machine == nullptr ? nullptr : &machine->staging()),
      order_(devices.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [this](int a, int b) { return place_of(a) < place_of(b); });
  for (const int process : group().processes) {
    counts_.push_back(static_cast<int>(std::count(this->owners().begin(), this->owners().end(), process)));
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    if (is_here(rank)) here_.push_back(rank);
  }
}

std::optional<std::shared_ptr<threads::CollectiveExecutor>> SpanningCollectives::executor_of_pair(int from, int to) {
  const std::vector<Device*> pair{device(from), device(to)};
  if (owner(from) == owner(to)) {
    return machine_ == nullptr || !is_here(from) ? nullptr : local_pairs_.get(*machine_, from, to, pair);
  }
  return std::shared_ptr<SpanningCollectives>(
      new SpanningCollectives(messenger(), transport_, pair, {owner(from), owner(to)}, machine_, group().hash));
}

int SpanningCollectives::place_of(int rank) const {
  const std::vector<int>& processes = group().processes;
  return static_cast<int>(std::lower_bound(processes.begin(), processes.end(), owner(rank)) - processes.begin());
}

void SpanningCollectives::execute(const threads::CollectiveCall& call) {
  const CallId id = id_of(call);
  HostCall host = prepare_vote(call, [&] { return HostCall(call, here_, staging_); });
  if (is_small(host.spec())) {
    std::string mine = prepare_vote(call, [&] { return values_given(host); });
    take_values(host, messenger().agree(id, call, CallOrder::none, std::move(mine)).values);
    return host.store();
  }
  const AgreedCall agreed = messenger().agree(id, call, CallOrder::group, "");
  try {
    execute_by_mpi(host, {.ranks = group().processes, .group = group().hash, .tag = agreed.tag});
  } catch (const std::exception& error) {  // out of memory; the other processes would stay inside the call
    const std::string reason = fmt::format("{} on rank {}: {}", call.spec().text(), transport_.rank(), error.what());
    std::fputs(fmt::format("tandem: {}\n", reason).c_str(), stderr);
    transport_.abort(kRunFailed, reason);
  }
  messenger().end_turn(id, CallOrder::group);
  host.store();
}

void SpanningCollectives::execute_by_mpi(const HostCall& call, const Channel& channel) {
  switch (call.spec().kind) {
    case CollectiveKind::all_reduce:
      return all_reduce(call, channel);
    case CollectiveKind::reduce:
      return reduce(call, channel);
    case CollectiveKind::broadcast:
      return broadcast(call, channel);
    case CollectiveKind::all_gather:
      return all_gather(call, channel);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(call, channel);
    case CollectiveKind::all_to_all:
      return all_to_all(call, channel);
    case CollectiveKind::send_receive:
      return send_receive(call, channel.tag);
  }
}

void SpanningCollectives::reduce_here(const HostCall& call, std::size_t offset_bytes, std::int64_t count,
                                      std::byte* sum) {
  const CollectiveSpec& spec = call.spec();
  copy_unless_same(sum, call.input(here_.front(), offset_bytes), static_cast<std::size_t>(count) * size_of(spec.dtype));
  for (std::size_t i = 1; i < here_.size(); ++i) {
    accumulate(spec.dtype, spec.reduction, sum, call.input(here_[i], offset_bytes), count);
  }
}

void SpanningCollectives::all_reduce(const HostCall& call, const Channel& channel) {
  const CollectiveSpec& spec = call.spec();
  std::byte* const sum = call.output(here_.front());
  reduce_here(call, 0, spec.count, sum);
  transport_.all_reduce(channel, sum, spec.count, spec.dtype, spec.reduction);
  for (const int rank : here_) copy_unless_same(call.output(rank), sum, spec.part_bytes());
}

void SpanningCollectives::reduce(const HostCall& call, const Channel& channel) {
  const CollectiveSpec& spec = call.spec();
  Bytes sum(spec.part_bytes());  // only the root's input may change
  reduce_here(call, 0, spec.count, sum.data());
  transport_.reduce(channel, place_of(spec.root), sum.data(), spec.count, spec.dtype, spec.reduction);
  if (is_here(spec.root)) copy_unless_same(call.output(spec.root), sum.data(), sum.size());
}

void SpanningCollectives::broadcast(const HostCall& call, const Channel& channel) {
  const CollectiveSpec& spec = call.spec();
  std::byte* const values = is_here(spec.root) ? call.input_to_send(spec.root) : call.output(here_.front());
  transport_.broadcast(channel, place_of(spec.root), values, static_cast<std::int64_t>(spec.part_bytes()));
  for (const int rank : here_) copy_unless_same(call.output(rank), values, spec.part_bytes());
}

void SpanningCollectives::all_gather(const HostCall& call, const Channel& channel) {
  const std::size_t part = call.spec().part_bytes();
  Bytes mine(part * here_.size()), all(part * owners().size());
  for (std::size_t i = 0; i < here_.size(); ++i) {
    copy_unless_same(mine.data() + i * part, call.input(here_[i]), part);
  }
  transport_.all_gather(channel, mine.data(), all.data(), static_cast<std::int64_t>(part), counts_);
  for (const int rank : here_) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      copy_unless_same(call.output(rank, static_cast<std::size_t>(order_[i]) * part), all.data() + i * part, part);
    }
  }
}

// Works in pieces, so that its memory does not grow with the call.
void SpanningCollectives::reduce_scatter(const HostCall& call, const Channel& channel) {
  const CollectiveSpec& spec = call.spec();
  const std::size_t element = size_of(spec.dtype);
  const std::int64_t piece =
      std::clamp<std::int64_t>(kScatterBytes / static_cast<std::int64_t>(element * owners().size()), 1, spec.count);
  Bytes sums(static_cast<std::size_t>(piece) * element * owners().size());
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
    transport_.reduce_scatter(channel, sums.data(), mine.data(), elements, spec.dtype, spec.reduction);
    for (std::size_t i = 0; i < here_.size(); ++i) {
      copy_unless_same(call.output(here_[i], at), mine.data() + i * bytes, bytes);
    }
  }
}

// A process sends to another one, for each of its own ranks, the parts for each of the other's ranks.
void SpanningCollectives::all_to_all(const HostCall& call, const Channel& channel) {
  const std::size_t part = call.spec().part_bytes(), mine = here_.size();
  Bytes out(part * mine * owners().size()), in(out.size());
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
                         call.input(here_[from], static_cast<std::size_t>(order_[first + to]) * part), part);
      }
    }
  });
  transport_.all_to_all(channel, out.data(), parts, in.data(), parts, static_cast<std::int64_t>(part));
  each([&](std::size_t first, std::size_t theirs, std::size_t at) {
    for (std::size_t from = 0; from < theirs; ++from) {
      for (std::size_t to = 0; to < mine; ++to) {
        copy_unless_same(call.output(here_[to], static_cast<std::size_t>(order_[first + from]) * part),
                         in.data() + at + (from * mine + to) * part, part);
      }
    }
  });
}

void SpanningCollectives::send_receive(const HostCall& call, int tag) {
  const auto bytes = static_cast<std::int64_t>(call.spec().part_bytes());
  if (is_here(0)) return transport_.send(owners()[1], tag, call.input(0), bytes);
  transport_.receive(owners()[0], tag, call.output(1), bytes);
}

}  // namespace tandem::mpi
