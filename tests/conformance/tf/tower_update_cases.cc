// 1.x: updating, fetching and colocating variables; values by device.
#include "tests/conformance/tf/tower_stage.h"

namespace tandem::tower_update_cases {
namespace {

using tower::DistributedValues;

Value first_argument(Variable& component, const Value::Parts& arguments) {
  return component.assign(arguments.front());
}

Json colocated_outside(TowerStage& stage) {
  std::shared_ptr<Variable> v;
  {
    const Scope scope = stage.towers.scope();
    v = stage.var(1);
  }
  return error_of([&] { const auto scope = stage.towers.colocate_vars_with(v); });
}

Json updated_per_device(TowerStage& stage) {
  const auto v = stage.var(1);
  return error_of([&] { stage.towers.update(v, first_argument, {stage.per_replica({1, 2})}); });
}

Json updated_local(TowerStage& stage) {
  const auto v = stage.var(1, Stage::Aggregation::sum, Stage::Synchronization::on_read);
  return error_of([&] { stage.towers.update(v, first_argument, {1.0}); });
}

Value doubled(const Tensor& x) {
  const Tensor result = x.device().allocate(x.dtype(), x.shape());
  x.device().compute_stream().launch(op::scale_add(result, x, 2, 0));
  return result;
}

// On the last device and on CPU:0, which are two.
Json fetched(const CaseWorld& world) {
  return world.on_worker([&](Worker& worker) -> Json {
    const std::vector<std::string> devices = {name_of(*worker.devices().back()), name_of(worker.cpu())};
    tower::MirroredStrategy towers(worker, {.devices = devices, .release = tower::Release::v1_9});
    const TowerStage stage(worker, towers, world.spec());
    const Scope scope = towers.scope();
    const auto v = stage.var(5);
    return {{"first", stage.json(towers.fetch(v, "/device:CPU:0"))},
            {"second", stage.json(towers.fetch(v, "/device:CPU:0", doubled))},
            {"third", error_of([&] { towers.fetch(Value::literal(5)); })}};
  });
}

// Fetched on a device where the variable has no component.
Json fetched_elsewhere(const CaseWorld& world) {
  return world.on_worker([&](Worker& worker) -> Json {
    const auto towers = mirrored_towers(worker, tower::Release::v1_9, 1);
    const TowerStage stage(worker, *towers, world.spec());
    const Scope scope = towers->scope();
    const auto v = stage.var(5);
    Device* computed = nullptr;
    const Value result = towers->fetch(v, name_of(*worker.devices().back()), [&](const Tensor& x) {
      computed = &x.device();
      return doubled(x);
    });
    return {{"value", stage.json(result)},
            {"computed_on_the_variable", computed == worker.devices().front()},
            {"stands_on_the_destination", &result.tensor().device() == worker.devices().back()}};
  });
}

Json ungrouped(TowerStage& stage) {
  const auto v = stage.var(1);
  const Value argument = stage.mirrored_on(stage.towers.worker_devices(), 4);
  const auto function = [](Variable& component, const Value::Parts& arguments) {
    const Tensor now = component.assign_add(arguments.front());
    return Value::map({{"doubled", doubled(now)}, {"name", Value(component.name())}, {"shared", Value::literal(7)}});
  };
  const Value together = stage.towers.update(v, function, {argument}).fields().at("doubled");
  const Json components = stage.components(*v);
  const Value apart = stage.towers.update(v, function, {argument}, false);
  return {{"grouped", {{"kind", name_of(together.kind())}, {"components", components}}},
          {"ungrouped", {{"kind", name_of(apart.fields().at("doubled").kind())}, {"values", stage.json(apart)}}},
          {"no_variable", error_of([&] { stage.towers.update(Value::literal(5), function, {argument}); })}};
}

Json non_slots(TowerStage& stage) {
  const auto v = stage.var(1);
  const std::vector<Device*> devices = stage.towers.non_slot_devices({v});
  int calls = 0;
  const Value apart = stage.towers.update_non_slot(
      devices, [&](const Value::Parts& arguments) { return Value(arguments.front().number() + calls++); }, {10.0},
      false);
  return {{"on_parameter_devices", devices == stage.towers.parameter_devices()},
          {"results", stage.json(apart)},
          {"per_device_argument", error_of([&] {
             stage.towers.update_non_slot(devices, [](const Value::Parts&) { return Value(); },
                                          {stage.per_replica({1, 2})});
           })}};
}

// Arguments of the update of a stored variable, which is in one place, have one part.
Json updated_stored(const CaseWorld& world) {
  return world.on_worker([&](Worker& worker) -> Json {
    tower::ParameterServerStrategy towers(worker, std::nullopt);
    const TowerStage stage(worker, towers, world.spec());
    const Scope scope = towers.scope();
    const auto v = stage.var(1, Stage::Aggregation::sum);
    const auto updated = [&](const Value& variable, const Value& argument) {
      return error_of([&] { towers.update(variable, first_argument, {argument}); });
    };
    const std::vector<Device*> devices = towers.worker_devices();
    const Json one = updated(v, stage.mirrored_on({devices.front()}, 4));
    return {{"one_component", one.is_null() ? Json("ok") : one},
            {"variable", stage.json(towers.read_var(*v))},
            {"two_components", updated(v, stage.mirrored_on(devices, 4))},
            {"per_device", updated(v, stage.per_replica({1, 2}))},
            {"not_a_variable", updated(Value::literal(5), Value(1.0))}};
  });
}

Json by_device(const CaseWorld&) {
  const auto v = DistributedValues::per_device({{"CPU:0", 1.0}, {"GPU:0", 2.0}});
  return {{"gpu", v.get("/device:GPU:0").number()},
          {"no_argument", v.get().number()},
          {"unknown_device", error_of([&] { v.get("/device:GPU:2"); })}};
}

Json canonical_keys(const CaseWorld&) {
  Json keys = Json::array();
  for (const char* key : {"", "/device:CPU:0", "/cpu:0", "/CPU:0"}) {
    keys.push_back(DistributedValues::per_device({{key, 42.0}}).devices().front());
  }
  return {{"key_of_each", one_of_equal(keys)}, {"last", error_of([] {
                                                  DistributedValues::per_device({{"/device:cpu:0", 42.0}});
                                                })}};
}

Json tensor_likeness(TowerStage& stage) {
  const Value one = stage.tensor(stage.worker.cpu(), {}, {1});
  const auto v = DistributedValues::per_device({{"CPU:0", one}, {"GPU:0", 2.0}});
  const auto w = DistributedValues::per_device({{"CPU:0", one}, {"GPU:0", one}});
  return {{"v.is_tensor_like", v.is_tensor_like()}, {"w.is_tensor_like", w.is_tensor_like()}};
}

Json selected(TowerStage& stage) {
  const Value per_device = stage.per_replica({1, 2});
  const Value mirrored = stage.mirrored_on(stage.towers.worker_devices(), 3);
  const Value nest = Value::list({per_device, mirrored, Value(4.0)});
  const std::string second = name_of(stage.device(1));
  return {{"second", stage.json(tower::select_device(second, nest))},
          {"of_variable", stage.json(tower::select_device(second, stage.var(7)))},
          {"mirrored", stage.json(tower::select_device_mirrored(second, mirrored))},
          {"per_device_refused", error_of([&] { tower::select_device_mirrored(second, nest); })},
          {"unknown_device", error_of([&] { tower::select_device("/device:GPU:77", nest); })}};
}

// Values of exactly the worker devices in their order, others by the devices' texts.
Json unwrap_order(TowerStage& stage) {
  const auto& devices = stage.towers.worker_devices();
  const auto part = [&](std::size_t i) { return Value(stage.tensor(*devices[i], {}, {static_cast<double>(i)})); };
  Value::Parts all, some;
  for (std::size_t i = 0; i < devices.size(); ++i) all.push_back(part(devices.size() - 1 - i));
  for (const std::size_t i : {2, 10}) some.push_back(part(i));
  return {{"all", stage.unwrapped(Value::per_replica(all))},
          {"some", stage.unwrapped(Value::per_replica(some))},
          {"bare", stage.unwrapped(Value(7.0))},
          {"grouped_one", stage.json(stage.towers.group(Value(7.0)))}};
}

// Numbers and texts that were given by device, the worker devices' last first; and those of some devices only.
Json unwrap_order_of_texts(TowerStage& stage) {
  const auto& devices = stage.towers.worker_devices();
  const std::string first = name_of(*devices[0]), second = name_of(*devices[1]), third = name_of(*devices[2]);
  const Value texts =
      DistributedValues::per_device(
          {{third, Value(std::string("c"))}, {first, Value(std::string("a"))}, {second, Value(std::string("b"))}})
          .value();
  const Value numbers = DistributedValues::mirrored({{second, 2}, {third, 3}, {first, 1}}).value();
  const Value some = DistributedValues::per_device({{third, 3}, {first, 1}}).value();
  const Value seen = stage.towers.call_for_each_tower(
      [](const Value::Parts& arguments) {
        return Value(arguments[0].text() + std::to_string(static_cast<int>(arguments[1].number())));
      },
      {texts, numbers});
  return {{"texts", stage.unwrapped(texts)},
          {"numbers", stage.unwrapped(numbers)},
          {"some", stage.unwrapped(some)},
          {"selected", stage.json(tower::select_device(second, texts))},
          {"seen_by_towers", stage.unwrapped(seen)},
          {"wrong_places", error_of([&] { Value::per_replica({1, 2}, {first}); })}};
}

// Slots that an optimizer makes with the variable that non_slot_devices() chooses among several.
Json colocated_with_non_slots(const CaseWorld& world) {
  const std::vector<WorkerSpec> cluster = {{.job = "worker", .task = 0, .device_count = 2},
                                           {.job = "ps", .task = 0, .device_count = 0},
                                           {.job = "ps", .task = 1, .device_count = 0}};
  return world.on_cluster(cluster, [&](Worker& worker) -> Json {
    if (worker.job() == "ps") return nullptr;
    const auto devices_of_slot = [&](tower::DistributionStrategy towers) -> Json {
      const TowerStage stage(worker, towers, world.spec());
      const Scope scope = towers.scope();
      const auto a = stage.var(1), b = stage.var(2);
      const std::vector<Device*> devices = towers.non_slot_devices({b, a});
      const auto colocated = towers.colocate_vars_with(devices);
      const auto slot = stage.var(3), next = stage.var(4);
      const Json elsewhere = error_of([&] { const auto no = towers.colocate_vars_with(std::vector<Device*>{}); });
      return {slot->devices() == devices, next->devices() == devices, elsewhere};
    };
    return {{"mirrored", devices_of_slot(*mirrored_towers(worker))},
            {"one_device", devices_of_slot(tower::OneDeviceStrategy(worker, name_of(*worker.devices().back())))},
            {"parameter_server", devices_of_slot(tower::ParameterServerStrategy(worker))}};
  })[0];
}

// A mirrored value that no tower's device holds.
Json absent_part(TowerStage& stage) {
  const Value elsewhere = stage.mirrored_on({stage.towers.worker_devices().front()}, 1);
  return error_of([&] {
    stage.towers.call_for_each_tower([](const Value::Parts& arguments) { return arguments.front(); }, {elsewhere});
  });
}

const bool added = add_cases({
    {"col-001", outside_scopes(colocated_outside)},
    {"upd-005", in_scope(updated_per_device)},
    {"upd-008", updated_stored},
    {"old-003", fetched},
    {"old-006", in_scope(updated_local, tower::Release::v1_9)},
    {"val-015", by_device},
    {"val-016", canonical_keys},
    {"val-017", in_scope(tensor_likeness)},
    {"twr-x10", in_scope(ungrouped)},
    {"twr-x11", in_scope(non_slots)},
    {"twr-x12", fetched_elsewhere},
    {"twr-x13", in_scope(selected)},
    {"twr-x14", in_scope(unwrap_order)},
    {"twr-x15", in_scope(absent_part)},
    {"twr-x16", in_scope(unwrap_order_of_texts)},
    {"twr-x17", colocated_with_non_slots},
});

}  // namespace
}  // namespace tandem::tower_update_cases
