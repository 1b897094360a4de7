// Area "checkpoint": what is saved of a distributed variable, and what comes back.
#include <unistd.h>

#include <filesystem>

#include "strategies/strategy/default_strategy.h"
#include "strategies/variables/checkpoint.h"
#include "tests/conformance/tf/stage.h"

namespace tandem::checkpoint_cases {
namespace {

using Aggregation = VariableAggregation;
constexpr auto kOnRead = VariableSynchronization::on_read;
constexpr auto kAutomatic = VariableSynchronization::automatic;

// A file of this case's own, removed with the object.
class File {
 public:
  explicit File(const Stage& stage)
      : path_((std::filesystem::temp_directory_path() /
               ("tandem-" + std::to_string(::getpid()) + "-" + stage.spec.id + ".ckpt"))
                  .string()) {}
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <typename T>
void save(const Stage& stage, const File& file, const T& variable) {
  Checkpoint checkpoint(stage.worker);
  checkpoint.add("v", variable);
  checkpoint.save(file.path());
}
template <typename T>
void restore(const Stage& stage, const File& file, const T& variable) {
  Checkpoint checkpoint(stage.worker);
  checkpoint.add("v", variable);
  checkpoint.restore(file.path());
}

std::shared_ptr<Variable> plain(double initial) {
  return default_strategy().create_variable(
      {.name = "v", .shape = {}, .initial_value = [initial](std::int64_t) { return initial; }});
}

void set_components(const Stage& stage, const std::shared_ptr<Variable>& v, const std::vector<double>& values) {
  stage.strategy.extended().update(v,
                                   [](Variable& component, const Value::Parts& arguments) {
                                     component.assign(arguments[0]);
                                     return Value();
                                   },
                                   {stage.per_replica(values)});
}

double saved_in(const File& file) {
  return CheckpointReader(file.path()).initial_value("v")(0);
}

// Components [3, 4] saved, [5, 6] overwritten.
Json round_trip(Stage& stage, const std::shared_ptr<Variable>& v) {
  const File file(stage);
  set_components(stage, v, {3, 4});
  save(stage, file, v);
  set_components(stage, v, {5, 6});
  restore(stage, file, v);
  return {{"saved", saved_in(file)}, {"components", stage.components(*v)}};
}

Json from_plain(Stage& stage, double value, const std::shared_ptr<Variable>& v) {
  const File file(stage);
  save(stage, file, plain(value));
  restore(stage, file, v);
  return {{"components", stage.components(*v)}};
}

// ckp-011: what one aggregation makes of it.
Json through_plain(Stage& stage, Aggregation aggregation) {
  const File file(stage);
  const auto v = stage.var(1, aggregation, kOnRead);
  run_each(stage, [&] { v->assign(4.0 - replica_id()); });
  save(stage, file, v);
  restore(stage, file, v);
  Json found = {{"component0_after_restore", stage.components(*v)[0]}};
  const auto p = plain(0);
  restore(stage, file, p);
  found["plain"] = stage.json(p->read());
  save(stage, file, plain(2));
  restore(stage, file, v);
  found["component0_from_plain_2"] = stage.components(*v)[0];
  return found;
}

// ckp-012: the same for every aggregation, or a list that shows where not.
Json with_plain_for_all(Stage& stage) {
  Json all = Json::array();
  for (const Aggregation aggregation :
       {Aggregation::none, Aggregation::sum, Aggregation::mean, Aggregation::only_first_replica}) {
    const File file(stage);
    const auto v = stage.var(2, aggregation);
    save(stage, file, v);
    restore(stage, file, v);
    Json found = {{"v", stage.json(v->read())}};
    const auto p = plain(1);
    restore(stage, file, p);
    found["plain"] = stage.json(p->read());
    save(stage, file, plain(3));
    restore(stage, file, v);
    found["v_from_plain"] = stage.json(v->read());
    all.push_back(found);
  }
  return {{"each", all}};
}

ShardedVariable sharded(Stage& stage, const std::vector<std::vector<double>>& shards) {
  std::vector<std::shared_ptr<Variable>> variables;
  for (const std::vector<double>& shard : shards) variables.push_back(stage.var(shard));
  return ShardedVariable(variables, "v");
}

Json shards_of(Stage& stage, const ShardedVariable& variable) {
  Json shards = Json::array();
  for (const auto& shard : variable.variables()) shards.push_back(stage.json(shard->read()));
  return shards;
}

void damage(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  std::fseek(file, -6, SEEK_END);
  const int byte = std::fgetc(file);
  std::fseek(file, -6, SEEK_END);
  std::fputc(byte ^ 1, file);
  std::fclose(file);
}

const bool added = add_cases({
    {"ckp-001", staged([](Stage& stage) { return round_trip(stage, stage.var(0, Aggregation::sum, kOnRead)); })},
    {"ckp-004", staged([](Stage& stage) -> Json {
       const File file(stage);
       const auto v = stage.var(0, Aggregation::mean, kOnRead);
       set_components(stage, v, {3, 4});
       save(stage, file, v);
       const auto p = plain(0);
       restore(stage, file, p);
       return {{"plain", stage.json(p->read())}};
     })},
    {"ckp-006", staged([](Stage& stage) { return from_plain(stage, 3.5, stage.var(0, Aggregation::mean, kOnRead)); })},
    {"ckp-007", staged([](Stage& stage) -> Json {
       const File file(stage);
       const auto v = stage.var(0, Aggregation::sum, kOnRead);
       set_components(stage, v, {1.5, 2});
       save(stage, file, v);
       const auto w = stage.var(0, Aggregation::sum, kOnRead);
       set_components(stage, w, {7, 8});
       restore(stage, file, w);
       return {{"components", stage.components(*w)}};
     })},
    {"ckp-008", staged([](Stage& stage) { return round_trip(stage, stage.var(0, Aggregation::none, kAutomatic)); })},
    {"ckp-010", staged([](Stage& stage) { return from_plain(stage, 3, stage.var(0)); })},
    {"ckp-011", staged([](Stage& stage) -> Json {
       return {{"SUM", through_plain(stage, Aggregation::sum)}, {"MEAN", through_plain(stage, Aggregation::mean)}};
     })},
    {"ckp-012", staged(with_plain_for_all)},
    {"ckp-013", staged([](Stage& stage) -> Json {
       const File file(stage);
       ShardedVariable four = sharded(stage, {{0}, {1}, {2}, {3}});
       save(stage, file, four);
       const auto one = stage.var({0, 0, 0, 0});
       restore(stage, file, one);
       Json found = {{"one_shard", stage.json(one->read())}};
       one->assign(stage.tensor(stage.worker.cpu(), {4}, {5, 10, 15, 20}));
       save(stage, file, one);
       restore(stage, file, four);
       found["four_shards"] = shards_of(stage, four);
       return found;
     })},
    {"ckp-015", staged([](Stage& stage) -> Json {
       const File file(stage);
       const auto x = stage.var(1);
       const auto round = [&](double kept, double lost) {
         x->assign(kept);
         save(stage, file, x);
         x->assign(lost);
         restore(stage, file, x);
         return stage.json(x->read());
       };
       const Json first = round(123, 234);
       return {{"after_first_restore", first}, {"after_second_restore", round(345, 456)}};
     })},
    {"ckp-x01", staged([](Stage& stage) -> Json {
       const File file(stage);
       const auto v = stage.var(7);
       const Json missing = error_of([&] { restore(stage, file, v); });
       save(stage, file, v);
       const Json other_shape = error_of([&] { restore(stage, file, stage.var({1, 2})); });
       Checkpoint renamed(stage.worker);
       renamed.add("w", v);
       const Json other_name = error_of([&] { renamed.restore(file.path()); });
       damage(file.path());
       v->assign(8);
       const Json damaged = error_of([&] { restore(stage, file, v); });
       return {{"missing", missing},
               {"other_shape", other_shape},
               {"other_name", other_name},
               {"damaged", damaged},
               {"v_untouched", stage.json(v->read())}};
     })},
    {"ckp-x02", staged([](Stage& stage) -> Json {
       const File file(stage);
       const auto v = stage.var(0, Aggregation::sum, kOnRead, DType::i32);
       run_each(stage, [&] { v->assign(3.0 + replica_id()); });
       save(stage, file, v);
       restore(stage, file, v);
       return {{"saved", saved_in(file)}, {"components", stage.components(*v)}};
     })},
});

}  // namespace
}  // namespace tandem::checkpoint_cases
