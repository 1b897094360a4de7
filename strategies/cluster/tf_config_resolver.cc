#include "strategies/cluster/tf_config_resolver.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "strategies/base/errors.h"

namespace tandem {

nlohmann::json TfConfigResolver::config() const {
  const std::string text = variables_.get("TF_CONFIG").value_or("{}");
  nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  if (config.is_discarded()) throw ValueError(fmt::format("TF_CONFIG is not JSON: '{}'", text));
  if (!config.is_object()) throw TypeError(fmt::format("TF_CONFIG must be a map, not {}", config.type_name()));
  return config;
}

}  // namespace tandem
