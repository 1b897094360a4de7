#include "engine/mpi/remote/device_service.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "engine/mpi/remote/wire_op.h"

namespace tandem::mpi {
namespace {

constexpr int kNobody = -2;  // no process

cpu::CpuEvent& state_of(const Event& event) {
  return static_cast<cpu::CpuEvent&>(*event.state());
}

std::exception_ptr failure_of(const cpu::CpuStream& stream) {
  try {
    stream.throw_if_failed();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

// An event on which a stream waits here, and which another process completes.
class DeviceService::Gate final : public cpu::CpuEvent {
 public:
  Gate(threads::RunControl& control, int from) : CpuEvent(control), from_(from) {}

 private:
  std::string text() const override { return "an event of rank " + std::to_string(from_); }
  void throw_if_failed() const override {}

  const int from_;
};

void DeviceService::handle(int from, RemoteKind kind, ByteReader& bytes) {
  switch (kind) {
    case RemoteKind::allocate:
      return allocate(from, bytes);
    case RemoteKind::memory_use:
      return memory_use(from, bytes);
    case RemoteKind::synchronize:
      return synchronize(from, bytes);
    case RemoteKind::open_gate:
      return open_gate(from, bytes.get<std::uint64_t>());
    default:
      return issue(from, kind, bytes);
  }
}

void DeviceService::end() {
  std::map<Name, Event> recorded;
  std::map<Name, std::shared_ptr<Gate>> gates;
  std::map<Name, std::vector<std::function<void()>>> held_back;
  const std::lock_guard lock(mutex_);
  recorded.swap(recorded_);
  gates.swap(gates_);
  held_back.swap(held_back_);
}

void DeviceService::lose(int process) {
  std::vector<std::shared_ptr<Gate>> gates;
  std::vector<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    for (auto gate = gates_.begin(); gate != gates_.end();) {
      const bool is_its_own = gate->first.first == process;
      if (is_its_own) gates.push_back(std::move(gate->second));
      gate = is_its_own ? gates_.erase(gate) : std::next(gate);
    }
    for (auto held = held_back_.begin(); held != held_back_.end();) {
      const bool is_its_own = held->first.first == process;
      if (is_its_own) std::move(held->second.begin(), held->second.end(), std::back_inserter(dropped));
      held = is_its_own ? held_back_.erase(held) : std::next(held);
    }
  }
  for (const auto& gate : gates) gate->complete();
}

void DeviceService::allocate(int from, ByteReader& bytes) {
  const Reply reply{from, bytes.get<std::uint64_t>()};
  cpu::CpuDevice& device = access_.own_device(bytes.get<int>());
  const auto dtype = bytes.get<DType>();
  const auto shape = bytes.get<Shape>();
  try {
    const Tensor tensor = device.allocate(dtype, shape);
    const std::uint64_t id = access_.export_memory(tensor);
    access_.answer(reply,
                   [&](ByteWriter& answer) { answer.put(id).put(reinterpret_cast<std::uint64_t>(tensor.data())); });
  } catch (const Error&) {
    access_.refuse(reply, std::current_exception());
  }
}

void DeviceService::memory_use(int from, ByteReader& bytes) {
  const Reply reply{from, bytes.get<std::uint64_t>()};
  const cpu::CpuDevice& device = access_.own_device(bytes.get<int>());
  access_.answer(reply,
                 [&](ByteWriter& answer) { answer.put(device.memory_in_use_bytes()).put(device.memory_peak_bytes()); });
}

void DeviceService::synchronize(int from, ByteReader& bytes) {
  const Reply reply{from, bytes.get<std::uint64_t>()};
  cpu::CpuDevice& device = access_.own_device(bytes.get<int>());
  const cpu::CpuStream& stream = device.stream(kComputeStream);
  apply_all(from);
  const threads::IssuedElsewhere issued(from, kNoStep);
  const std::vector<Event> events = device.record_all();
  const auto left = std::make_shared<std::atomic<std::size_t>>(events.size());
  for (const Event& event : events) {
    state_of(event).when_complete([this, reply, left, events, &stream] {
      if (left->fetch_sub(1) > 1) return;
      std::exception_ptr failure = failure_of(stream);
      for (const Event& one : events) {
        if (!failure) failure = state_of(one).loss();
      }
      failure ? access_.refuse(reply, failure) : access_.answer(reply);
    });
  }
}

// An operation that cannot be issued would be an error of the call in the issuer's process; here it is one of the run.
void DeviceService::issue(int from, RemoteKind kind, ByteReader& bytes) {
  cpu::CpuDevice& device = access_.own_device(bytes.get<int>());
  cpu::CpuStream& stream = device.stream(bytes.get<int>());
  const int step = bytes.get<int>();
  const Name lock(from, bytes.get<std::uint64_t>());
  try {
    switch (kind) {
      case RemoteKind::launch:
        return launch(stream, {lock, step}, bytes);
      case RemoteKind::copy:
        return copy(stream, {lock, step}, bytes);
      default:
        break;
    }
    if (kind == RemoteKind::record) apply(from, lock.second);
    const threads::IssuedElsewhere issued(from, step);
    switch (kind) {
      case RemoteKind::record:
        return record(from, stream, bytes.get<std::uint64_t>());
      case RemoteKind::wait_here:
        return wait_here(from, stream, bytes.get<std::uint64_t>());
      case RemoteKind::wait_gate:
        return wait_gate(from, stream, bytes.get<std::uint64_t>());
      default:
        TANDEM_UNREACHABLE("a message to a device that is none");
    }
  } catch (const Error&) {
    access_.fail(std::current_exception());
  }
}

void DeviceService::issue_or_hold(const Place& place, const std::function<void()>& work) {
  const auto issue = [from = place.lock.first, step = place.step, work] {
    const threads::IssuedElsewhere issued(from, step);
    work();
  };
  if (place.lock.second == 0) return issue();
  const std::lock_guard guard(mutex_);
  held_back_[place.lock].emplace_back(issue);
}

void DeviceService::apply(int from, std::uint64_t lock) {
  std::vector<std::function<void()>> works;
  {
    const std::lock_guard guard(mutex_);
    const auto found = held_back_.find({from, lock});
    if (found == held_back_.end()) return;
    works = std::move(found->second);
    held_back_.erase(found);
  }
  try {
    for (const auto& work : works) work();
  } catch (const Error&) {
    access_.fail(std::current_exception());
  }
}

void DeviceService::apply_all(int from) {
  std::vector<std::uint64_t> locks;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& [name, works] : held_back_) {
      if (name.first == from) locks.push_back(name.second);
    }
  }
  for (const std::uint64_t lock : locks) apply(from, lock);
}

void DeviceService::launch(cpu::CpuStream& stream, const Place& place, ByteReader& bytes) {
  Op op = get_op(bytes, [&] { return access_.tensor_of(get_ref(bytes)); });
  if (place.lock.second != 0) return issue_or_hold(place, [&stream, op = std::move(op)] { stream.launch(op); });
  const threads::IssuedElsewhere issued(place.lock.first, place.step);
  stream.launch(std::move(op));
}

void DeviceService::copy(cpu::CpuStream& stream, const Place& place, ByteReader& bytes) {
  const auto category = bytes.get<Category>();
  const auto holding = bytes.get<std::uint64_t>();
  const Tensor to = access_.tensor_of(get_ref(bytes)), from = access_.tensor_of(get_ref(bytes));
  issue_or_hold(place, [this, &stream, to, from, category, holding, process = place.lock.first] {
    stream.copy(to, from, category);
    if (holding == 0) return;
    const threads::IssuedElsewhere by_nobody(kNobody, kNoStep);  // a loss is for the issuer's own event
    record(process, stream, holding);
  });
}

void DeviceService::record(int from, cpu::CpuStream& stream, std::uint64_t number) {
  const Event event = stream.record();
  {
    const std::lock_guard lock(mutex_);
    recorded_.emplace(Name{from, number}, event);
  }
  state_of(event).when_complete([this, from, number, event, &stream] {
    const std::exception_ptr failure = failure_of(stream), loss = state_of(event).loss();
    access_.say(from, RemoteKind::completed, [&](ByteWriter& bytes) {
      bytes.put(number);
      put_error(bytes, job_error_of(failure ? failure : loss));
    });
    Event forgotten;
    const std::lock_guard lock(mutex_);
    const auto found = recorded_.find({from, number});
    if (found == recorded_.end()) return;
    forgotten = std::move(found->second);
    recorded_.erase(found);
  });
}

// An event that is no longer known is complete.
void DeviceService::wait_here(int from, cpu::CpuStream& stream, std::uint64_t number) {
  Event event;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = recorded_.find({from, number}); found != recorded_.end()) event = found->second;
  }
  stream.wait(event);
}

void DeviceService::wait_gate(int from, cpu::CpuStream& stream, std::uint64_t number) {
  auto gate = std::make_shared<Gate>(access_.control(), from);
  {
    const std::lock_guard lock(mutex_);
    gates_.emplace(Name{from, number}, gate);
  }
  stream.wait(Event(std::move(gate)));
}

void DeviceService::open_gate(int from, std::uint64_t number) {
  std::shared_ptr<Gate> gate;
  {
    const std::lock_guard lock(mutex_);
    const auto found = gates_.find({from, number});
    TANDEM_CHECK(found != gates_.end(), "a gate that there is not");
    gate = std::move(found->second);
    gates_.erase(found);
  }
  gate->complete();
}

}  // namespace tandem::mpi
