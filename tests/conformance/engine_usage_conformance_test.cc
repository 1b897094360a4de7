// A caller's mistake throws UsageError on every engine, in the same words, and the run goes on for who catches it.
#include "engine/mailbox.h"
#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

class EveryEngineRefuses : public EveryEngine {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineRefuses, testing::ValuesIn(built_worlds()), name_of_world);

// One f32 tensor of `count` elements on each device of the worker.
std::vector<Tensor> tensors_of(Worker& worker, std::int64_t count) {
  std::vector<Tensor> tensors;
  for (Device* device : worker.devices()) tensors.push_back(device->allocate(DType::f32, {count}));
  return tensors;
}

// A model of a machine, and devices in memory that others reach, refuse none.
TEST_P(EveryEngineRefuses, DevicesOfOthersThatItDoesNotReach) {
  run(2, 1, [](Worker& worker) {
    DeviceId other = worker.devices()[0]->id();
    other.task = 1 - worker.index();
    const auto reach = [&] { worker.device(other); };
    if (worker.capabilities().remote_devices) {
      EXPECT_NO_THROW(reach());
      return;
    }
    EXPECT_THAT(reach, ThrowsMessage<UnavailableError>(HasSubstr(other.text() + " is in another process")));
    const auto make = [&] { return worker.devices()[0]->allocate(DType::f32, {1}); };
    const auto share = [&] { worker.shared().tensor("sum", make); };
    EXPECT_THAT(share, ThrowsMessage<UnavailableError>(HasSubstr("'sum' cannot be shared")));
    const auto send = [&] {
      worker.shared().mailbox(1 - worker.index(), "box")->send({.text = "", .tensors = {make()}});
    };
    EXPECT_THAT(send, ThrowsMessage<UnavailableError>(HasSubstr("a message with tensors to another process")));
  });
}

TEST_P(EveryEngineRefuses, GroupsWithoutDevicesOrWithOneTwice) {
  run(1, 2, [](Worker& worker) {
    EXPECT_THAT([&] { worker.communicator({}); },
                ThrowsMessage<UsageError>("a communicator needs at least one device"));
    const DeviceId id = worker.devices()[1]->id();
    const std::vector<DeviceId> twice{worker.devices()[0]->id(), id, id};
    EXPECT_THAT([&] { worker.communicator(twice); },
                ThrowsMessage<UsageError>("a communicator names " + id.text() + " twice"));
  });
}

TEST_P(EveryEngineRefuses, AnOpWhoseOperandsDoNotFit) {
  const auto program = [](Worker& worker) {
    Device& device = *worker.devices()[0];
    const Tensor a = device.allocate(DType::f32, {2, 3}), b = device.allocate(DType::f32, {4, 2});
    device.compute_stream().launch(op::gemm(device.allocate(DType::f32, {2, 2}), a, b));
  };
  EXPECT_THAT([&] { run(1, 1, program); },
              ThrowsMessage<UsageError>(says(GetParam(), "gemm of [2, 3] and [4, 2] to [2, 2]")));
}

TEST_P(EveryEngineRefuses, CopiesThatDoNotFit) {
  run(1, 2, [](Worker& worker) {
    Device& first = *worker.devices()[0];
    Device& second = *worker.devices()[1];
    const Tensor three = first.allocate(DType::f32, {3}), four = first.allocate(DType::f32, {4});
    EXPECT_THAT([&] { first.compute_stream().copy(four, three); },
                ThrowsMessage<UsageError>("a copy of f32[3] to f32[4], must have one element type and size"));
    const Tensor counts = first.allocate(DType::i32, {3});
    EXPECT_THAT([&] { first.compute_stream().copy(counts, three); },
                ThrowsMessage<UsageError>(StartsWith("a copy of f32[3] to i32[3]")));
    const Tensor other = first.allocate(DType::f32, {3});
    EXPECT_THAT([&] { second.compute_stream().copy(other, three); },
                ThrowsMessage<UsageError>(HasSubstr("on a stream of " + second.id().text())));
    EXPECT_THAT([&] { first.compute_stream().copy(three, Tensor()); }, testing::Throws<UsageError>());
    EXPECT_THAT([&] { first.stream(-1); }, ThrowsMessage<UsageError>("a stream with a negative index"));
  });
}

TEST_P(EveryEngineRefuses, CollectivesWhoseOperandsDoNotFit) {
  run(1, 2, [](Worker& worker) {
    Communicator& group = worker.communicator(all_devices(worker));
    const std::vector<Stream*> streams = streams_of(worker, kComputeStream);
    const std::vector<Tensor> three = tensors_of(worker, 3), six = tensors_of(worker, 6);
    const auto expect = [](const std::function<void()>& call, const std::string& message) {
      EXPECT_THAT(call, ThrowsMessage<UsageError>(HasSubstr(message)));
    };
    const std::vector<Tensor> mixed{three[0], six[1]}, crossed{three[1], three[0]}, missing{three[0], Tensor()};
    expect([&] { group.all_reduce(mixed, Reduction::sum, streams); },
           "all_reduce with tensors f32[3] and f32[6], must have one element type and size");
    expect([&] { group.all_reduce(crossed, Reduction::sum, streams); }, "all_reduce with a tensor on ");
    expect([&] { group.all_reduce(missing, Reduction::sum, streams); }, "all_reduce without a tensor for ");
    expect(
        [&] {
          group.all_reduce({three.data(), 1}, Reduction::sum, streams);
        },
        "all_reduce with 1 outputs, 1 inputs and 2 streams, must be one each for 2 local devices");
    const std::vector<Stream*> swapped{streams[1], streams[0]};
    expect([&] { group.all_reduce(three, Reduction::sum, swapped); }, "all_reduce without a stream of ");
    expect([&] { group.all_gather(three, three, streams); }, "all_gather of f32[3] to f32[3] in a group of 2 devices");
    expect([&] { group.reduce_scatter(six, three, Reduction::sum, streams); }, "reduce_scatter of f32[3] to f32[6]");
    expect([&] { group.all_to_all(six, three, streams); },
           "all_to_all of f32[3] to f32[6] in a group of 2 devices: both have one type and size");
    const std::vector<Tensor> other_three = tensors_of(worker, 3);
    expect([&] { group.all_to_all(other_three, three, streams); }, "all_to_all of f32[3] in parts for 2 ranks");
    expect([&] { group.all_to_all(six, six, streams); },
           "all_to_all of f32[6] in place, must have an output apart from its input");
    const std::vector<Tensor> front{six[0].slice(0, 4), six[1].slice(0, 4)},
        back{six[0].slice(2, 4), six[1].slice(2, 4)};
    expect([&] { group.all_to_all(front, back, streams); }, "all_to_all of f32[4] in place, must have an output");
    expect([&] { group.broadcast(three, 2, streams); }, "rank 2 of a group of 2 devices, must be 0 to 1");
    expect([&] { group.reduce(three, Reduction::sum, -1, streams); }, "rank -1 of a group of 2 devices");
    expect([&] { group.send(three[0], 7, *streams[0]); }, "rank 7 of a group of 2 devices");
    expect([&] { group.receive(three[0], 0, *streams[1]); }, "with a tensor on ");
    expect([&] { group.set_timeout(0.0); }, "a timeout of 0 s, must be greater than 0");
  });
}

TEST_P(EveryEngineRefuses, AndTheRunGoesOn) {
  run(1, 2, [](Worker& worker) {
    Communicator& group = worker.communicator(all_devices(worker));
    const std::vector<Stream*> streams = streams_of(worker, kComputeStream);
    std::vector<Tensor> tensors;
    for (Device* device : worker.devices()) tensors.push_back(put(worker, *device, {1, 2}));
    EXPECT_THROW(group.broadcast(tensors, 5, streams), UsageError);
    group.all_reduce(tensors, Reduction::sum, streams);
    for (const Tensor& tensor : tensors) EXPECT_THAT(get(worker, tensor), testing::ElementsAre(2, 4));
  });
}

TEST_P(EveryEngineRefuses, StepsThatDoNotMatch) {
  run(1, 1, [](Worker& worker) {
    EXPECT_THAT([&] { worker.end_step(); }, ThrowsMessage<UsageError>("a step ends that has not begun"));
    EXPECT_THAT([&] { worker.begin_step(-1); }, ThrowsMessage<UsageError>("a negative step"));
    worker.begin_step(0);
    EXPECT_THAT([&] { worker.begin_step(1); }, ThrowsMessage<UsageError>("a step begins within a step"));
    worker.end_step();
    EXPECT_THAT([&] { worker.tasks().run_concurrently(-1, [](int) {}); },
                ThrowsMessage<UsageError>("a negative number of functions"));
  });
}

}  // namespace
}  // namespace tandem
