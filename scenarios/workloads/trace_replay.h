// Plays recorded ranks again. Kernels take the times that were recorded, collectives the times of this engine's
// communicators, and each begins after what it waited for.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "scenarios/import/traces/trace.h"
#include "scenarios/workloads/workload.h"
#include "strategies/parallel/layout/group_collectives.h"

namespace tandem {

class TraceReplay final : public Workload {
 public:
  TraceReplay(const TraceSettings& settings, Worker& worker);

  void prepare() override;
  void run_step(int step) override;
  void finish(Report& report, bool carries_values) override;
  std::string throughput_unit() const override { return "traces/s"; }

 private:
  // The part that one local device plays.
  struct Player {
    Device* device = nullptr;
    int rank = 0;
    const RankTrace* trace = nullptr;
    std::vector<GroupCollectives*> groups{};  // as in the trace
    std::vector<bool> is_awaited{};           // ops that others, or the host, wait for
    Tensor input{}, output{};                 // of collectives
  };

  Player make_player(Device& device, int rank);
  GroupCollectives* group(const std::vector<int>& ranks);
  void exchange(const Player& player, const TraceOp& op, Stream& stream) const;
  DeviceId id_of(int rank) const;
  bool is_exchange(const TraceOp& op) const;
  void play(const Player& player) const;
  void issue(const Player& player, const TraceOp& op, Stream& stream) const;

  TraceSettings settings_;
  Worker& worker_;
  int devices_of_worker_ = 1;
  std::vector<Player> players_;
  std::map<std::vector<int>, std::unique_ptr<GroupCollectives>> groups_;
};

}  // namespace tandem
