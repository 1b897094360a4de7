#include "scenarios/import/titan/titan_job.h"

namespace tandem {

Diagnostic TitanJob::place_of(const std::string& key) const {
  const auto place = places.find(key);
  return problem_at(file, place == places.end() ? kBeginning : place->second, "", key);
}

void TitanJob::fail(const std::string& key, const std::string& message) const {
  Diagnostic problem = place_of(key);
  problem.message = message;
  throw InputError({problem});
}

}  // namespace tandem
