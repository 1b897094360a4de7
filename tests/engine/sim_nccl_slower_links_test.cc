// What slows one link speeds up no collective, on random machines: unless NCCL itself then chooses another algorithm,
// protocol or number of channels, by its table, which knows less of the machine than the mechanism does.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "tests/engine/sim_nccl_machines.h"

namespace tandem::sim::nccl {
namespace {

constexpr int kMachines = 3000;
constexpr double kRounding = 1e-9;

class RandomMachines {
 public:
  Machine machine() {
    const int gpus = pick(std::array{1, 2, 4, 8});
    const int domains = gpus == 1 ? pick(std::array{2, 3, 4, 8}) : pick(std::array{1, 2, 3, 4, 8});
    Machine machine = node(gpus);
    machine.has_amd_host = pick(std::array{0, 1}) == 1;
    machine = over_nodes(machine, gpus, domains);
    if (domains == 1) return machine;
    machine.nics = pick(std::array{1, 2, 4, 8});
    machine.nic_gbs = pick(std::array{1.25, 3.0, 5.0, 12.5, 25.0, 50.0});
    machine.hop_us = pick(std::array{0.0, 0.0, 15.0, 60.0});
    machine.nics_are_near = pick(std::array{0, 1}) == 1;
    return machine;
  }

  // Slows one link or one kind of link, and says which.
  std::string slow(Machine& machine) {
    const double factor = pick(std::array{1.1, 2.0, 4.0, 25.0});
    const bool is_network = machine.domains > 1 && pick(std::array{0, 1}) == 1;
    if (is_network && pick(std::array{0, 1}) == 1) {
      machine.wire_us += factor;
      return "latency of the network";
    }
    if (is_network) {
      machine.nic_gbs /= factor;
      return "NICs";
    }
    if (pick(std::array{0, 1}) == 1) {
      machine.link_us += factor;
      return "latency of links";
    }
    machine.gpu_gbs /= factor;
    machine.gpu_wire_gbs /= factor;
    for (double& gbs : machine.mesh_gbs) gbs /= factor;
    return "links";
  }

  Call call() {
    const auto kind =
        pick(std::array{CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::broadcast,
                        CollectiveKind::reduce_scatter, CollectiveKind::reduce, CollectiveKind::all_to_all});
    return {kind, std::ldexp(1.0, pick(std::array{8, 11, 13, 15, 16, 17, 18, 19, 20, 21, 22, 24, 27, 30}))};
  }

 private:
  Machine node(int gpus) {
    switch (pick(std::array{0, 1, 2, 3, 4})) {
      case 0:
        return dgx_a100();
      case 1:
        return hgx_h100();
      case 2:
        return gpus == 4 ? a100_full_mesh() : hgx_b200();
      case 3:
        return pcie(80, 24);
      default:
        return pcie(89, 12);
    }
  }

  template <typename T, std::size_t count>
  T pick(const std::array<T, count>& values) {
    return values[random_() % count];
  }

  std::mt19937 random_{7};
};

struct Timed {
  double us = 0;
  std::string choice;
};

Timed timed(const Machine& machine, const Call& call) {
  Survey survey{.machine = machine};
  for (int domain = 0; domain < machine.domains; ++domain) {
    survey.domains.emplace_back(static_cast<std::size_t>(machine.gpus));
    std::iota(survey.domains.back().begin(), survey.domains.back().end(), domain * machine.gpus);
  }
  const Plan plan = Communicator(std::move(survey), {}).plan(call);
  return {(plan.fixed_s + plan.transfer_s) * 1e6, plan.algorithm};
}

TEST(SlowerLinks, SpeedNothingUp) {
  RandomMachines random;
  int compared = 0, faster = 0;
  for (int i = 0; i < kMachines; ++i) {
    const Machine fast = random.machine();
    Machine slow = fast;
    const std::string what = random.slow(slow);
    const Call call = random.call();
    const Timed before = timed(fast, call);
    const Timed after = timed(slow, call);
    if (before.choice != after.choice) {
      if (after.us < 0.97 * before.us) ++faster;
      continue;
    }
    ++compared;
    EXPECT_GE(after.us, before.us * (1 - kRounding))
        << what << " of " << fast.domains << " x " << fast.gpus << " GPUs of " << fast.capability << " with "
        << fast.nics << " NICs of " << fast.nic_gbs << " GB/s, then " << slow.nic_gbs << ", " << slow.gpu_gbs << ": "
        << name_of(call.kind) << " of " << call.bytes << " bytes, " << before.choice;
  }
  EXPECT_GT(compared, kMachines / 2);
  EXPECT_LT(faster, kMachines / 50) << "by another choice of NCCL";
}

}  // namespace
}  // namespace tandem::sim::nccl
