#include "scenarios/collectives/collective_program.h"

#include <algorithm>

#include "engine/engine.h"

namespace tandem::collectives {
namespace {

constexpr int kSecondStream = kInputStream;  // a rank receives on it while it sends

// So many calls are issued before the program waits for them, so that streams do not keep all calls of a long run.
constexpr int kCallsUnderWay = 10'000;
constexpr int kCallsOfProgress = 100;

// One size on one worker: its buffers, and how a call is issued.
class SizedCalls {
 public:
  SizedCalls(Worker& worker, Communicator& group, const CollectiveSweep& sweep, const Size& size)
      : worker_(worker), group_(group), sweep_(sweep), size_(size), in_place_(works_in_place(sweep.kind)) {
    for (Device* device : worker.devices()) {
      const std::int64_t in = size.part_count * input_parts(sweep.kind, group.size());
      const std::int64_t out = size.part_count * output_parts(sweep.kind, group.size());
      outputs_.push_back(device->allocate(sweep.dtype, Shape{out}));
      inputs_.push_back(in_place_ ? outputs_.back() : device->allocate(sweep.dtype, Shape{in}));
      streams_.push_back(&device->stream(kCommunicationStream));
    }
  }

  void issue() {
    switch (sweep_.kind) {
      case CollectiveKind::all_reduce:
        return group_.all_reduce(outputs_, sweep_.reduction, streams_);
      case CollectiveKind::reduce:
        return group_.reduce(outputs_, sweep_.reduction, sweep_.root, streams_);
      case CollectiveKind::broadcast:
        return group_.broadcast(outputs_, sweep_.root, streams_);
      case CollectiveKind::all_gather:
        return group_.all_gather(outputs_, inputs_, streams_);
      case CollectiveKind::reduce_scatter:
        return group_.reduce_scatter(outputs_, inputs_, sweep_.reduction, streams_);
      case CollectiveKind::all_to_all:
        return group_.all_to_all(outputs_, inputs_, streams_);
      case CollectiveKind::send_receive:
        return send_to_next();
    }
    TANDEM_UNREACHABLE("a CollectiveKind outside its enumerators");
  }

  void synchronize() {
    for (Device* device : worker_.devices()) device->synchronize();
  }

  // Executes one call on known values and returns how many elements it got wrong.
  std::int64_t check() {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const int rank = group_.local_ranks()[i];
      streams_[i]->launch(op::fill(outputs_[i], in_place_ ? rank + 1 : 0));
      if (!in_place_) streams_[i]->launch(op::fill(inputs_[i], rank + 1));
    }
    synchronize();  // the values of a rank that sends are there before another rank receives
    issue();
    synchronize();
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < outputs_.size(); ++i) wrong += wrong_elements(i);
    return wrong;
  }

 private:
  // Each rank sends to the next one while it receives from the one before.
  void send_to_next() {
    const int n = group_.size();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const int rank = group_.local_ranks()[i];
      group_.send(inputs_[i], (rank + 1) % n, *streams_[i]);
      group_.receive(outputs_[i], (rank + n - 1) % n, worker_.devices()[i]->stream(kSecondStream));
    }
  }

  // Returns the value of a part of a rank's output, when rank r has put in r + 1.
  double expected(int rank, std::int64_t part) const {
    const int n = group_.size();
    const double reduced = sweep_.reduction == Reduction::sum       ? n * (n + 1) / 2.0
                           : sweep_.reduction == Reduction::maximum ? n
                                                                    : 1;
    switch (sweep_.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce_scatter:
        return reduced;
      case CollectiveKind::reduce:
        return rank == sweep_.root ? reduced : rank + 1;
      case CollectiveKind::broadcast:
        return sweep_.root + 1;
      case CollectiveKind::all_gather:
      case CollectiveKind::all_to_all:
        return static_cast<double>(part + 1);
      case CollectiveKind::send_receive:
        return (rank + n - 1) % n + 1;
    }
    TANDEM_UNREACHABLE("a CollectiveKind outside its enumerators");
  }

  // Compares on the host, in f64, which holds every expected value exactly.
  std::int64_t wrong_elements(std::size_t i) {
    Device& device = *worker_.devices()[i];
    const int rank = group_.local_ranks()[i];
    if (sweep_.kind == CollectiveKind::reduce && rank != sweep_.root) return 0;  // its buffer is unspecified
    std::int64_t wrong = 0;
    const std::int64_t parts = output_parts(sweep_.kind, group_.size());
    for (std::int64_t part = 0; part < parts; ++part) {
      const Tensor values = device.allocate(DType::f64, Shape{size_.part_count});
      const Tensor host = worker_.cpu().allocate(DType::f64, Shape{size_.part_count});
      Stream& stream = device.compute_stream();
      stream.launch(op::cast(values, outputs_[i].flat_slice(part * size_.part_count, size_.part_count)));
      stream.copy(host, values);
      stream.synchronize();
      const double right = modulo(expected(rank, part));
      for (const double value : host.values<double>()) wrong += value == right ? 0 : 1;
    }
    return wrong;
  }

  double modulo(double value) const {
    return sweep_.dtype == DType::u8 ? static_cast<double>(static_cast<std::int64_t>(value) % 256) : value;
  }

  Worker& worker_;
  Communicator& group_;
  const CollectiveSweep& sweep_;
  const Size& size_;
  const bool in_place_;
  std::vector<Tensor> outputs_, inputs_;
  std::vector<Stream*> streams_;
};

}  // namespace

bool works_in_place(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::broadcast;
}

std::vector<Size> sizes_of(const CollectiveSweep& sweep, int ranks) {
  const auto element = static_cast<std::int64_t>(size_of(sweep.dtype));
  const std::int64_t parts = std::max(input_parts(sweep.kind, ranks), output_parts(sweep.kind, ranks));
  std::vector<Size> sizes;
  for (const std::int64_t bytes : sweep.sizes) {
    const std::int64_t count = bytes / element / parts;
    const Size size{count * element * parts, count, count};
    const auto is_same = [&](const Size& other) { return other.bytes == size.bytes; };
    if (count > 0 && std::none_of(sizes.begin(), sizes.end(), is_same)) sizes.push_back(size);
  }
  return sizes;
}

void run_sweep(Worker& worker, std::span<const DeviceId> group, const CollectiveSweep& sweep,
               std::span<const Size> sizes, std::span<std::atomic<std::int64_t>> wrong,
               const std::function<void(std::int64_t done)>& progress) {
  Communicator& communicator = worker.communicator(group);
  std::int64_t done = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    SizedCalls calls(worker, communicator, sweep, sizes[i]);
    const auto issue = [&](int count, const auto& after_each) {
      for (int call = 1; call <= count; ++call) {
        calls.issue();
        if (call % kCallsUnderWay == 0) calls.synchronize();
        after_each(call);
      }
    };
    const auto tell = [&] {
      if (worker.index() == 0 && progress) progress(done);
    };
    if (sweep.checks_values && worker.capabilities().carries_values) wrong[i] += calls.check();
    issue(sweep.warmup, [&](int call) {
      if (call % kCallsOfProgress == 0) tell();
    });
    calls.synchronize();
    worker.begin_step(static_cast<int>(i));
    issue(sweep.iterations, [&](int call) {
      ++done;
      if (call % kCallsOfProgress == 0) tell();
    });
    worker.end_step();
    tell();
  }
}

}  // namespace tandem::collectives
