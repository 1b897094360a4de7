#include "scenarios/import/base/origins.h"

namespace tandem {
namespace {

bool is_part_of(const std::string& path, const std::string& key) {
  return path.starts_with(key) && (path.size() == key.size() || path[key.size()] == '.' || path[key.size()] == '[');
}

const Origin* origin_of(const std::string& path, const std::vector<Origin>& origins) {
  const Origin* nearest = nullptr;
  for (const Origin& origin : origins) {
    const bool is_nearer = nearest == nullptr || origin.key.size() > nearest->key.size();
    if (is_nearer && is_part_of(path, origin.key)) nearest = &origin;
  }
  return nearest;
}

}  // namespace

InputError at_origins(const InputError& error, const std::string& scenario, const std::vector<Origin>& origins) {
  std::vector<Diagnostic> problems = error.diagnostics();
  for (Diagnostic& problem : problems) {
    if (problem.file != scenario) continue;
    const Origin* const origin = origin_of(problem.path, origins);
    if (origin == nullptr) continue;
    std::string message = std::move(problem.message);
    problem = origin->given;
    problem.message = std::move(message);
  }
  return InputError(std::move(problems));
}

}  // namespace tandem
