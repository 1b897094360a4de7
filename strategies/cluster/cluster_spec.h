// Which jobs a cluster has, and the network address of each of their tasks: TensorFlow's tf.train.ClusterSpec.
//
// A value: copies are independent, and const functions may be called from any thread.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// The tasks of one job, by index. A list gives them the indices 0, 1, ...; a map may leave gaps.
class JobTasks {
 public:
  JobTasks() = default;
  JobTasks(std::initializer_list<std::string> addresses);
  JobTasks(std::initializer_list<std::pair<const int, std::string>> by_index) : by_index_(by_index) {}
  JobTasks(const std::vector<std::string>& addresses);
  JobTasks(std::map<int, std::string> by_index) : by_index_(std::move(by_index)) {}

  const std::map<int, std::string>& by_index() const { return by_index_; }
  // Indices 0 ... n - 1 without a gap; an empty job is not dense, as TensorFlow writes it as a map.
  bool is_dense() const;
  bool operator==(const JobTasks&) const = default;

 private:
  std::map<int, std::string> by_index_;
};

// The plain data of a cluster, as in TensorFlow's ClusterDef message.
struct JobDef {
  std::string name{};
  std::map<int, std::string> tasks{};
};
struct ClusterDef {
  std::vector<JobDef> job{};
};

class ClusterSpec {
 public:
  ClusterSpec() = default;
  ClusterSpec(std::initializer_list<std::pair<const std::string, JobTasks>> jobs);
  // ValueError for a negative task index.
  explicit ClusterSpec(std::map<std::string, JobTasks> jobs);
  explicit ClusterSpec(const ClusterDef& cluster);

  // {"ps": ["host:port", ...], "worker": {"1": "host:port"}}. TypeError for anything of another shape; ValueError
  // for text that is no JSON and for an index that is no number.
  static ClusterSpec from_json(const nlohmann::json& jobs);
  static ClusterSpec from_json_text(std::string_view text);

  std::vector<std::string> jobs() const;  // sorted
  bool has_job(std::string_view job) const;
  const std::map<std::string, JobTasks>& by_job() const { return jobs_; }

  // Of a job. ValueError for an unknown one, and for a task it does not have.
  int num_tasks(const std::string& job) const;
  std::vector<int> task_indices(const std::string& job) const;
  const std::string& task_address(const std::string& job, int task) const;
  std::vector<std::optional<std::string>> job_tasks(const std::string& job) const;  // gaps are nullopt

  // A job is a list when its indices are dense from 0, else an object; an empty job is an empty object.
  nlohmann::json as_dict() const;
  ClusterDef as_cluster_def() const;
  std::string text() const;  // "ClusterSpec({'ps': ['ps0:2222'], 'worker': {1: 'worker1:2222'}})", jobs sorted

  explicit operator bool() const { return !jobs_.empty(); }
  bool operator==(const ClusterSpec&) const = default;  // a list equals the map of the same indices

 private:
  const JobTasks& job(const std::string& name) const;
  void check() const;

  std::map<std::string, JobTasks> jobs_;
};

}  // namespace tandem
