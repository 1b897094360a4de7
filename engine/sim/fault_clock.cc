#include "engine/sim/fault_clock.h"

#include <algorithm>
#include <cmath>

#include "engine/base/philox.h"
#include "topologies/base/portable_math.h"

namespace tandem::sim {
namespace {

bool has_link(const SlowLinks& slow, LinkIndex link) {
  return std::ranges::find(slow.links, link) != slow.links.end();
}

// The logarithm of a lognormal number is normal; a sum of twelve uniform numbers nearly is, and every compiler draws
// the same.
double lognormal(double variation, std::uint64_t seed, std::uint64_t stream, std::uint64_t draw) {
  constexpr double kWord = 0x1p-32;
  double normal = -6;
  for (std::uint32_t block = 0; block < 3; ++block) {
    const PhiloxWords words =
        philox({static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32),
                static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32) + (block << 16)},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    for (const std::uint32_t word : words) normal += word * kWord;
  }
  const double variance = portable::log(1 + variation * variation);
  return portable::exp(std::sqrt(variance) * normal - variance / 2);
}

}  // namespace

FaultClock::FaultClock(const Faults& faults, Simulation& simulation, Calls calls)
    : faults_(faults),
      simulation_(simulation),
      calls_(std::move(calls)),
      counts_uses_(std::ranges::any_of(faults.lost_workers, [](const auto& lost) { return lost.call.has_value(); })),
      dates_(dates_of(faults)) {
  for (const SlowDevices& slow : faults.slow_devices) slow_of_worker_[slow.worker].slow_devices.push_back(slow);
}

std::vector<double> FaultClock::dates_of(const Faults& faults) {
  std::vector<double> dates;
  const auto add = [&](double date_s) {
    if (std::isfinite(date_s)) dates.push_back(date_s);
  };
  for (const SlowLinks& slow : faults.slow_links) {
    if (slow.when.first_step) continue;
    add(slow.when.from_s);
    add(slow.when.to_s);
  }
  for (const LostWorker& lost : faults.lost_workers) {
    if (lost.has_date()) add(lost.at_s);
  }
  std::ranges::sort(dates);
  return dates;
}

void FaultClock::begin_step(int worker, int step) {
  in_kernel([&] {
    if (!has_begun_) begin();
    for (const LostWorker& lost : faults_.lost_workers) {
      if (lost.step == step && worker == (lost.ends_run ? lost.worker : 0)) lose(lost);
    }
    if (worker == 0) set_links(step);
  });
}

void FaultClock::note_use(int worker) {
  const std::int64_t use = uses_[worker]++;
  for (const LostWorker& lost : faults_.lost_workers) {
    if (lost.worker == worker && lost.call == use) in_kernel([&] { lose(lost); });
  }
}

void FaultClock::begin() {
  has_begun_ = true;
  begin_s_ = Simulation::now_s();
  reach();
}

// Calls reach() at each date, those that are due already among them.
void FaultClock::reach() {
  while (next_date_ < dates_.size() && dates_[next_date_] <= seconds_since_begin()) ++next_date_;
  set_links(step_of_links_);
  lose_by_date();
  if (next_date_ == dates_.size()) return;
  simgrid_compat::at(begin_s_ + dates_[next_date_], [this] {
    if (calls_.goes_on()) reach();
  });
}

void FaultClock::set_links(int step) {
  step_of_links_ = step;
  std::unordered_map<LinkIndex, double> factors;
  for (const SlowLinks& slow : faults_.slow_links) {
    const bool is_now = slow.when.contains(seconds_since_begin(), step);
    for (const LinkIndex link : slow.links) factors.try_emplace(link, 1).first->second *= is_now ? slow.factor : 1;
  }
  for (const auto& [link, factor] : factors) simulation_.platform().set_share(link, 1 / factor);
}

void FaultClock::lose_by_date() {
  for (const LostWorker& lost : faults_.lost_workers) {
    const bool is_due = lost.has_date() && lost.at_s <= seconds_since_begin();
    if (is_due && lost_.insert(&lost).second) lose(lost);
  }
}

// That a worker comes back keeps the simulation alive: others may wait for it.
void FaultClock::lose(const LostWorker& lost) {
  calls_.lose(lost, true);
  if (lost.ends_run || !std::isfinite(lost.back_after_s)) return;
  simulation_.set_alarm(Simulation::now_s() + lost.back_after_s, [this, &lost] { calls_.lose(lost, false); });
}

double FaultClock::factor_of_op(const PlaceOfDevice& device, int step) {
  if (!has_begun_) return 1;
  const auto slow = slow_of_worker_.find(device.worker);
  const double slowdown = slow == slow_of_worker_.end()
                              ? 1
                              : slowdown_of(slow->second, device.worker, device.device, seconds_since_begin(), step);
  return slowdown * next_factor(Jitter::On::compute, device.index);
}

double FaultClock::next_factor(Jitter::On what, int thing) {
  double factor = 1;
  for (std::size_t i = 0; i < faults_.jitter.size(); ++i) {
    const Jitter& jitter = faults_.jitter[i];
    if (jitter.on != what || !has_begun_) continue;
    const std::uint64_t stream = (std::uint64_t{i} << 40) + static_cast<std::uint64_t>(thing);
    factor *= lognormal(jitter.variation, jitter.seed, stream, draws_[stream]++);
  }
  return factor;
}

bool FaultClock::varies(Jitter::On what) const {
  return std::ranges::any_of(faults_.jitter, [what](const Jitter& jitter) { return jitter.on == what; });
}

bool FaultClock::changes(const Route& route) const {
  return std::ranges::any_of(faults_.slow_links, [&](const SlowLinks& slow) {
    return std::ranges::any_of(route.hops, [&](const Edge& hop) { return has_link(slow, hop.link); });
  });
}

}  // namespace tandem::sim
