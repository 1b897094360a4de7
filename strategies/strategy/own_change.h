// A change of a variable in cross-replica context, in which a worker does not meet the others.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/purpose.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"

namespace tandem {

// Notes the change with the strategy, if the program itself makes it: directly, or in a merge_call of its own. Lives as
// long as the change is made; what changes inside it belongs to it.
class OwnChange {
 public:
  OwnChange(Strategy& strategy, std::string_view call, const Variable& variable) {
    const Name purpose = Task::current().purpose();
    if (!purpose.empty() && purpose != MergePurpose().text()) return;
    strategy.extended().note_change(call, variable);
    detail_.emplace(std::string(call));
  }

 private:
  std::optional<CallDetail> detail_;
};

}  // namespace tandem
