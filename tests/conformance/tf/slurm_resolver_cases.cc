// The Slurm resolver, in an environment that the case makes up.
#include "strategies/cluster/slurm_lists.h"
#include "strategies/cluster/slurm_resolver.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem::slurm_resolver_cases {
namespace {

// A job step of so many tasks on these hosts, seen from one of its processes.
FixedEnvironment step(int process, const std::string& hosts, const std::string& tasks_per_node, int tasks,
                      const std::string& gpus = "") {
  FixedEnvironment variables({{"SLURM_PROCID", std::to_string(process)},
                              {"SLURM_STEP_NUM_TASKS", std::to_string(tasks)},
                              {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
                              {"SLURM_STEP_NODELIST", hosts}});
  if (!gpus.empty()) variables.set("CUDA_VISIBLE_DEVICES", gpus);
  return variables;
}

Json spec_of(const SlurmOptions& options, FixedEnvironment variables) {
  return outcome_of([&] { return dict_of(SlurmResolver(options, variables).cluster_spec()); });
}

Json kind_of(const Json& outcome) {
  return outcome.is_object() && outcome.contains("error") ? outcome["error"] : Json();
}

Json hosts_of(const std::string& list) {
  return outcome_of([&] { return Json(expand_hostlist(list)); });
}

Json tasks_of(const std::string& list) {
  return outcome_of([&] { return Json(expand_tasks_per_node(list)); });
}

const std::string kHosts = "t02n13,t02n41,t02n43";

bool add_slurm = add_cases({
    {"slu-002",
     [](const CaseWorld&) {
       Json all = Json::array();
       for (const char* list : {"2", "2,1,3", "3(x2),2,1", "3(x2),2,11(x4)", "13(x10)"}) all.push_back(tasks_of(list));
       return Json{{"value", all}};
     }},
    {"slu-003",
     [](const CaseWorld&) {
       FixedEnvironment variables = step(0, kHosts, "1(x3)", 3, "0");
       const SlurmResolver resolver({}, variables);
       return Json{{"cluster", dict_of(resolver.cluster_spec())},
                   {"master(\"worker\",0,\"grpc\")", resolver.master("worker", 0, "grpc")},
                   {"num_accelerators", resolver.num_accelerators()},
                   {"CUDA_VISIBLE_DEVICES_after", json_of(variables.get("CUDA_VISIBLE_DEVICES"))}};
     }},
    {"slu-006",
     [](const CaseWorld&) {
       FixedEnvironment variables = step(1, kHosts, "2(x2),1", 5);
       const SlurmResolver resolver({.jobs = {{"ps", 1}, {"worker", 4}}, .gpus_per_node = 2, .gpus_per_task = 1},
                                    variables);
       return Json{{"cluster", dict_of(resolver.cluster_spec())},
                   {"CUDA_VISIBLE_DEVICES", json_of(variables.get("CUDA_VISIBLE_DEVICES"))}};
     }},
    {"slu-009",
     [](const CaseWorld&) {
       return Json{{"errors",
                    {kind_of(spec_of({}, FixedEnvironment())),
                     kind_of(spec_of({.gpus_per_node = 2, .gpus_per_task = 2}, step(0, "a", "2", 2))),
                     kind_of(spec_of({.jobs = {{"worker", 3}}}, step(0, "a", "2", 2))),
                     kind_of(spec_of({}, step(0, "n[1-", "2", 2)))}}};
     }},
    {"slu-010",
     [](const CaseWorld&) {
       return spec_of({.jobs = {{"worker", 2}}}, step(0, "n[9-10]", "1(x2)", 2));
     }},
    {"res-x01",
     [](const CaseWorld&) {
       Json all = Json::array();
       for (const char* list : {"n[08-11]", "n[1-2],m5,o[3-4,6,7-9]", "n[001,3-4]", "a-b,c", "x[9-10]y"}) {
         all.push_back(hosts_of(list));
       }
       return Json{{"value", all}};
     }},
    {"res-x02", [](const CaseWorld&) { return spec_of({.port_base = 9000}, step(0, "b,a", "1,3", 4)); }},
    {"res-x03",
     [](const CaseWorld&) {
       Json result;
       for (int process = 0; process < 4; ++process) {
         FixedEnvironment variables = step(process, "a,b", "2(x2)", 4);
         const SlurmResolver resolver({.jobs = {{"worker", 2}, {"chief", 1}, {"ps", 1}}}, variables);
         result["cluster"] = dict_of(resolver.cluster_spec());
         result["tasks"].push_back({json_of(resolver.task_type()), json_of(resolver.task_id())});
         result["masters"].push_back(resolver.master());
       }
       return result;
     }},
    {"res-x04",
     [](const CaseWorld&) {
       Json each = Json::array();
       for (const char* list : {"n[1-2", "n[1-2-3]", "n[a-b]", ",n1", "n[1-2]x", "n[1[2]]", "n]1"}) {
         each.push_back(hosts_of(list));
       }
       for (const char* list : {"2(x)", "2,,1", "x2", "2(x3", "-1"}) each.push_back(tasks_of(list));
       return Json{{"each", each}};
     }},
    {"res-x05",
     [](const CaseWorld&) {
       Json result;
       for (int process = 0; process < 4; ++process) {
         for (const bool automatic : {true, false}) {
           FixedEnvironment variables = step(process, "a,b", "2(x2)", 4, "0,1,2,3");
           const SlurmResolver resolver({.auto_set_gpu = automatic}, variables);
           result[automatic ? "set" : "left_alone"].push_back(json_of(variables.get("CUDA_VISIBLE_DEVICES")));
           result["num_accelerators"] = resolver.num_accelerators();
         }
       }
       return result;
     }},
    {"res-x15",
     [](const CaseWorld&) {
       FixedEnvironment variables = step(0, "a,b", "2(x2)", 4);
       const SlurmResolver uneven({.gpus_per_node = 3}, variables);
       const std::map<std::string, int> by_host = {{"b", 1}, {"a", 2}};
       return Json{{"gpus_per_task", uneven.num_accelerators().at("GPU")},
                   {"number", spec_of({.tasks_per_node = 2}, step(0, "a,b", "", 4))},
                   {"by_host", spec_of({.tasks_per_node = by_host}, step(0, "", "", 3))}};
     }},
});

}  // namespace
}  // namespace tandem::slurm_resolver_cases
