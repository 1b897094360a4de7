// Full device names from partial ones.
#include "strategies/cluster/device_names.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem::devices_cases {
namespace {

Json canonical(const char* device, const char* defaults = "", const std::optional<JoinedTask>& joined = {}) {
  return outcome_of([&] { return canonicalize_device(device, defaults, joined); });
}

bool added = add_cases({
    {"dev-001",
     [](const CaseWorld&) {
       return Json{
           {"value", {canonical("/cpu:0"), canonical("/job:worker/cpu:0"), canonical("/job:worker/task:1/cpu:0")}}};
     }},
    {"dev-003",
     [](const CaseWorld&) {
       return Json{{"value",
                    {resolve_device("/job:worker/task:1/cpu:0", "/gpu:0"),
                     resolve_device("/job:worker/task:1", "/gpu:0"), resolve_device("/cpu:0", "/job:worker")}}};
     }},
    {"dev-004",
     [](const CaseWorld&) {
       return Json{{"value", canonical("/cpu:0", "", JoinedTask{"worker", 0})}};
     }},
    {"dev-x01",
     [](const CaseWorld&) {
       return Json{{"value",
                    {canonical("/job:worker/task:1/cpu:0", "/gpu:0"), canonical("/job:worker/task:1", "/gpu:0"),
                     canonical("/cpu:0", "/job:worker"), canonical(""), canonical("GPU:3"),
                     canonical("/device:GPU:*", "/gpu:2"), canonical("/replica:0/gpu:1", "/job:ps/task:4")}}};
     }},
    {"dev-x02",
     [](const CaseWorld&) {
       return Json{{"value",
                    {canonical("/device:gpu:0"), canonical("/disk:0"), canonical("/cpu:0/gpu:0"), canonical("/cpu:x"),
                     canonical("/job:a/task:b")}}};
     }},
    {"dev-x03",
     [](const CaseWorld&) {
       Json all = Json::array();
       for (const JoinedTask& joined : {JoinedTask{"chief", 0}, JoinedTask{"worker", 2}}) {
         all.push_back({canonical("/gpu:1", "", joined), canonical("/job:ps", "", joined),
                        canonical("/cpu:0", "/task:5", joined), resolve_device("/gpu:0", "/job:ps/task:1", joined)});
       }
       return Json{{"value", all}};
     }},
    {"dev-x04",
     [](const CaseWorld&) {
       return Json{{"host", host_of_device("/job:worker/task:1/gpu:3")},
                   {"none", local_devices_from_num_gpus(0)},
                   {"two", local_devices_from_num_gpus(2)},
                   {"scopes", merge_device_scopes({"/job:moon/gpu:1", "/job:ps"})}};
     }},
});

}  // namespace
}  // namespace tandem::devices_cases
