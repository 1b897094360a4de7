#include "strategies/cluster/sage_maker_resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

std::string required(const Environment& variables, const char* name) {
  const std::optional<std::string> value = variables.get(name);
  if (!value) throw AssertionError(fmt::format("{} is not set: not a SageMaker environment", name));
  return *value;
}

}  // namespace

std::vector<std::string> SageMakerResolver::hosts() const {
  const std::string text = required(variables_, "SM_HOSTS");
  if (text.empty()) return {};
  const Json list = Json::parse(text, nullptr, false);
  const bool is_text =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& host) { return host.is_string(); });
  if (!is_text) throw ValueError(fmt::format("SM_HOSTS must be a JSON list of host names, not '{}'", text));
  auto names = list.get<std::vector<std::string>>();
  std::sort(names.begin(), names.end());
  return names;
}

std::string SageMakerResolver::config() const {
  const std::string current = required(variables_, "SM_CURRENT_HOST");
  const std::vector<std::string> names = hosts();
  const auto own = std::find(names.begin(), names.end(), current);
  if (own == names.end()) return "{}";
  Json addresses = Json::array();
  for (const std::string& name : names) addresses.push_back(fmt::format("{}:{}", name, port_));
  const Json task = {{"type", "worker"}, {"index", own - names.begin()}};
  return Json{{"cluster", {{"worker", addresses}}}, {"task", task}}.dump();
}

}  // namespace tandem
