// The role of a task in its cluster.
#include "strategies/cluster/cluster_util.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem::cluster_util_cases {
namespace {

// So many tasks of each job, with made-up addresses.
ClusterSpec tasks(const std::map<std::string, int>& counts) {
  std::map<std::string, JobTasks> jobs;
  for (const auto& [job, count] : counts) {
    std::vector<std::string> addresses;
    for (int i = 0; i < count; ++i) addresses.push_back("host" + std::to_string(i) + ":1");
    jobs.emplace(job, addresses);
  }
  return ClusterSpec(std::move(jobs));
}

Json chief(const ClusterSpec& cluster, const char* type, int id) {
  return outcome_of([&] { return is_chief(cluster, type, id); });
}
Json count(const ClusterSpec& cluster, const char* type) {
  return outcome_of([&] { return worker_count(cluster, type); });
}
Json id(const ClusterSpec& cluster, const char* type, int task) {
  return outcome_of([&] { return id_in_cluster(cluster, type, task); });
}
Json validated(const ClusterSpec& cluster, const char* type, int task) {
  const Json error = error_of([&] { validate_cluster_spec(cluster, type, task); });
  return error.is_null() ? Json("ok") : error;
}
Json host(const ClusterSpec& cluster) {
  return outcome_of([&] { return coordination_leader(cluster); });
}
Json normalized(const Json& cluster) {
  return outcome_of([&] { return dict_of(normalize_cluster_spec(cluster.dump())); });
}
Json leader(const ClusterSpec& cluster, const char* type, int task) {
  return outcome_of([&] { return collective_leader(cluster, type, task); });
}

bool added = add_cases({
    {"cu-002",
     [](const CaseWorld&) {
       const ClusterSpec spec = tasks({{"ps", 2}, {"worker", 3}});
       const bool equal = normalize_cluster_spec(spec.as_dict()) == spec &&
                          normalize_cluster_spec(spec.as_cluster_def()) == spec && normalize_cluster_spec(spec) == spec;
       return Json{{"all_equal", equal}};
     }},
    {"cu-004",
     [](const CaseWorld&) {
       const ClusterSpec two = tasks({{"worker", 2}});
       return Json{
           {"value",
            {chief(two, "worker", 0), chief(two, "worker", 1), chief(two, "chief", 0), chief(two, "worker", 2)}}};
     }},
    {"cu-006",
     [](const CaseWorld&) {
       const ClusterSpec all = tasks({{"chief", 1}, {"worker", 2}, {"ps", 2}});
       return Json{{"value", {count(all, "chief"), count(all, "worker")}}};
     }},
    {"cu-007",
     [](const CaseWorld&) {
       return Json{{"value", count(tasks({{"chief", 1}, {"worker", 2}, {"evaluator", 1}}), "evaluator")}};
     }},
    {"cu-008", [](const CaseWorld&) { return count({}, "worker"); }},
    {"cu-009",
     [](const CaseWorld&) {
       return count(tasks({{"chief", 1}, {"ps", 2}}), "ps");
     }},
    {"cu-011",
     [](const CaseWorld&) {
       return Json{{"value",
                    {id(tasks({{"chief", 1}, {"worker", 2}, {"ps", 2}}), "worker", 1),
                     id(tasks({{"worker", 2}, {"ps", 2}}), "worker", 1)}}};
     }},
    {"cu-013",
     [](const CaseWorld&) {
       return id(tasks({{"chief", 1}, {"worker", 2}, {"ps", 2}}), "ps", 0);
     }},
    {"cu-014",
     [](const CaseWorld&) {
       return id(tasks({{"chief", 2}}), "chief", 0);
     }},
    {"cu-015",
     [](const CaseWorld&) {
       return Json{{"value", leader(tasks({{"chief", 1}, {"worker", 2}, {"ps", 2}}), "worker", 0)}};
     }},
    {"cu-016",
     [](const CaseWorld&) {
       return Json{{"value", leader(tasks({{"worker", 2}, {"ps", 2}}), "worker", 1)}};
     }},
    {"cu-017",
     [](const CaseWorld&) {
       return Json{
           {"value",
            {leader(tasks({{"chief", 1}, {"worker", 2}, {"evaluator", 1}}), "evaluator", 0), leader({}, "", 0)}}};
     }},
    {"cu-019",
     [](const CaseWorld&) {
       const ClusterSpec cluster = tasks({{"chief", 1}, {"ps", 2}});
       return Json{{"value", {validated(cluster, "evaluator", 0), validated(cluster, "worker", 0)}}};
     }},
    {"cu-x01",
     [](const CaseWorld&) {
       return Json{{"value",
                    {host(tasks({{"ps", 1}, {"worker", 1}, {"chief", 1}})), host(tasks({{"chief", 1}, {"worker", 1}})),
                     host(tasks({{"worker", 1}})), host({}), host(tasks({{"evaluator", 1}}))}}};
     }},
    {"cu-x02",
     [](const CaseWorld&) {
       const ClusterSpec right = tasks({{"worker", 2}, {"evaluator", 1}});
       return Json{{"value",
                    {validated(tasks({{"local", 1}}), "", 0), validated(right, "tester", 0),
                     validated(tasks({{"chief", 2}}), "chief", 0), validated(tasks({{"evaluator", 2}}), "evaluator", 0),
                     validated(right, "worker", 2), validated(right, "evaluator", 1), validated(right, "ps", 0),
                     validated(right, "", 0), validated(tasks({{"worker", 2}}), "evaluator", 5)}}};
     }},
    {"cu-x03",
     [](const CaseWorld&) {
       const ClusterSpec all = tasks({{"chief", 1}, {"worker", 2}, {"ps", 1}, {"evaluator", 1}});
       const ClusterSpec few = tasks({{"worker", 2}});
       return Json{{"value",
                    {chief(all, "chief", 0), chief(all, "worker", 0), chief(all, "worker", 1), chief(all, "ps", 0),
                     chief(all, "evaluator", 0), chief(few, "worker", 0), chief(few, "evaluator", 0)}}};
     }},
    {"cu-x04",
     [](const CaseWorld&) {
       const ClusterSpec all = tasks({{"chief", 1}, {"worker", 3}, {"evaluator", 1}});
       return Json{{"value",
                    {id(all, "chief", 0), id(all, "worker", 0), id(all, "worker", 2), id(all, "evaluator", 0),
                     count(tasks({{"worker", 2}}), "evaluator"), leader(all, "", 0)}}};
     }},
    {"cu-x06",
     [](const CaseWorld&) {
       const auto check = [](const std::map<std::string, int>& counts, const char* type) {
         const Json error = error_of([&] { validate_parameter_server_cluster(tasks(counts), type, 0); });
         return error.is_null() ? Json("ok") : error;
       };
       return Json{
           {"value",
            {check({{"chief", 1}, {"worker", 2}, {"ps", 2}}, "chief"), check({{"chief", 1}, {"ps", 2}}, "chief"),
             check({{"worker", 1}}, "worker"), check({{"chief", 2}, {"worker", 1}, {"ps", 1}}, "chief"),
             check({{"worker", 1}, {"ps", 1}, {"helper", 1}}, "worker")}}};
     }},
    {"cu-x05",
     [](const CaseWorld&) {
       return Json{{"value",
                    {normalized(5), normalized("worker"), normalized(nullptr), normalized({{"worker", 5}}),
                     normalized(Json::object())}}};
     }},
});

}  // namespace
}  // namespace tandem::cluster_util_cases
