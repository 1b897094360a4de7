// For cases on several workers whose programs must all come to the same.
#pragma once

#include "tests/conformance/tf/stage.h"

namespace tandem {

// As staged(), but gives the one result of all workers; where they differ, the list.
inline CaseFunction agreed(std::function<Json(Stage& stage)> steps) {
  return [steps = staged(std::move(steps))](const CaseWorld& world) -> Json {
    Json results = steps(world);
    if (!results.is_array()) return results;
    for (const Json& result : results) {
      if (result != results.front()) return {{"workers_differ", results}};
    }
    return results.front();
  };
}

}  // namespace tandem
