// The same program leaves the same operations in the same order on every stream, whatever the engine.
#include <map>
#include <set>
#include <tuple>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;

// A data-parallel step without a strategy.
void training_program(Worker& worker, std::vector<float>& result) {
  Communicator& communicator = worker.communicator(all_devices(worker));
  std::vector<Tensor> weights, gradients;
  for (Device* device : worker.devices()) {
    weights.push_back(put(worker, *device, {1, 2, 3, 4}));
    gradients.push_back(device->allocate(DType::f32, {4}));
  }
  for (int step = 0; step < 3; ++step) {
    worker.begin_step(step);
    worker.tasks().run_concurrently(static_cast<int>(weights.size()), [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      Stream& stream = worker.devices()[at]->compute_stream();
      stream.launch(op::scale_add(gradients[at], weights[at], 0.5, 0));
      worker.devices()[at]->stream(kCommunicationStream).wait(stream.record());
    });
    communicator.all_reduce(gradients, Reduction::sum, streams_of(worker, kCommunicationStream));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Device& device = *worker.devices()[i];
      device.compute_stream().wait(device.stream(kCommunicationStream).record());
      Op update = op::scale_add(weights[i], gradients[i], -0.25, 1);
      update.category = Category::update;
      device.compute_stream().launch(std::move(update));
    }
    worker.end_step();
  }
  if (worker.index() == 0) result = get(worker, weights[0]);
}

// What a stream did: kind, category, name, step, bytes, ranks; the same in every world, unlike times.
using Did = std::tuple<RecordKind, Category, std::string, int, double, double, int>;
// By worker, index of the device within the worker (-1 for the host) and stream.
using Sequences = std::map<std::tuple<int, int, int>, std::vector<Did>>;

Sequences sequences_of(const Timeline& timeline) {
  Sequences sequences;
  for (const Record& record : timeline.records) {
    int index = kNoDevice;
    if (record.device != kNoDevice) {
      index = DeviceId::parse(timeline.devices[static_cast<std::size_t>(record.device)].name, {})->index;
    }
    sequences[{record.worker, index, record.stream}].emplace_back(
        record.kind, record.category, record.name, record.step, record.bytes, record.flops, record.ranks);
  }
  return sequences;
}

TEST(Engines, AgreeOnValuesAndOnTheSequenceOfOperations) {
  std::vector<World> worlds = built_worlds();
  std::erase_if(worlds, [](const World& world) { return !reason_to_skip(world).empty(); });
  ASSERT_FALSE(worlds.empty());
  std::vector<float> first_values;
  Sequences first_sequences;
  for (const World& world : worlds) {
    std::vector<float> values;
    const Timeline timeline = open_world(world, 2, 2)->run([&](Worker& worker) { training_program(worker, values); });
    const Sequences sequences = sequences_of(timeline);
    if (&world == &worlds.front()) {
      first_values = values;
      first_sequences = sequences;
    }
    EXPECT_EQ(values, first_values) << world;
    EXPECT_EQ(sequences, first_sequences) << world;
  }
  EXPECT_THAT(first_values, ElementsAre(0.125, 0.25, 0.375, 0.5));
  // Two streams of each of four devices and the steps of two workers.
  EXPECT_EQ(first_sequences.size(), 2U * 2 * 2 + 2);
}

TEST_P(EveryEngine, RecordsWhatItIsAskedFor) {
  const auto kinds_at = [&](RecordLevel level) {
    EngineOptions options = world_options(GetParam(), 1, 2);
    options.records = level;
    const Timeline timeline = open_engine(GetParam().engine, std::move(options))->run([](Worker& worker) {
      worker.begin_step(0);
      std::vector<Tensor> tensors;
      for (Device* device : worker.devices()) tensors.push_back(put(worker, *device, {1, 2, 3}));
      for (const Tensor& tensor : tensors) tensor.device().compute_stream().launch(op::scale_add(tensor, tensor, 1, 1));
      worker.communicator(all_devices(worker)).all_reduce(tensors, Reduction::sum, streams_of(worker, kComputeStream));
      EXPECT_THAT(get(worker, tensors[1]), testing::ElementsAre(4, 8, 12)) << "the work is the same";
      worker.end_step();
    });
    std::set<RecordKind> kinds;
    for (const Record& record : timeline.records) kinds.insert(record.kind);
    return kinds;
  };
  EXPECT_THAT(kinds_at(RecordLevel::all),
              testing::ElementsAre(RecordKind::op, RecordKind::copy, RecordKind::collective, RecordKind::step));
  EXPECT_THAT(kinds_at(RecordLevel::collectives), testing::ElementsAre(RecordKind::collective, RecordKind::step));
  EXPECT_THAT(kinds_at(RecordLevel::steps), testing::ElementsAre(RecordKind::step));
}

TEST_P(EveryEngine, RecordsAreOrderedAndLieWithinTheirSteps) {
  std::vector<float> values;
  const Timeline timeline = run(2, 2, [&](Worker& worker) { training_program(worker, values); });
  const auto key = [](const Record& r) { return std::tie(r.start_ns, r.worker, r.device, r.stream); };
  EXPECT_TRUE(std::is_sorted(timeline.records.begin(), timeline.records.end(),
                             [&](const Record& a, const Record& b) { return key(a) < key(b); }));
  std::map<std::pair<int, int>, const Record*> steps;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step) steps[{record.worker, record.step}] = &record;
  }
  EXPECT_EQ(steps.size(), 2U * 3);
  std::map<std::int64_t, int> ranks_of_call;
  for (const Record& record : timeline.records) {
    EXPECT_LE(record.start_ns, record.end_ns);
    if (record.kind == RecordKind::step || record.step == kNoStep) continue;
    const Record& step = *steps.at({record.worker, record.step});
    EXPECT_GE(record.start_ns, step.start_ns) << record.name;
    EXPECT_LE(record.end_ns, step.end_ns) << record.name;
    if (record.kind == RecordKind::collective) ++ranks_of_call[record.sequence];
  }
  EXPECT_EQ(ranks_of_call.size(), 3U);
  EXPECT_THAT(ranks_of_call, Each(testing::Pair(testing::_, 4)));
}

}  // namespace
}  // namespace tandem
