// Area "parameter-server", the 1.x API's configuration.
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_parameter_server_cases {
namespace {

const bool added = add_cases({
    {"ps-015",
     [](const CaseWorld& world) -> Json {
       const std::vector<WorkerSpec> run = {{.job = "worker", .device_count = 1}, {.job = "ps", .device_count = 0}};
       return world.on_cluster(run, [](Worker& worker) -> Json {
         if (worker.job() == "ps") return nullptr;
         tower::ParameterServerStrategy strategy(worker);
         const auto configure = [&](const char* ps) {
           strategy.configure(ClusterSpec({{"worker", {"worker0:2222"}}, {"ps", {ps}}}), {.type = "worker", .id = 0});
           return names_of(strategy.parameter_devices());
         };
         const std::vector<std::string> first = configure("ps0:2222");
         const std::vector<std::string> second = configure("other:2222");
         return {{"effect", first == second ? "the second call is ignored, no error" : "the second call counts"}};
       })[0];
     }},
});

}  // namespace
}  // namespace tandem::tower_parameter_server_cases
