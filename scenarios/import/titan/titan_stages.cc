// Facts from pytorch/torchtitan, torchtitan/distributed/pipeline_parallel.py (pipeline_llm,
// generate_llm_fqn_per_model_part).
#include "scenarios/import/titan/titan_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace tandem {
namespace {

constexpr const char* kLayersOfStage = "parallelism.pipeline_parallel_layers_per_stage";

std::int64_t stages_of_device(const TitanJob& job, std::int64_t weight) {
  if (job.blocks_of_stage == 0) return job.stages.usual;
  const std::int64_t stages = (weight + job.blocks_of_stage - 1) / job.blocks_of_stage;
  const std::string found = fmt::format(
      "{} layers and what the first and the last stage have besides, which counts as {}, make {} stages of {}",
      job.blocks, job.first_less + job.last_less, stages, job.blocks_of_stage);
  if (stages % job.pipeline != 0)
    job.fail(kLayersOfStage, fmt::format("{}; {} devices do not divide them", found, job.pipeline));
  const std::int64_t each = stages / job.pipeline;
  if (each >= job.stages.least && each <= job.stages.most) return each;
  job.fail(kLayersOfStage,
           fmt::format("{}, {} for each of {} devices; the schedule needs {}{}", found, each, job.pipeline,
                       job.stages.most > job.stages.least ? "at least " : "", job.stages.least));
}

}  // namespace

StagesOfTitan stages_of_titan(const TitanJob& job) {
  if (job.pipeline == 1) return {};
  const std::int64_t weight = job.blocks + job.first_less + job.last_less;  // the embedding, the norm and the output
  StagesOfTitan result{.of_device = stages_of_device(job, weight)};
  const std::int64_t count = job.pipeline * result.of_device, each = weight / count;
  if (each == 0) {
    job.fail("parallelism.pipeline_parallel_degree",
             fmt::format("{} layers are too few for {} stages", job.blocks, count));
  }
  for (const auto& [key, less] : {std::pair("first", job.first_less), std::pair("last", job.last_less)}) {
    if (less <= each) continue;
    job.fail(fmt::format("parallelism.pipeline_parallel_{}_stage_less_layers", key),
             fmt::format("{} is more than the {} layers of a stage", less, each));
  }
  for (std::int64_t stage = 0; stage < count; ++stage) result.blocks.push_back(each + (stage < weight % count ? 1 : 0));
  result.blocks.front() -= job.first_less;
  result.blocks.back() -= job.last_less;
  if (std::ranges::adjacent_find(result.blocks, std::ranges::not_equal_to()) == result.blocks.end())
    result.blocks.clear();
  return result;
}

}  // namespace tandem
