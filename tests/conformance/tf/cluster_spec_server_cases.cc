// Cluster specs and servers; servers hold real TCP ports that the system chooses.
#include <thread>

#include "strategies/servers/server.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem::cluster_spec_server_cases {
namespace {

ClusterSpec with_gap() {
  return {{"ps", {"ps0:2222", "ps1:2222"}},
          {"worker", {"worker0:2222", "worker1:2222", "worker2:2222"}},
          {"sparse", {{0, "sparse0:2222"}, {3, "sparse3:2222"}}}};
}

Json tasks_json(const ClusterSpec& spec, const char* job) {
  return outcome_of([&] {
    Json tasks = Json::array();
    for (const auto& task : spec.job_tasks(job)) tasks.push_back(json_of(task));
    return tasks;
  });
}

Json accessors() {
  const ClusterSpec spec = with_gap();
  Json result = {{"as_dict", dict_of(spec)}};
  for (const char* job : {"ps", "worker", "sparse", "unknown"}) {
    result["num_tasks"][job] = outcome_of([&] { return spec.num_tasks(job); });
    result["task_indices"][job] = outcome_of([&] { return spec.task_indices(job); });
    result["job_tasks"][job] = tasks_json(spec, job);
    for (const int task : {0, 2}) {
      result["task_address"][std::string(job) + "," + std::to_string(task)] =
          outcome_of([&] { return spec.task_address(job, task); });
    }
  }
  return result;
}

Json from_json(const Json& jobs) {
  return outcome_of([&] { return dict_of(ClusterSpec::from_json(jobs.dump())); });
}

Json server_of(const ServerDef& definition) {
  return outcome_of([&] { return Server(definition).target(); });
}

Json definition_of(const ClusterSpec& cluster, const std::optional<std::string>& job = {}) {
  return outcome_of([&] {
    const ServerDef definition = make_server_def(cluster, job);
    return Json{definition.job_name, definition.task_index};
  });
}

ClusterSpec local(const std::string& address) {
  return {{"local", JobTasks{address}}};
}

bool add_specs = add_cases({
    {"cs-001", [](const CaseWorld&) { return accessors(); }},
    {"cs-003",
     [](const CaseWorld&) {
       const ClusterSpec list = {{"job", JobTasks{"host:2222"}}}, map = {{"job", JobTasks{{0, "host:2222"}}}};
       return Json{{"value", {ClusterSpec() == ClusterSpec(), list == list, map == list}}};
     }},
    {"cs-005",
     [](const CaseWorld&) {
       return Json{{"value", {bool{ClusterSpec()}, bool{with_gap()}}}};
     }},
    {"cs-006",
     [](const CaseWorld&) {
       const ClusterSpec spec = ClusterSpec::from_json(R"({"worker": {"1": "worker1:2222"}})");
       return Json{{"task_indices", spec.task_indices("worker")}};
     }},
    {"cs-007",
     [](const CaseWorld&) {
       const ClusterSpec spec = {{"ps", {"ps0:2222", "ps1:2222"}}, {"worker", JobTasks()}};
       Json jobs = dict_of(spec);
       jobs["tasks_of_worker"] = spec.num_tasks("worker");
       return jobs;
     }},
    {"cs-008",
     [](const CaseWorld&) {
       return Json{{"each", {from_json(5), from_json({{"job", "host:1"}}), from_json({{"job", Json::array({5})}})}}};
     }},
    {"cs-x01",
     [](const CaseWorld&) {
       const ClusterSpec spec = {{"worker", JobTasks{{1, "w1:1"}}}, {"ps", {"p0:1", "p1:1"}}, {"empty", JobTasks()}};
       return Json{{"value", spec.text()}};
     }},
    {"cs-x02",
     [](const CaseWorld&) {
       const ClusterSpec list = {{"job", {"a:1", "b:1"}}}, map = {{"job", {{0, "a:1"}, {1, "b:1"}}}};
       const ClusterSpec gap = {{"job", JobTasks{{1, "b:1"}}}}, other = {{"other", {"a:1", "b:1"}}};
       return Json{{"value", {list == map, list == gap, list == other, gap == ClusterSpec(gap.as_cluster_def())}}};
     }},
    {"cs-x03",
     [](const CaseWorld&) {
       return Json{{"dense", dict_of(ClusterSpec{{"job", {{1, "b:1"}, {0, "a:1"}}}})},
                   {"gaps", dict_of(ClusterSpec{{"job", {{0, "a:1"}, {2, "c:1"}}}})},
                   {"job_tasks", tasks_json(ClusterSpec{{"job", JobTasks{{2, "c:1"}}}}, "job")},
                   {"jobs", ClusterSpec{{"worker", JobTasks()}, {"ps", JobTasks()}, {"chief", JobTasks()}}.jobs()}};
     }},
    {"cs-x04",
     [](const CaseWorld&) {
       return Json{{"value",
                    {from_json({{"job", {{"one", "a:1"}}}}), from_json({{"job", {{"-1", "a:1"}}}}),
                     from_json({{"job", nullptr}}), from_json(Json::array()),
                     outcome_of([] { return dict_of(ClusterSpec::from_json("{")); })}}};
     }},
});

bool add_servers = add_cases({
    {"srv-001", [](const CaseWorld&) { return server_of({.cluster = local("localhost"), .job_name = "local"}); }},
    {"srv-004",
     [](const CaseWorld&) {
       const ServerDef definition = make_server_def(
           {{"ps", {"ps0:2222", "ps1:2222"}}, {"worker", {{0, "worker0:2222"}, {2, "worker2:2222"}}}}, "worker", 2);
       return Json{{"worker_tasks", dict_of(definition.cluster)["worker"]},
                   {"job_name", definition.job_name},
                   {"task_index", definition.task_index}};
     }},
    {"srv-x01",
     [](const CaseWorld&) {
       const ClusterSpec two = {{"ps", JobTasks{"a:1"}}, {"worker", JobTasks{"b:1"}}};
       return Json{{"value",
                    {definition_of({{"worker", JobTasks{{4, "a:1"}}}}), definition_of({{"worker", {"a:1", "b:1"}}}),
                     definition_of(two), definition_of(two, "ps"), definition_of(two, "chief")}}};
     }},
    {"srv-x02",
     [](const CaseWorld&) {
       const auto first = Server::create_local();
       return Json{{"second", server_of(make_server_def(local("localhost:" + std::to_string(first->port()))))},
                   {"target_starts", first->target().substr(0, 17)},
                   {"has_port", first->port() > 0}};
     }},
    {"srv-x03",
     [](const CaseWorld&) {
       const ClusterSpec right = local("localhost:0");
       const ClusterSpec half = {{"local", {"localhost:0", "elsewhere"}}};
       return Json{{"value",
                    {server_of({.cluster = right, .job_name = "local", .task_index = 3}),
                     server_of({.cluster = right, .job_name = "local", .protocol = "carrier pigeon"}),
                     server_of({.cluster = local("localhost:70000"), .job_name = "local"}),
                     server_of({.cluster = local("localhost:x"), .job_name = "local"}),
                     server_of({.cluster = half, .job_name = "local"})}}};
     }},
    {"srv-x04",
     [](const CaseWorld&) {
       Server unstarted(make_server_def(local("localhost:0")), false);
       unstarted.join();
       const auto server = Server::create_local();
       std::thread stopper([&] { server->stop(); });
       server->join();
       stopper.join();
       return Json{{"unstarted_join", "returns"},
                   {"start_after_stop", error_of([&] { unstarted.start(); })},
                   {"stopped_join", "returns"}};
     }},
});

}  // namespace
}  // namespace tandem::cluster_spec_server_cases
