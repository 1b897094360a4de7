// tf.train.ClusterSpec: the jobs of a cluster and the network address of each of their tasks.
//
// A value: copies are independent, and const functions may be called from any thread.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// The tasks of one job by index. A list numbers them 0, 1, ...; a map may leave gaps.
class JobTasks {
 public:
  JobTasks() = default;
  JobTasks(std::initializer_list<std::string> addresses);
  JobTasks(std::initializer_list<std::pair<const int, std::string>> by_index) : by_index_(by_index) {}
  JobTasks(const std::vector<std::string>& addresses);
  JobTasks(std::map<int, std::string> by_index) : by_index_(std::move(by_index)) {}

  const std::map<int, std::string>& by_index() const { return by_index_; }
  // Whether the indices are 0 ... n - 1. An empty job is not dense: TensorFlow writes it as a map.
  bool is_dense() const;
  bool operator==(const JobTasks&) const = default;

 private:
  std::map<int, std::string> by_index_;
};

// A cluster as plain data, like TensorFlow's ClusterDef message.
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

  // Parses {"ps": ["host:port", ...], "worker": {"1": "host:port"}}. ValueError for text that is no JSON and for an
  // index that is no number; TypeError for JSON of another shape.
  static ClusterSpec from_json(std::string_view text);

  std::vector<std::string> jobs() const;  // sorted
  bool has_job(std::string_view job) const;
  const std::map<std::string, JobTasks>& by_job() const { return jobs_; }

  // Properties of one job. ValueError for an unknown job, and for a task that it does not have.
  int num_tasks(const std::string& job) const;
  std::vector<int> task_indices(const std::string& job) const;
  const std::string& task_address(const std::string& job, int task) const;
  std::vector<std::optional<std::string>> job_tasks(const std::string& job) const;  // gaps are nullopt

  // Writes what from_json() reads. A job whose indices are 0 ... n - 1 is a list, any other an object.
  std::string as_dict() const;
  ClusterDef as_cluster_def() const;
  std::string text() const;  // "ClusterSpec({'ps': ['ps0:2222'], 'worker': {1: 'worker1:2222'}})", jobs sorted

  explicit operator bool() const { return !jobs_.empty(); }
  bool operator==(const ClusterSpec&) const = default;  // a list is equal to the map of the same indices

 private:
  const JobTasks& job(const std::string& name) const;
  void check() const;

  std::map<std::string, JobTasks> jobs_;
};

}  // namespace tandem
