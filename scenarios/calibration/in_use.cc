// Rounds of packing, exchanges, unpacking and updates like those of training, which use more and more memory.
#include "scenarios/calibration/in_use.h"

#include "scenarios/calibration/stages.h"
#include "strategies/input/dataset.h"

namespace tandem::calibration {
namespace {

constexpr int kWarmUpRounds = 2;  // that bring into the caches what fits

// Some of the variables of a device, with what a step needs for them.
struct Block {
  Tensor variable, momentum, gradient, packed;
  Tensor input, output;  // small, and the same for all blocks of a device
};

std::vector<Block> blocks_of(Device& device, std::int64_t count) {
  std::vector<Block> blocks;
  const auto make = [&](const Shape& shape) {
    Tensor tensor = device.allocate(DType::f32, shape);
    launch_unmeasured(device.compute_stream(), op::fill(tensor, 0));
    return tensor;
  };
  const Tensor input = make({kInUseExamples, kInUseRows}), output = make({kInUseExamples, kInUseColumns});
  for (std::int64_t i = 0; i < count; ++i) {
    const Shape shape{kInUseRows, kInUseColumns};
    blocks.push_back({.variable = make(shape),
                      .momentum = make(shape),
                      .gradient = make(shape),
                      .packed = make(shape),
                      .input = input,
                      .output = output});
  }
  return blocks;
}

// The streams are those of strategies: gradients are written by one and exchanged by another, if there is anybody to
// exchange them with.
class Rounds {
 public:
  Rounds(Worker& worker, std::int64_t in_use_bytes) : worker_(worker), in_use_bytes_(in_use_bytes) {
    const auto devices = static_cast<std::int64_t>(worker.devices().size());
    for (Device* device : worker.devices()) {
      ids_.push_back(device->id());
      streams_.push_back(&device->stream(devices > 1 ? kCommunicationStream : kComputeStream));
      blocks_.push_back(blocks_of(*device, std::max<std::int64_t>(1, in_use_bytes / devices / kInUseBlockBytes)));
    }
    synchronize_all(worker);
  }

  void run(bool is_measured) {
    const auto label = [&](std::string_view work) {
      return is_measured ? in_use_label(work, in_use_bytes_) : std::string(kBlockerLabel);
    };
    compute(label("forward"), [](const Block& block) { return op::gemm(block.output, block.input, block.variable); });
    compute(label("backward"),
            [](const Block& block) { return op::gemm(block.gradient, block.input, block.output, true); });
    for (std::size_t d = 0; d < streams_.size(); ++d) streams_[d]->wait(compute_stream(d).record());
    launch(label("packing"), streams_,
           [](const Block& block) { return op::copy_many({block.packed}, {block.gradient}); });
    exchange();
    launch(label("unpacking"), streams_,
           [](const Block& block) { return op::copy_many({block.gradient}, {block.packed}); });
    for (std::size_t d = 0; d < streams_.size(); ++d) compute_stream(d).wait(streams_[d]->record());
    compute(label("updating"), [](const Block& block) {
      Op op = op::scale_add(block.variable, block.momentum, 0.5, 0.5);
      op.category = Category::update;
      return op;
    });
    synchronize_all(worker_);
  }

 private:
  Stream& compute_stream(std::size_t device) const { return worker_.devices()[device]->compute_stream(); }

  void compute(const std::string& label, Op (*op_of)(const Block&)) {
    std::vector<Stream*> streams;
    for (std::size_t d = 0; d < streams_.size(); ++d) streams.push_back(&compute_stream(d));
    launch(label, streams, op_of);
  }

  void launch(const std::string& label, const std::vector<Stream*>& streams, Op (*op_of)(const Block&)) {
    for (std::size_t d = 0; d < streams.size(); ++d) {
      for (const Block& block : blocks_[d]) {
        Op op = op_of(block);
        op.name = label;
        streams[d]->launch(std::move(op));
      }
    }
  }

  void exchange() {
    if (ids_.size() < 2) return;
    Communicator& group = worker_.communicator(ids_);
    for (std::size_t i = 0; i < blocks_.front().size(); ++i) {
      std::vector<Tensor> packed;
      for (const std::vector<Block>& blocks : blocks_) packed.push_back(blocks[i].packed);
      group.all_reduce(packed, Reduction::sum, streams_);
    }
  }

  Worker& worker_;
  const std::int64_t in_use_bytes_;
  std::vector<DeviceId> ids_;
  std::vector<Stream*> streams_;            // of exchanges
  std::vector<std::vector<Block>> blocks_;  // by device
};

}  // namespace

bool is_in_use_measured(std::int64_t in_use_bytes, std::size_t devices) {
  return in_use_bytes >= static_cast<std::int64_t>(devices) * kInUseBlockBytes;
}

// The host takes a batch after each round, when its rows are no longer in the nearest caches.
void measure_input(Worker& worker, const Plan& plan, Findings& findings) {
  constexpr std::int64_t kRows = 2048, kColumns = 64, kBatch = 256;
  DatasetIterator batches =
      Dataset::from_tensor_slices({HostArray{.row_shape = {kColumns}, .values = std::vector<float>(kRows * kColumns)},
                                   HostArray{.row_shape = {}, .values = std::vector<std::int32_t>(kRows)}})
          .shuffle(1)
          .repeat()
          .batch(kBatch)
          .iterator();
  Rounds rounds(worker, kUsualInUseBytes);
  for (int i = 0; i < 3 * plan.repetitions; ++i) {
    plan.begin_round();
    rounds.run(false);
    const Nanoseconds begin = worker.now();
    batches.next();  // calls Worker::took_input
    findings.input_element_s.push_back(seconds_between(begin, worker.now()) / kBatch);
  }
}

void measure_in_use(Worker& worker, const Plan& plan) {
  for (const std::int64_t bytes : plan.in_use_bytes) {
    if (!is_in_use_measured(bytes, worker.devices().size())) continue;
    plan.begin_round();
    Rounds rounds(worker, bytes);
    for (int round = 0; round < kWarmUpRounds; ++round) rounds.run(false);
    for (int round = 0; round < plan.repetitions; ++round) rounds.run(true);
  }
}

}  // namespace tandem::calibration
