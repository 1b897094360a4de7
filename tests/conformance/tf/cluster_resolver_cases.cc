// The simple, union and SageMaker resolvers, in an environment that the case makes up.
#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/sage_maker_resolver.h"
#include "strategies/cluster/simple_resolver.h"
#include "strategies/cluster/union_resolver.h"
#include "tests/conformance/tf/resolver_case.h"

namespace tandem::cluster_resolver_cases {
namespace {

using Variables = std::map<std::string, std::string>;

Json properties(const ClusterResolver& resolver) {
  return {{"task_type", json_of(resolver.task_type())},
          {"task_id", json_of(resolver.task_id())},
          {"environment", resolver.environment()},
          {"num_accelerators", resolver.num_accelerators()},
          {"rpc_layer", json_of(resolver.rpc_layer())}};
}

std::shared_ptr<SimpleResolver> simple(ClusterSpec cluster, SimpleResolverOptions options = {}) {
  return std::make_shared<SimpleResolver>(std::move(cluster), std::move(options));
}

std::shared_ptr<SimpleResolver> workers(JobTasks tasks) {
  return simple({{"worker", std::move(tasks)}});
}

using Resolvers = std::vector<std::shared_ptr<const ClusterResolver>>;

Json union_of(const Resolvers& resolvers) {
  return cluster_of(UnionResolver(resolvers));
}

Json sage_maker(const Variables& variables, const std::function<Json(const ClusterResolver&)>& step, int port = 2223) {
  const FixedEnvironment environment(variables);
  const SageMakerResolver resolver({}, environment, port);
  return outcome_of([&] { return step(resolver); });
}

const std::string kTwoHosts = R"(["algo-1", "algo-2"])";

bool add_simple = add_cases({
    {"sim-001",
     [](const CaseWorld&) {
       return properties(SimpleResolver(two_jobs(), {.task = {.task_type = "ps", .task_id = 1, .rpc_layer = "grpc"},
                                                     .environment = "cloud",
                                                     .num_accelerators = {{"GPU", 8}}}));
     }},
    {"sim-004",
     [](const CaseWorld&) {
       return Json{{"value", simple(two_jobs())->master("worker", 2, "grpc")}};
     }},
    {"sim-005",
     [](const CaseWorld&) {
       return Json{{"value", simple(two_jobs())->master("worker", 0, "grpc")}};
     }},
    {"res-x13",
     [](const CaseWorld&) {
       const auto resolver = simple(two_jobs(), {.master = "here:1", .task = {.rpc_layer = "http"}});
       return Json{{"value",
                    {resolver->master(), resolver->master("ps", 0), resolver->master("ps", 0, "grpc"),
                     outcome_of([&] { return resolver->master("ps", 9); }), resolver->master("worker")}}};
     }},
});

bool add_union = add_cases({
    {"uni-001",
     [](const CaseWorld&) {
       return Json{{"value", union_of({simple(two_jobs())})}};
     }},
    {"uni-002",
     [](const CaseWorld&) {
       const auto first = simple(two_jobs(), {.task = {.task_type = "ps", .task_id = 1, .rpc_layer = "grpc"},
                                              .environment = "cloud",
                                              .num_accelerators = {{"GPU", 8}}});
       const auto second = simple(two_jobs(), {.task = {.task_type = "worker", .task_id = 2, .rpc_layer = "http"},
                                               .environment = "local",
                                               .num_accelerators = {{"GPU", 16}}});
       UnionResolver both({first, second});
       Json result = {{"first", properties(both)}};
       both.set_task_type("worker");
       both.set_task_id(2);
       both.set_rpc_layer("http");
       result["second"] = properties(both);
       return result;
     }},
    {"uni-003",
     [](const CaseWorld&) {
       return Json{{"value", union_of({simple({{"ps", kPs}}), workers(kWorkers)})}};
     }},
    {"uni-004",
     [](const CaseWorld&) {
       const UnionResolver both({simple({{"ps", kPs}}), workers(kWorkers)});
       return Json{{"value", {both.master(), both.master("worker", 1), both.master("worker", 1, "grpc")}}};
     }},
    {"uni-005",
     [](const CaseWorld&) {
       return union_of({workers({"worker4:2222", "worker5:2222"}), workers(kWorkers)});
     }},
    {"uni-007",
     [](const CaseWorld&) {
       return union_of({workers({"worker4:2222", "worker5:2222"}), workers({{1, "a:1"}, {2, "b:1"}, {3, "c:1"}})});
     }},
    {"uni-009",
     [](const CaseWorld&) {
       return union_of({workers({"worker4", "worker5"}), workers({{3, "worker0"}, {6, "worker1"}, {7, "worker2"}})});
     }},
    {"uni-011",
     [](const CaseWorld&) {
       return Json{{"first", outcome_of([] { return union_of({}); })},
                   {"second", outcome_of([] { return union_of({nullptr}); })}};
     }},
    {"res-x06",
     [](const CaseWorld&) {
       UnionResolver one({simple(two_jobs(), {.task = {.task_type = "ps", .task_id = 1, .rpc_layer = "grpc"}})});
       one.set_task_type("");
       one.set_task_id(0);
       one.set_rpc_layer("");
       return Json{{"value", {json_of(one.task_type()), json_of(one.task_id()), json_of(one.rpc_layer())}}};
     }},
    {"res-x07",
     [](const CaseWorld&) {
       return Json{{"maps", union_of({workers({{0, "a:1"}, {1, "b:1"}}), workers({{5, "f:1"}}),
                                      simple({{"ps", JobTasks{"p:1"}}})})},
                   {"lists", union_of({workers({"a:1"}), workers({"b:1"}), workers({"c:1", "d:1"})})}};
     }},
});

bool add_sage_maker = add_cases({
    {"sag-001",
     [](const CaseWorld&) {
       return sage_maker({{"SM_HOSTS", kTwoHosts}, {"SM_CURRENT_HOST", "algo-2"}}, cluster_of);
     }},
    {"sag-002",
     [](const CaseWorld&) {
       return Json{{"value", sage_maker({{"SM_HOSTS", kTwoHosts}, {"SM_CURRENT_HOST", "algo-1"}}, master_of)}};
     }},
    {"sag-005",
     [](const CaseWorld&) {
       return Json{{"value", sage_maker({{"SM_HOSTS", R"(["algo-1"])"}, {"SM_CURRENT_HOST", ""}}, master_of)}};
     }},
    {"res-x12",
     [](const CaseWorld&) {
       const std::string hosts = R"(["algo-10", "algo-2", "algo-1"])";
       const Variables variables = {{"SM_HOSTS", hosts}, {"SM_CURRENT_HOST", "algo-2"}};
       const auto task = [](const ClusterResolver& resolver) {
         return Json{json_of(resolver.task_type()), json_of(resolver.task_id())};
       };
       return Json{{"cluster", sage_maker(variables, cluster_of, 4000)},
                   {"task", sage_maker(variables, task, 4000)},
                   {"master", sage_maker(variables, master_of, 4000)},
                   {"unknown_host", sage_maker({{"SM_HOSTS", hosts}, {"SM_CURRENT_HOST", "other"}}, cluster_of)},
                   {"no_variables", sage_maker({}, cluster_of)}};
     }},
    {"res-x16",
     [](const CaseWorld&) {
       FixedEnvironment variables({{"TF_CONFIG", R"({"cluster": {"worker": ["w0:1"]}})"}});
       const auto made = [&](const char* name) {
         return outcome_of([&] { return dict_of(make_cluster_resolver(name, variables)->cluster_spec()); });
       };
       Json result;
       for (const char* name :
            {"TFConfigClusterResolver", "SlurmClusterResolver", "SageMakerClusterResolver", "SimpleClusterResolver",
             "GCEClusterResolver", "KubernetesClusterResolver", "TPUClusterResolver", "Telepathy"}) {
         result[name] = made(name);
       }
       const std::string why = result["GCEClusterResolver"]["message"];
       result["names_those_there_are"] =
           why.find("TFConfigClusterResolver") != why.npos && why.find("UnionResolver") != why.npos;
       return result;
     }},
});

}  // namespace
}  // namespace tandem::cluster_resolver_cases
