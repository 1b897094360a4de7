#include "strategies/parallel/layout/parallel_options.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/parallel/layout/nearest_sizes.h"

namespace tandem {

void check_interleaving(const ParallelOptions& options) {
  if (options.virtual_stages == 1) return;
  if (options.pipeline == 1) {
    throw ValueError(fmt::format("{} virtual stages of each device need a pipeline of at least two devices",
                                 options.virtual_stages));
  }
  if (options.micro_batches % options.pipeline != 0) {
    throw ValueError(
        fmt::format("with virtual stages, micro-batches go through the {} devices of a pipeline in "
                    "rounds of {}; {} of them do not divide into rounds, {}",
                    options.pipeline, options.pipeline, options.micro_batches,
                    nearest_multiples(options.pipeline, options.micro_batches)));
  }
}

}  // namespace tandem
