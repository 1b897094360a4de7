#include "strategies/cluster/config_resolver.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "strategies/base/errors.h"
#include "strategies/cluster/text.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

// Throws ValueError for text that is not JSON, and TypeError for JSON that is not an object.
Json parsed(const std::string& text) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) {
    const bool has_other_quotes = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
    throw ValueError(fmt::format("TF_CONFIG is not JSON: {}{}", text,
                                 has_other_quotes ? "; JSON has double quotes, as json.dumps() writes them" : ""));
  }
  if (!document.is_object()) throw TypeError(fmt::format("TF_CONFIG must be a map, not {}", document.type_name()));
  return document;
}

// Returns a field of the document's "task", or null.
Json task_field(const Json& config, const char* name) {
  const Json task = config.value("task", Json::object());
  if (!task.is_object()) {
    throw TypeError(fmt::format("'task' must be a map with 'type' and 'index', not {}", task.dump()));
  }
  return task.value(name, Json());
}

std::optional<std::string> text_field(const Json& config, const char* name) {
  const Json field = config.value(name, Json());
  if (field.is_null()) return {};
  if (!field.is_string()) throw TypeError(fmt::format("'{}' must be text, not {}", name, field.dump()));
  return field.get<std::string>();
}

int index_of(const Json& index) {
  if (index.is_number_float() && index.get<double>() != std::floor(index.get<double>())) {
    throw ValueError(fmt::format("task index {} must be a whole number", index.dump()));
  }
  if (index.is_number()) return index.get<int>();
  if (!index.is_string()) throw TypeError(fmt::format("task index {} must be a number", index.dump()));
  const std::optional<int> number = whole_number(index.get<std::string>());
  if (!number) throw ValueError(fmt::format("task index {} must be a whole number", index.dump()));
  return *number;
}

bool has_at_most_one_task(const ClusterSpec& cluster) {
  const std::vector<std::string> jobs = cluster.jobs();
  return jobs.empty() || (jobs.size() == 1 && cluster.job_tasks(jobs.front()).size() == 1);
}

}  // namespace

ClusterSpec ConfigResolver::cluster_spec() const {
  const Json document = parsed(config());
  return document.contains("cluster") ? ClusterSpec::from_json(document["cluster"].dump()) : ClusterSpec();
}

std::optional<std::string> ConfigResolver::task_type() const {
  if (overrides().task_type) return overrides().task_type;
  const Json type = task_field(parsed(config()), "type");
  if (type.is_null()) return {};
  return type.is_string() ? type.get<std::string>() : type.dump();
}

std::optional<int> ConfigResolver::task_id() const {
  if (overrides().task_id) return overrides().task_id;
  const Json index = task_field(parsed(config()), "index");
  return index.is_null() ? std::nullopt : std::optional(index_of(index));
}

std::optional<std::string> ConfigResolver::rpc_layer() const {
  return overrides().rpc_layer ? overrides().rpc_layer : text_field(parsed(config()), "rpc_layer");
}

std::string ConfigResolver::find_master(const TaskQuery& query) const {
  if (const auto session_master = text_field(parsed(config()), "session_master")) return *session_master;
  const ClusterSpec cluster = cluster_spec();
  if (has_at_most_one_task(cluster)) return "";
  const auto type = query.task_type ? query.task_type : task_type();
  const auto id = query.task_id ? query.task_id : task_id();
  if (!type || !id) throw ValueError("the master of which task? Give task type and id, or 'task' in the configuration");
  const auto layer = query.rpc_layer ? query.rpc_layer : rpc_layer();
  return format_master_url(cluster.task_address(*type, *id), layer.value_or(""));
}

AcceleratorCounts ConfigResolver::count_accelerators(const TaskQuery& query) const {
  return ClusterResolver::count_accelerators({.task_type = query.task_type ? query.task_type : task_type(),
                                              .task_id = query.task_id ? query.task_id : task_id()});
}

}  // namespace tandem
