#include "engine/mpi/clocks.h"

#include <limits>

namespace tandem::mpi {
namespace {

constexpr int kExchanges = 16;
constexpr int kTag = kFirstFreeTag;  // no run is under way that could use it

ClockReading read_clock(Transport& transport, int rank, const std::function<Nanoseconds()>& now) {
  ClockReading best{.error_ns = std::numeric_limits<Nanoseconds>::max()};
  for (int i = 0; i < kExchanges; ++i) {
    Nanoseconds theirs = 0;
    const Nanoseconds asked = now();
    transport.send(rank, kTag, &asked, sizeof(asked));
    transport.receive(rank, kTag, &theirs, sizeof(theirs));
    const Nanoseconds answered = now();
    const Nanoseconds error = (answered - asked + 1) / 2;
    if (transport.is_lost(rank)) return {};
    if (error < best.error_ns) best = {theirs, theirs - asked - (answered - asked) / 2, error};
  }
  return best;
}

}  // namespace

std::vector<ClockReading> read_clocks(Transport& transport, const std::function<Nanoseconds()>& now) {
  if (transport.rank() > 0) {
    for (int i = 0; i < kExchanges; ++i) {
      Nanoseconds asked = 0;
      transport.receive(0, kTag, &asked, sizeof(asked));
      const Nanoseconds mine = now();
      transport.send(0, kTag, &mine, sizeof(mine));
    }
    return {};
  }
  std::vector<ClockReading> readings(1);
  readings.front().at_ns = now();
  for (int rank = 1; rank < transport.size(); ++rank) readings.push_back(read_clock(transport, rank, now));
  return readings;
}

Nanoseconds AlignedClock::on_rank_0(Nanoseconds at_ns) const {
  const auto span = static_cast<double>(end.at_ns - begin.at_ns);
  const double share = span > 0 ? static_cast<double>(at_ns - begin.at_ns) / span : 0;
  return at_ns - begin.offset_ns - static_cast<Nanoseconds>(share * static_cast<double>(drift_ns()));
}

}  // namespace tandem::mpi
