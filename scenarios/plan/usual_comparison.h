// The scenario as it is beside the best point of a plan, and what one would change in it first.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/plan/hand_changes.h"
#include "scenarios/plan/plan_store.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {

class UsualComparison {
 public:
  // All must outlive this. `topology` is for scenarios that name none; `tick` is called a few times a second.
  UsualComparison(const SweepSpace& space, const std::vector<SweepSpace::Point>& points, PlanStore& store,
                  std::shared_ptr<const Topology> topology, int processes, std::function<void()> tick)
      : space_(space),
        points_(points),
        store_(store),
        topology_(std::move(topology)),
        processes_(processes),
        tick_(std::move(tick)) {}

  // Simulates the scenario as it is, quickly, and with differences from the best point, and adds what that gives to the
  // table. Passes on what `tick` throws.
  void run(PlanTable& table);

 private:
  using Take = std::function<void(std::size_t variant, SweptPoint point)>;
  void change_by_hand(PlanTable& table, std::size_t best);
  HandChange hand_change(const PlanTable& table, std::size_t best, const ChangedFields& fields, SweptPoint point) const;
  // Simulates the scenario with some values of the point at `place`, for each variant, and takes the results in order.
  void run_variants(const std::vector<ChangedFields>& variants, std::size_t place, const Take& take);
  void simulate(const std::vector<ChangedFields>& variants, const std::vector<int>& jobs, std::size_t place);
  SweepSpace::Values values_of(const ChangedFields& fields, std::size_t place) const;

  const SweepSpace& space_;
  const std::vector<SweepSpace::Point>& points_;
  PlanStore& store_;
  std::shared_ptr<const Topology> topology_;
  int processes_;
  std::function<void()> tick_;
};

}  // namespace tandem
