#include "cli/base/join.h"

#include "cli/base/interrupt.h"
#include "scenarios/job/launch.h"

namespace tandem {

LaunchedJob* join_processes(const EngineInfo* engine) {
  if (engine == nullptr || engine->join == nullptr) return nullptr;
  take_task_of_tf_config();
  if (!tasks_of_process().names.empty()) {
    static const OrderlyEnd together;  // until the process ends
  }
  return engine->join();
}

}  // namespace tandem
