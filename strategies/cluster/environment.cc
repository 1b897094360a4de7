#include "strategies/cluster/environment.h"

#include <cstdlib>

namespace tandem {
namespace {

class ProcessEnvironment final : public Environment {
 public:
  std::optional<std::string> get(const std::string& name) const override {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  void set(const std::string& name, const std::string& value) override { setenv(name.c_str(), value.c_str(), 1); }
};

}  // namespace

Environment& process_environment() {
  static ProcessEnvironment environment;
  return environment;
}

std::optional<std::string> FixedEnvironment::get(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tandem
