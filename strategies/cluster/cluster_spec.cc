#include "strategies/cluster/cluster_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "strategies/base/errors.h"
#include "strategies/cluster/text.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

std::map<int, std::string> numbered(const auto& addresses) {
  std::map<int, std::string> by_index;
  for (const std::string& address : addresses) by_index.emplace(static_cast<int>(by_index.size()), address);
  return by_index;
}

int index_of(const std::string& job, const std::string& text) {
  const std::optional<int> index = whole_number(text);
  if (!index) throw ValueError(fmt::format("task index '{}' of job '{}' must be a whole number", text, job));
  return *index;
}

std::string address_of(const std::string& job, const Json& address) {
  if (!address.is_string()) {
    throw TypeError(fmt::format("address {} of a task of job '{}' must be text", address.dump(), job));
  }
  return address.get<std::string>();
}

JobTasks job_tasks_of(const std::string& job, const Json& tasks) {
  std::map<int, std::string> by_index;
  if (tasks.is_array()) {
    for (const Json& address : tasks) by_index.emplace(static_cast<int>(by_index.size()), address_of(job, address));
  } else if (tasks.is_object()) {
    for (const auto& [index, address] : tasks.items()) by_index[index_of(job, index)] = address_of(job, address);
  } else {
    throw TypeError(fmt::format("tasks of job '{}' must be a list or a map from index to address, not {}{}", job,
                                tasks.is_string() ? "the text " : "",
                                tasks.is_string() ? tasks.dump() : tasks.type_name()));
  }
  return by_index;
}

std::string tasks_text(const JobTasks& tasks) {
  std::vector<std::string> items;
  for (const auto& [index, address] : tasks.by_index()) {
    items.push_back(tasks.is_dense() ? fmt::format("'{}'", address) : fmt::format("{}: '{}'", index, address));
  }
  return fmt::format(fmt::runtime(tasks.is_dense() ? "[{}]" : "{{{}}}"), fmt::join(items, ", "));
}

}  // namespace

JobTasks::JobTasks(std::initializer_list<std::string> addresses) : by_index_(numbered(addresses)) {}
JobTasks::JobTasks(const std::vector<std::string>& addresses) : by_index_(numbered(addresses)) {}

bool JobTasks::is_dense() const {
  return !by_index_.empty() && by_index_.rbegin()->first + 1 == static_cast<int>(by_index_.size());
}

ClusterSpec::ClusterSpec(std::initializer_list<std::pair<const std::string, JobTasks>> jobs) : jobs_(jobs) {
  check();
}

ClusterSpec::ClusterSpec(std::map<std::string, JobTasks> jobs) : jobs_(std::move(jobs)) {
  check();
}

ClusterSpec::ClusterSpec(const ClusterDef& cluster) {
  for (const JobDef& job : cluster.job) jobs_[job.name] = job.tasks;
  check();
}

void ClusterSpec::check() const {
  for (const auto& [name, tasks] : jobs_) {
    if (!tasks.by_index().empty() && tasks.by_index().begin()->first < 0) {
      throw ValueError(
          fmt::format("task index {} of job '{}' must not be negative", tasks.by_index().begin()->first, name));
    }
  }
}

ClusterSpec ClusterSpec::from_json(std::string_view text) {
  const Json jobs = Json::parse(text, nullptr, false);
  if (jobs.is_discarded()) throw ValueError(fmt::format("'{}' is not JSON", text));
  if (!jobs.is_object()) {
    throw TypeError(fmt::format("a cluster must be a map from job to tasks, not {}", jobs.type_name()));
  }
  std::map<std::string, JobTasks> by_name;
  for (const auto& [name, tasks] : jobs.items()) by_name.emplace(name, job_tasks_of(name, tasks));
  return ClusterSpec(std::move(by_name));
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [name, tasks] : jobs_) names.push_back(name);
  return names;
}

bool ClusterSpec::has_job(std::string_view job) const {
  return jobs_.contains(std::string(job));
}

const JobTasks& ClusterSpec::job(const std::string& name) const {
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) {
    throw ValueError(fmt::format("no job '{}' in the cluster (jobs: {})", name, fmt::join(jobs(), ", ")));
  }
  return found->second;
}

int ClusterSpec::num_tasks(const std::string& name) const {
  return static_cast<int>(job(name).by_index().size());
}

std::vector<int> ClusterSpec::task_indices(const std::string& name) const {
  std::vector<int> indices;
  for (const auto& [index, address] : job(name).by_index()) indices.push_back(index);
  return indices;
}

const std::string& ClusterSpec::task_address(const std::string& name, int task) const {
  const auto& tasks = job(name).by_index();
  const auto found = tasks.find(task);
  if (found == tasks.end()) {
    throw ValueError(
        fmt::format("no task with index {} in job '{}' (tasks: {})", task, name, fmt::join(task_indices(name), ", ")));
  }
  return found->second;
}

std::vector<std::optional<std::string>> ClusterSpec::job_tasks(const std::string& name) const {
  const auto& tasks = job(name).by_index();
  std::vector<std::optional<std::string>> all;
  if (!tasks.empty()) all.resize(static_cast<std::size_t>(tasks.rbegin()->first) + 1);
  for (const auto& [index, address] : tasks) all[static_cast<std::size_t>(index)] = address;
  return all;
}

std::string ClusterSpec::as_dict() const {
  Json jobs = Json::object();
  for (const auto& [name, tasks] : jobs_) {
    Json& entry = jobs[name] = tasks.is_dense() ? Json::array() : Json::object();
    for (const auto& [index, address] : tasks.by_index()) {
      if (tasks.is_dense()) {
        entry.push_back(address);
      } else {
        entry[std::to_string(index)] = address;
      }
    }
  }
  return jobs.dump();
}

ClusterDef ClusterSpec::as_cluster_def() const {
  ClusterDef cluster;
  for (const auto& [name, tasks] : jobs_) cluster.job.push_back({.name = name, .tasks = tasks.by_index()});
  return cluster;
}

std::string ClusterSpec::text() const {
  std::vector<std::string> items;
  for (const auto& [name, tasks] : jobs_) items.push_back(fmt::format("'{}': {}", name, tasks_text(tasks)));
  return fmt::format("ClusterSpec({{{}}})", fmt::join(items, ", "));
}

}  // namespace tandem
