// The placement and partitioning of variables, and the choice of the implementation that reduces across devices.
#include "strategies/cluster/placement.h"

#include "strategies/cluster/device_names.h"
#include "strategies/cluster/partitioners.h"
#include "strategies/cross_device/all_reduce_spec.h"
#include "strategies/cross_device/choose.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem::placement_cases {
namespace {

PlacedOp variable(Shape shape = {}, std::string name = "") {
  return {.name = std::move(name), .shape = shape};
}
const PlacedOp kSum = {.is_variable = false};

DeviceSetter setter(DeviceSetterOptions options) {
  return replica_device_setter(std::move(options)).value();
}

Json greedy(int tasks, LoadFunction load, const std::vector<PlacedOp>& variables) {
  GreedyPlacement placement(tasks, std::move(load));
  Json result;
  for (const PlacedOp& op : variables) result["ps_tasks"].push_back(placement(op));
  result["loads_after"] = placement.loads();
  return result;
}

Json hashed(int tasks) {
  return outcome_of([&] {
    Json chosen;
    for (const char* name : {"Variable", "Variable_1", "Variable_2", "Variable_3"}) {
      chosen.push_back(HashPlacement(tasks)(variable({}, name)));
    }
    return chosen;
  });
}

bool add_placements = add_cases({
    {"ps-017",
     [](const CaseWorld& world) {
       return greedy(world.spec().setting("ps", 0), byte_size_load,
                     {variable({2, 2}), variable({2, 1}), variable({2, 2}), variable({1, 3})});
     }},
    {"ps-018",
     [](const CaseWorld& world) {
       const auto one = [](const PlacedOp&) { return 1.0; };
       return greedy(world.spec().setting("ps", 0), one, std::vector<PlacedOp>(4));
     }},
    {"ps-020",
     [](const CaseWorld& world) {
       DeviceSetter place = setter({.ps_tasks = world.spec().setting("ps", 0)});
       Json result = {{"v", place.device_of(variable())}};
       result["w"] = place.device_of(variable(), "/job:moon");
       result["x"] = place.device_of(variable(), merge_device_scopes({"/job:moon", "/job:ps"}));
       result["a"] = place.device_of(kSum);
       return result;
     }},
    {"ps-021",
     [](const CaseWorld& world) {
       DeviceSetter place = setter({.ps_tasks = world.spec().setting("ps", 0)});
       Json result = {{"v", place.device_of(variable(), "/cpu:0")}};
       result["w"] = place.device_of(variable());
       result["a"] = place.device_of(kSum, "/cpu:0");
       return result;
     }},
    {"ps-024",
     [](const CaseWorld&) {
       DeviceSetter place = setter({.ps_tasks = 1, .ps_device = "/cpu:0"});
       Json result = {{"v", place.device_of(variable())}};
       result["w"] = place.device_of(variable(), "/job:moon");
       return result;
     }},
    {"ps-x01",
     [](const CaseWorld&) {
       return Json{{"two", hashed(2)}, {"one", hashed(1)}, {"none", hashed(0)}};
     }},
    {"ps-x02",
     [](const CaseWorld&) {
       DeviceSetter unmerged = setter({.ps_tasks = 2, .merge_devices = false});
       Json result = {{"v", unmerged.device_of(variable(), "/cpu:0")}};
       result["w"] = unmerged.device_of(variable());
       result["zero"] = replica_device_setter({}).has_value();
       result["no_ps_job"] = replica_device_setter({.cluster = ClusterSpec{{"worker", JobTasks{"a:1"}}}}).has_value();
       DeviceSetter three = setter({.cluster = ClusterSpec{{"ps", {"a:1", "b:1", "c:1"}}}});
       for (int i = 0; i < 4; ++i) result["three"].push_back(three.device_of(variable()));
       return result;
     }},
    {"ps-x03",
     [](const CaseWorld&) {
       std::vector<PlacedOp> variables;
       for (const std::int64_t load : {5, 1, 1, 1, 1, 4}) variables.push_back(variable({load}));
       return greedy(
           3, [](const PlacedOp& op) { return static_cast<double>(op.shape[0]); }, variables);
     }},
    {"ps-x04",
     [](const CaseWorld&) {
       DeviceSetter place = setter({.ps_tasks = 2});
       Json value = Json::array();
       for (const char* scope : {"/job:ps/task:1", "", "/job:ps/gpu:0"}) {
         value.push_back(place.device_of(variable(), scope));
       }
       return Json{{"value", value}};
     }},
});

Json min_size(std::int64_t bytes, std::int64_t shards, const Shape& shape, DType dtype = DType::f32, int axis = 0) {
  return outcome_of([&] { return MinSizePartitioner(bytes, shards)(shape, dtype, axis); });
}
Json max_size(std::int64_t bytes, const Shape& shape, std::optional<std::int64_t> shards = {}) {
  return outcome_of([&] { return MaxSizePartitioner(bytes, shards)(shape, DType::f32); });
}
Json fixed(std::int64_t shards, const Shape& shape, int axis = 0) {
  return outcome_of([&] { return FixedShardsPartitioner(shards)(shape, DType::f32, axis); });
}
Json cut(const std::optional<Partitions>& answer, const Shape& shape) {
  return outcome_of([&] { return shard_sizes([&](const Shape&, DType) { return answer; }, shape, DType::f32); });
}

bool add_partitioners = add_cases({
    {"shd-002",
     [](const CaseWorld&) {
       return Json{{"values", {min_size(4, 2, {6, 1}), min_size(4, 10, {6, 1})}}};
     }},
    {"shd-003",
     [](const CaseWorld&) {
       return Json{{"values", {max_size(4, {6, 1}), max_size(4, {6, 1}, 2), max_size(1024, {6, 1})}}};
     }},
    {"ps2-008",
     [](const CaseWorld&) {
       const Shape shape = {4, 4, 4};
       const Partitions none, zero = {0, 1, 1}, two_axes = {2, 2, 1};
       return Json{{"each", {cut({}, shape), cut(none, shape), cut(zero, shape), cut(two_axes, shape)}}};
     }},
    {"shd-x01",
     [](const CaseWorld&) {
       return Json{{"value",
                    {min_size(16, 10, {10, 1}), min_size(8, 10, {3, 5}, DType::f64),
                     min_size(8, 10, {3, 5}, DType::f64, 1), min_size(0, 1, {1}), min_size(1, 0, {1})}}};
     }},
    {"shd-x02",
     [](const CaseWorld&) {
       const Shape shape = {10, 3};
       return Json{{"value",
                    {max_size(24, shape), max_size(25, shape), max_size(1, shape), max_size(1, shape, 4),
                     max_size(0, shape), max_size(1, shape, 0)}}};
     }},
    {"shd-x03",
     [](const CaseWorld&) {
       return Json{
           {"value", {fixed(4, {10, 2}), fixed(4, {3}), fixed(4, {10, 2}, 1), fixed(0, {3}), fixed(2, {3, 3}, 2)}}};
     }},
    {"shd-x04",
     [](const CaseWorld&) {
       const auto answer = [](std::initializer_list<std::int64_t> numbers) { return Partitions(numbers); };
       return Json{{"value",
                    {cut(answer({4}), {10}), cut(answer({5}), {3}), cut(answer({4}), {}), cut(answer({1}), {10}),
                     cut(answer({2, 1}), {5, 7}), cut(answer({0, 1}), {5, 7}), cut(answer({-1}), {10})}}};
     }},
});

using Links = std::vector<std::vector<int>>;
const Links kDgx1 = {{1, 2, 3, 4}, {0, 2, 3, 5}, {0, 1, 3, 6}, {0, 1, 2, 7},
                     {0, 5, 6, 7}, {1, 4, 6, 7}, {2, 4, 5, 7}, {3, 4, 5, 6}};

Json described(const CrossDeviceChoice& choice) {
  std::string text(name_of(choice.algorithm));
  if (choice.algorithm == CrossDeviceAlgorithm::collective) {
    text.append(" with ").append(name_of(choice.implementation));
  }
  return text;
}

Json by_links(const Links& links) {
  const CrossDeviceChoice choice = choose_by_links(links);
  const bool copies = choice.algorithm == CrossDeviceAlgorithm::hierarchical_copy;
  return {{"algorithm", copies ? "hierarchical_copy" : "nccl"}, {"num_packs", choice.num_packs}};
}

// GPUs 0 ... n - 1 with these links, all of them visible.
Json automatic(const Links& links, std::vector<std::string> more = {}) {
  std::vector<LinkedDevice> visible = {{.name = "/cpu:0"}};
  std::vector<std::string> devices = std::move(more);
  for (std::size_t i = 0; i < links.size(); ++i) {
    devices.push_back("/gpu:" + std::to_string(i));
    visible.push_back({.name = devices.back(), .links = links[i]});
  }
  return described(choose_automatically_v1(devices, visible));
}

Json specs(const Json& given) {
  return outcome_of([&] {
    Json completed;
    for (const AllReduceSpec& spec : all_reduce_specs_from_json(given.dump())) {
      completed.push_back({spec.algorithm, spec.shards, spec.limit});
    }
    return completed;
  });
}

Json batch(const CrossDeviceChoice& chosen, std::initializer_list<DType> dtypes) {
  const std::vector<DType> list = dtypes;
  return outcome_of([&] { return described(choose_for_batch(chosen, list)); });
}

bool add_choices = add_cases({
    {"xdo-010", [](const CaseWorld&) { return by_links(kDgx1); }},
    {"xdo-012",
     [](const CaseWorld&) {
       Links links = kDgx1;
       for (std::size_t i = 0; i < links.size(); ++i) links[i].push_back(static_cast<int>(i));
       return by_links(links);
     }},
    {"xdo-014",
     [](const CaseWorld&) {
       return Json{{"cpu", described(choose_automatically_v2({"/cpu:0"}, true))},
                   {"gpu_with_kernel", described(choose_automatically_v2({"/gpu:0"}, true))},
                   {"gpu_without_kernel", described(choose_automatically_v2({"/gpu:0"}, false))}};
     }},
    {"xdo-015",
     [](const CaseWorld&) {
       return Json{{"eager", described(choose_for_mirrored({"CPU:0", "CPU:1"}))},
                   {"graph_v1", described(choose_for_mirrored({"CPU:0", "CPU:1"}, {}, false))}};
     }},
    {"xdo-016",
     [](const CaseWorld&) {
       return Json{{"ops", described(choose_for_mirrored({"CPU:0", "GPU:0"}, {1, 1}))}};
     }},
    {"xdo-017",
     [](const CaseWorld&) {
       return Json{{"ops", described(choose_for_mirrored({"GPU:0", "GPU:1"}, {2, 2}))}};
     }},
    {"xdo-018",
     [](const CaseWorld&) {
       return Json{{"ops", described(choose_for_mirrored({"GPU:0", "GPU:1", "GPU:2"}, {.physical = 2, .logical = 3}))}};
     }},
    {"xdo-mw-002",
     [](const CaseWorld&) {
       Json completed;
       for (const char* given : {R"("nccl")", R"(["nccl"])", R"(["nccl", 4])", R"(["nccl", 4, 1024])"}) {
         completed.push_back(specs(Json::parse(given))[0]);
       }
       return Json{{"completed", completed},
                   {"inner_list", specs(Json::parse(R"([[["nccl", 1, -1]]])"))},
                   {"four_elements", specs(Json::parse(R"(["nccl", 1, -1, 0])"))}};
     }},
    {"xdo-x01",
     [](const CaseWorld&) {
       const Links ring = {{1, 3}, {0, 2}, {1, 3}, {0, 2}};
       Links rotated(kDgx1.begin() + 1, kDgx1.end());
       rotated.push_back(kDgx1.front());
       return Json{{"value",
                    {automatic(kDgx1, {"/cpu:0"}), automatic(kDgx1, {"/gpu:8"}), automatic(ring), automatic(rotated)}}};
     }},
    {"xdo-x02",
     [](const CaseWorld&) {
       const std::vector<AllReduceSpec> three = {{"nccl", 2, 10}, {"xring", 1, 100}, {"pscpu"}};
       const std::vector<AllReduceSpec> two = {{"nccl", 2, 10}, {"xring", 1, 100}};
       const std::vector<std::optional<std::int64_t>> elements = {5, 10, 11, 1000, 100};
       return Json{{"assigned", assign_to_specs(three, elements)},
                   {"without_any", outcome_of([&] { return assign_to_specs(two, elements); })},
                   {"unknown", outcome_of([&] { return assign_to_specs(three, {std::nullopt}); })},
                   {"algorithm", error_of([] { check_all_reduce_algorithm("tree"); })}};
     }},
    {"xdo-x03",
     [](const CaseWorld&) {
       const CrossDeviceChoice nccl{.algorithm = CrossDeviceAlgorithm::nccl, .num_packs = 1};
       return Json{{"value",
                    {batch(nccl, {DType::f32, DType::f32}), batch(nccl, {DType::i32, DType::i32}),
                     batch(nccl, {DType::f32, DType::i32})}}};
     }},
    {"xdo-x04",
     [](const CaseWorld&) {
       return Json{{"value",
                    {described(choose_automatically_v2({"GPU:0", "GPU:1"}, true, {1, 2})),
                     described(choose_automatically_v2({"CPU:0", "GPU:0"}, true, {1, 1})),
                     described(choose_for_mirrored({"GPU:0", "GPU:1"}, {2, 2}, false)),
                     described(choose_for_mirrored({"CPU:0", "GPU:0"}, {1, 1}, false))}}};
     }},
});

}  // namespace
}  // namespace tandem::placement_cases
