#include "tests/conformance/kit/division/division_conformance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "engine/engine_info.h"
#include "engine/launched_job.h"
#include "scenarios/run/runner.h"
#include "strategies/parallel/layout/parallel_options.h"
#include "strategies/strategies.h"
#include "tests/conformance/worlds.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr int kSteps = 4;
constexpr double kRounding = 1e-5;  // of f32 sums in another order, relative to the loss
constexpr int kBatch = 8;
constexpr int kBlocks = 4;  // of both models
constexpr const char* kGpt = "model: gpt_tiny, sizes: {layers: 4, hidden: 32, tokens: 16}, batch: 8";
constexpr const char* kExperts = "model: moe_tiny, sizes: {layers: 4, hidden: 32, tokens: 16}, batch: 8";

std::string with_batch(std::string model, int batch) {
  const std::string usual = fmt::format("batch: {}", kBatch);
  return model.replace(model.find(usual), usual.size(), fmt::format("batch: {}", batch));
}

int ranks_of(const EngineInfo& engine) {
  const LaunchedJob* job = engine.join == nullptr ? nullptr : engine.join();
  return job == nullptr ? 1 : job->rank().count;
}

std::string devices_text(const DivisionUnderTest& tested) {
  const EngineInfo& engine = engine_info(tested.engine);
  const int ranks = ranks_of(engine);
  const char* type = engine.needs_topology || engine.default_device == DeviceType::gpu ? "gpu" : "cpu";
  return fmt::format("devices: {{workers: {}, per_worker: {}, type: {}}}\n", ranks, tested.devices / ranks, type);
}

std::string engine_text(const std::string& name, bool values) {
  if (!engine_info(name).needs_topology) return fmt::format("engine: {{name: {}}}\n", name);
  return fmt::format("engine: {{name: {}, values: {}}}\ntopology: hgx-h100\n", name, values ? "real" : "none");
}

std::string strategy_text(const DivisionUnderTest& tested) {
  std::string text = "strategy: {name: " + tested.traits.name;
  for (const std::string& keys : {tested.traits.keys, tested.mesh}) {
    if (!keys.empty()) text += ", " + keys;
  }
  return text + "}\n";
}

std::string workload_text(const std::string& model, bool values, const std::string& more) {
  constexpr const char* kLearning = ", values: real, optimizer: momentum, learning_rate: 0.05, bucket_bytes: 20kB";
  return fmt::format("schema_version: 1\nworkload: {{kind: layers, {}{}{}}}\nsteps: {}\n", model,
                     values ? kLearning : ", dtype: bf16", more, kSteps);
}

Report report_of(const std::string& text, std::optional<std::uint64_t> seed = {}) {
  return run_scenario(parse_scenario(text, "division.yaml"), {.schedule_seed = seed, .measures_scaling = false}).report;
}

std::vector<double> losses_on_one_device(const std::string& model) {
  static std::map<std::string, std::vector<double>> known;
  std::vector<double>& losses = known[model];
  if (losses.empty()) {
    losses = report_of(workload_text(model, true, "") + "strategy: {name: one_device}\n" +
                       engine_text(std::string(model_engine().name), true) + "devices: {type: gpu}\n")
                 .loss;
  }
  return losses;
}

std::string training_text(const DivisionUnderTest& tested) {
  return workload_text(tested.model, true, tested.training) + strategy_text(tested) + devices_text(tested) +
         engine_text(tested.engine, true);
}

std::string prediction_text(const DivisionUnderTest& tested) {
  return workload_text(tested.model, false, tested.training) + strategy_text(tested) + devices_text(tested) +
         engine_text(tested.engine, false);
}

// Returns why the strategy does not divide the model so; nothing where it does.
std::optional<std::string> refusal_of(const std::string& text) {
  try {
    parse_scenario(text, "division.yaml");
    return std::nullopt;
  } catch (const InputError& error) {
    return error.what();
  }
}

// Sizes of meshes whose product is a number of devices, in the order of the keys.
struct Mesh {
  int data = 1, tensor = 1, pipeline = 1, context = 1;
};

std::vector<Mesh> meshes_of(int devices) {
  std::vector<Mesh> meshes;
  for (int data = 1; data <= devices; data *= 2) {
    for (int tensor = 1; data * tensor <= devices; tensor *= 2) {
      for (int pipeline = 1; data * tensor * pipeline <= devices; pipeline *= 2) {
        meshes.push_back({data, tensor, pipeline, devices / (data * tensor * pipeline)});
      }
    }
  }
  return meshes;
}

std::string title_of(const Mesh& mesh) {
  std::string title;
  for (const auto& [axis, size] : std::initializer_list<std::pair<const char*, int>>{
           {"data", mesh.data}, {"tensor", mesh.tensor}, {"pipeline", mesh.pipeline}, {"context", mesh.context}}) {
    if (size > 1) title += fmt::format("{}{}{}", title.empty() ? "" : "_", axis, size);
  }
  return title;
}

// The orders with gradients of weights as passes of their own that have blocks for all of their stages.
std::vector<std::string> orders_of(int pipeline) {
  std::vector<std::string> orders;
  for (const auto& [name, order] : pipeline_orders()) {
    const ParallelOptions options{.pipeline = pipeline, .order = order};
    const bool is_usual = order == PipelineOrder::one_forward_one_backward;
    if (!is_usual && options.stages() <= kBlocks) orders.push_back(name);
  }
  return orders;
}

void add_order(DivisionUnderTest tested, const std::string& order, std::vector<DivisionUnderTest>& all) {
  tested.mesh += ", schedule: " + order;
  tested.title += "_" + order;
  all.push_back(tested);
}

// Appends the same pipeline in one of these orders in turn.
void add_some_order(const DivisionUnderTest& tested, int pipeline, int number, std::vector<DivisionUnderTest>& all) {
  const std::vector<std::string> orders = orders_of(pipeline);
  add_order(tested, orders[static_cast<std::size_t>(number) % orders.size()], all);
}

// Each mesh of a GPT, some with what not every mesh needs; and of a model with experts, divided in each way.
void add_meshes(const DivisionUnderTest& base, bool has_micro_batches, std::vector<DivisionUnderTest>& all) {
  int number = 0;
  for (const Mesh& mesh : meshes_of(base.devices)) {
    DivisionUnderTest tested = base;
    tested.title = title_of(mesh);
    tested.mesh = fmt::format("data: {}, tensor: {}, pipeline: {}, context: {}", mesh.data, mesh.tensor, mesh.pipeline,
                              mesh.context);
    const int kind = number++ % 3;
    if (kind == 1 && mesh.tensor > 1) tested.training = ", sequence_parallel: true";
    // Both models have one table for two layers, which two stages cannot keep in pieces.
    const bool has_pieces = kind == 2 && mesh.pipeline == 1;
    if (kind != 0 && mesh.data > 1)
      tested.mesh += has_pieces ? ", shard_parameters: true" : ", distributed_optimizer: true";
    if (kind != 0 && mesh.data == 4) tested.mesh += ", replicate: 2";
    if (kind == 2) tested.training += ", activation_checkpointing: true";
    const bool has_orders = mesh.pipeline > 1 && has_micro_batches;
    if (has_orders) tested.mesh += fmt::format(", micro_batches: {}", 2 * mesh.pipeline);
    all.push_back(tested);
    if (has_orders) add_some_order(tested, mesh.pipeline, number, all);
    for (int experts = 1; experts <= mesh.data * mesh.context; experts *= 2) {
      DivisionUnderTest of_experts = tested;
      of_experts.model = kExperts;
      of_experts.mesh += fmt::format(", expert: {}", experts);
      of_experts.title += fmt::format("_experts{}", experts);
      all.push_back(of_experts);
      if (has_orders && experts > 1) add_some_order(of_experts, mesh.pipeline, number + experts, all);
    }
  }
}

// All devices along one axis.
void add_axis(const DivisionUnderTest& base, bool has_micro_batches, std::vector<DivisionUnderTest>& all) {
  DivisionUnderTest tested = base;
  tested.title = fmt::format("devices{}", tested.devices);
  if (has_micro_batches) tested.mesh = fmt::format("micro_batches: {}", 2 * tested.devices);
  all.push_back(tested);
  if (has_micro_batches) {
    for (const std::string& order : orders_of(tested.devices)) add_order(tested, order, all);
  }
  tested.model = kExperts;
  tested.training = ", activation_checkpointing: true";
  tested.title += "_experts_again";
  all.push_back(tested);
}

}  // namespace

std::vector<DivisionUnderTest> in_every_mesh(const DivisionTraits& traits) {
  const std::optional<ModelDivision>& division = strategy_info(traits.name).division;
  TANDEM_REQUIRE(division, "strategy '" + traits.name + "' does not divide the model: see strategy_conformance.h");
  std::vector<DivisionUnderTest> all;
  for (const EngineInfo& engine : all_engines()) {
    if (!engine.built()) continue;
    for (const int devices : {2, 4}) {
      const bool fits_ranks = devices % ranks_of(engine) == 0;
      DivisionUnderTest tested{.traits = traits, .engine = std::string(engine.name), .model = kGpt, .devices = devices};
      if (!fits_ranks) continue;
      if (division->axis == nullptr) {
        add_meshes(tested, division->micro_batches, all);
      } else {
        add_axis(tested, division->micro_batches, all);
      }
    }
  }
  return all;
}

std::vector<DivisionUnderTest> in_predicted_meshes(const DivisionTraits& traits) {
  std::vector<DivisionUnderTest> all = in_every_mesh(traits);
  std::erase_if(all, [](const DivisionUnderTest& tested) { return !engine_info(tested.engine).needs_topology; });
  return all;
}

std::string refusal_of(const DivisionUnderTest& tested) {
  return refusal_of(training_text(tested)).value_or("");
}

std::ostream& operator<<(std::ostream& out, const DivisionUnderTest& tested) {
  return out << "strategy '" << tested.traits.name << "' with {" << tested.mesh << "} on " << tested.devices
             << " devices of engine '" << tested.engine << "'";
}

std::ostream& operator<<(std::ostream& out, const DivisionTraits& traits) {
  return out << traits.name;
}

std::string DivisionConformance::name(const testing::TestParamInfo<DivisionUnderTest>& info) {
  return info.param.traits.name + "_" + info.param.title + "_" + info.param.engine;
}

std::string DivisionOfModels::name(const testing::TestParamInfo<DivisionTraits>& info) {
  return info.param.name;
}

namespace {

// Other ranks of a launch have no losses.
bool is_reporting(const DivisionUnderTest& tested) {
  const EngineInfo& engine = engine_info(tested.engine);
  const LaunchedJob* job = engine.join == nullptr ? nullptr : engine.join();
  return job == nullptr || job->rank().index == 0;
}

void complain(const DivisionUnderTest& tested, const std::string& what, const std::string& found,
              const std::string& must, const std::string& rule) {
  ADD_FAILURE() << what << ": found " << found << ", must be " << must << "\nA correct strategy " << rule
                << ".\nTested: " << tested;
}

std::string numbers(const std::vector<double>& values) {
  return fmt::format("[{:.7g}]", fmt::join(values, ", "));
}

void expect_losses_of_one_device(const DivisionUnderTest& tested, const std::vector<double>& found) {
  const std::vector<double> expected = losses_on_one_device(tested.model);
  ASSERT_EQ(expected.size(), std::size_t{kSteps}) << "one device knows no losses";
  std::size_t step = 0;
  while (step < expected.size() && step < found.size() && std::abs(found[step] / expected[step] - 1) < kRounding)
    ++step;
  if (step == expected.size() && step == found.size()) return;
  complain(tested, fmt::format("the losses from step {} on", step), numbers(found),
           numbers(expected) + ", those of one device",
           step == 0 ? "computes the whole model on the whole batch: every micro-batch, and every sum over devices"
                     : "adds up the gradients of all devices and micro-batches, each once, and updates by their sum");
}

// An engine may be built where it cannot run; a strategy need not divide a model in every way.
std::string reason_to_skip(const DivisionUnderTest& tested) {
  if (const auto refusal = refusal_of(training_text(tested))) return *refusal;
  const EngineInfo& engine = engine_info(tested.engine);
  if (engine.needs_topology) return "";
  return reason_to_skip(
      World{.name = tested.engine, .engine = tested.engine, .compute_devices = engine.default_device});
}

}  // namespace

TEST_P(DivisionConformance, LearnsWhatOneDeviceLearns) {
  if (const std::string reason = reason_to_skip(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<double> found = report_of(training_text(GetParam())).loss;
  if (is_reporting(GetParam())) expect_losses_of_one_device(GetParam(), found);
}

TEST_P(DivisionPredictions, LearnTheSameInAnyOrderOfTasks) {
  if (const auto refusal = refusal_of(training_text(GetParam()))) GTEST_SKIP() << *refusal;
  const Report usual = report_of(training_text(GetParam()));
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Report other = report_of(training_text(GetParam()), seed);
    if (other.loss == usual.loss) continue;
    complain(GetParam(), fmt::format("the losses under schedule seed {}", seed), numbers(other.loss),
             numbers(usual.loss), "comes to the same values in whatever order tasks run: it waits for what it reads");
  }
}

TEST_P(DivisionPredictions, AreTheSameInEveryRun) {
  const std::string text = prediction_text(GetParam());
  if (const auto refusal = refusal_of(text)) GTEST_SKIP() << *refusal;
  const Report once = report_of(text), again = report_of(text);
  const auto time = once.summary.step_time.mean, time_again = again.summary.step_time.mean;
  if (time != time_again) {
    complain(GetParam(), "the simulated time of a step, in ns, in the second run", fmt::format("{}", time_again),
             fmt::format("{}", time), "takes the same time in every simulation");
  }
}

TEST_P(DivisionPredictions, SayWhatADeviceKeeps) {
  const std::string text = prediction_text(GetParam());
  if (const auto refusal = refusal_of(text)) GTEST_SKIP() << *refusal;
  const Report report = report_of(text);
  if (report.memory && report.memory->activations > 0) return;
  complain(GetParam(), "the activations that a device keeps, by shares()", "none", "some",
           "says in shares() which layers a device has and how many passes are under way");
}

TEST_P(DivisionOfModels, DivideAmongSomeDevices) {
  const auto all = in_every_mesh(GetParam());
  ASSERT_FALSE(all.empty()) << "no engine is built";
  if (std::ranges::any_of(all, [](const auto& tested) { return refusal_of(tested).empty(); })) return;
  complain(all.front(), "meshes on which a model is divided", "none: " + refusal_of(all.front()), "some",
           "divides a small GPT among some numbers of devices");
}

// A batch of 7 divides among few devices: either it is trained as on one device, or refused before the run.
TEST_P(DivisionOfModels, RefuseWhatTheyDoNotDivide) {
  for (DivisionUnderTest tested : in_predicted_meshes(GetParam())) {
    tested.model = with_batch(tested.model, 7);
    if (refusal_of(training_text(tested))) continue;
    expect_losses_of_one_device(tested, report_of(training_text(tested)).loss);
  }
}

}  // namespace tandem
