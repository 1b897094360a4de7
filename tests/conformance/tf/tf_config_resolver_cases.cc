// The resolver of TF_CONFIG, and how any resolver counts devices.
#include "strategies/cluster/tf_config_resolver.h"

#include "tests/conformance/tf/resolver_case.h"

namespace tandem::tf_config_resolver_cases {
namespace {

// TF_CONFIG of the two jobs, this process being ps 0; with further fields.
Json config(const Json& more = Json::object()) {
  Json document = {{"cluster", dict_of(two_jobs())}, {"task", {{"type", "ps"}, {"index", 0}}}};
  document.update(more);
  return document;
}

Json with_config(const Json& document, const std::function<Json(TfConfigResolver&)>& step, TaskQuery overrides = {}) {
  const FixedEnvironment variables(
      {{"TF_CONFIG", document.is_string() ? document.get<std::string>() : document.dump()}});
  TfConfigResolver resolver(std::move(overrides), variables);
  return outcome_of([&] { return step(resolver); });
}

std::vector<std::string> devices_of_three_jobs() {
  std::vector<std::string> names = {"/job:worker1/task:0/device:TPU:0", "/job:worker1/task:0/device:TPU:1",
                                    "/job:worker1/task:0/device:GPU:0", "/job:worker1/task:0/device:GPU:1"};
  for (const char* rest : {"1/device:TPU:2", "2/device:TPU:3", "3/device:GPU:2", "4/device:GPU:3"}) {
    names.push_back(std::string("/job:worker2/task:") + rest);
  }
  return names;
}

std::vector<std::string> four_of(const std::string& type) {
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) names.push_back("/job:worker/task:0/device:" + type + ":" + std::to_string(i));
  return names;
}

Json accelerators(const std::vector<std::string>& visible) {
  const FixedEnvironment nothing;
  TfConfigResolver resolver({}, nothing);
  resolver.set_visible_devices(visible);
  return resolver.num_accelerators();
}

bool add_tf_config = add_cases({
    {"tfc-001",
     [](const CaseWorld&) {
       return Json{{"value", with_config(config(), cluster_of)}};
     }},
    {"tfc-002",
     [](const CaseWorld&) {
       return with_config(
           config({{"cluster", {{"ps", {"ps0:2222", "ps1:2222"}}, {"worker", {{"1", "worker1:2222"}}}}}}), cluster_of);
     }},
    {"tfc-003",
     [](const CaseWorld&) {
       return Json{{"value", with_config(config(), master_of)}};
     }},
    {"tfc-005",
     [](const CaseWorld&) {
       return Json{{"value", with_config(config({{"session_master", "sessionmaster:2222"}}), master_of)}};
     }},
    {"tfc-006",
     [](const CaseWorld&) {
       return Json{{"value", with_config(config({{"rpc_layer", "grpc"}}), master_of)}};
     }},
    {"tfc-007",
     [](const CaseWorld&) {
       return Json{{"value", with_config(config({{"rpc_layer", "grpc"}}), [](const ClusterResolver& resolver) {
                      return Json{*resolver.task_type(), *resolver.task_id(), *resolver.rpc_layer()};
                    })}};
     }},
    {"tfc-009",
     [](const CaseWorld&) {
       return Json{
           {"value", with_config(config({{"task", {{"type", 123456}, {"index", 0}}}}),
                                 [](const ClusterResolver& resolver) { return json_of(resolver.task_type()); })}};
     }},
    {"tfc-010",
     [](const CaseWorld&) {
       return Json{{"value", with_config(config({{"task", {{"type", "ps"}, {"index", "1"}}}}),
                                         [](const ClusterResolver& resolver) { return json_of(resolver.task_id()); })}};
     }},
    {"tfc-011",
     [](const CaseWorld&) {
       return Json{{"value", with_config(config({{"task", {{"type", "ps"}, {"index", "0"}}}}),
                                         [](const ClusterResolver& resolver) { return json_of(resolver.task_id()); },
                                         {.task_id = 1})}};
     }},
    {"tfc-014",
     [](const CaseWorld&) {
       return with_config(config({{"task", {{"type", "worker1"}, {"index", "0"}}}}), [](TfConfigResolver& resolver) {
         resolver.set_visible_devices(devices_of_three_jobs());
         return Json{{"first", resolver.num_accelerators()}, {"second", resolver.num_accelerators("worker2", 3)}};
       });
     }},
    {"res-x08",
     [](const CaseWorld&) {
       const auto step = [](TfConfigResolver& resolver) {
         Json seen = {*resolver.task_id(), resolver.master()};
         resolver.set_task_type("worker");
         seen.push_back(resolver.master());
         return seen;
       };
       return Json{{"value", with_config(config({{"task", {{"type", "ps"}, {"index", 1}}}}), step, {.task_id = 0})}};
     }},
    {"res-x09",
     [](const CaseWorld&) {
       const Json one = {{"cluster", {{"worker", {"worker0:2222"}}}}};
       const Json gap = {{"cluster", {{"worker", {{"1", "worker1:2222"}}}}},
                         {"task", {{"type", "worker"}, {"index", 1}}}};
       const FixedEnvironment nothing;
       return Json{
           {"value",
            {with_config(one, master_of), with_config(gap, master_of), TfConfigResolver({}, nothing).master()}}};
     }},
    {"res-x10",
     [](const CaseWorld&) {
       const FixedEnvironment nothing;
       const TfConfigResolver resolver({}, nothing);
       return Json{{"value",
                    {cluster_of(resolver), json_of(resolver.task_type()), json_of(resolver.task_id()),
                     json_of(resolver.rpc_layer())}}};
     }},
    {"res-x11",
     [](const CaseWorld&) {
       const auto id = [](const ClusterResolver& resolver) { return json_of(resolver.task_id()); };
       return Json{
           {"value",
            {with_config("{oops", cluster_of), with_config("[1]", cluster_of),
             with_config({{"cluster", Json::array({1})}}, cluster_of), with_config({{"task", {{"index", "a"}}}}, id),
             with_config({{"task", Json::array({1})}}, id), with_config({{"cluster", dict_of(two_jobs())}}, master_of),
             with_config(config({{"task", {{"type", "ps"}, {"index", 7}}}}), master_of)}}};
     }},
});

bool add_counts = add_cases({
    {"res-001",
     [](const CaseWorld&) {
       return Json{{"value", accelerators(four_of("GPU"))}};
     }},
    {"res-002",
     [](const CaseWorld&) {
       std::vector<std::string> names = four_of("TPU");
       for (const std::string& gpu : four_of("GPU")) names.push_back(gpu);
       return Json{{"value", accelerators(names)}};
     }},
    {"res-003",
     [](const CaseWorld&) {
       return Json{{"value", with_config(Json::object(), [](TfConfigResolver& counted) {
                      counted.set_visible_devices(devices_of_three_jobs());
                      return Json{counted.num_accelerators("worker1", 0), counted.num_accelerators("worker2", 3),
                                  counted.num_accelerators("worker2", 4)};
                    })}};
     }},
    {"res-x14",
     [](const CaseWorld&) {
       return Json{{"value", with_config(Json::object(), [](TfConfigResolver& counted) {
                      counted.set_visible_devices({"/job:worker/task:1/device:GPU:0", "/job:worker/task:1/device:GPU:1",
                                                   "/job:worker/task:1/device:CPU:0", "/job:worker/task:10/gpu:0"});
                      return Json{counted.num_accelerators("worker", 1), counted.num_accelerators("worker", 10),
                                  counted.num_accelerators("worker"), counted.num_accelerators()};
                    })}};
     }},
});

}  // namespace
}  // namespace tandem::tf_config_resolver_cases
