// The strategy that is current outside every scope: one replica, no devices.
#pragma once

#include "strategies/strategy/strategy.h"

namespace tandem {

Strategy& default_strategy();
ReplicaContext& default_replica_context();

}  // namespace tandem
