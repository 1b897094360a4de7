// Shared by the files of this folder: the strategies that this API makes, and the checks of contexts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "strategies/strategy/strategy.h"
#include "strategies/tower/variables.h"

namespace tandem::tower {

// A strategy that this API made, with the settings that the library's strategies do not have.
class TowerStrategy final : public Strategy {
 public:
  struct Settings {
    Release release = Release::v1_12;
    bool auto_shard_dataset = false;           // divide input files among the workers
    std::optional<bool> prefetch_on_device{};  // false: leave input on the host
  };
  TowerStrategy(std::string name, std::unique_ptr<StrategyExtended> extended, Settings settings)
      : Strategy(std::move(name), std::move(extended)), settings_(settings) {}
  const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
};

// Returns the settings of a strategy of this API, the default ones for any other.
TowerStrategy::Settings settings_of(const Strategy& strategy);
// Whether the strategy keeps each variable in one place.
bool is_stored(const Strategy& strategy);

// RuntimeError, naming `call`, unless the strategy's own cross-tower context is current.
void require_cross_tower_context(const Strategy& strategy, std::string_view call);
// RuntimeError, naming `call`, unless the strategy is current.
void require_scope(const Strategy& strategy, std::string_view call);

}  // namespace tandem::tower
