#include "scenarios/faults/fault_settings.h"

#include "topologies/base/error.h"

namespace tandem {

const char* name_of(RecoveryPolicy policy) {
  switch (policy) {
    case RecoveryPolicy::end:
      return "end";
    case RecoveryPolicy::restart_all:
      return "restart_all";
    case RecoveryPolicy::wait:
      return "wait";
    case RecoveryPolicy::continue_:
      return "continue";
    case RecoveryPolicy::elastic:
      return "elastic";
    case RecoveryPolicy::spare:
      return "spare";
  }
  TANDEM_UNREACHABLE("a RecoveryPolicy outside its enumerators");
}

}  // namespace tandem
