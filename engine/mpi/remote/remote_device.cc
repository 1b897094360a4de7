#include "engine/mpi/remote/remote_device.h"

#include <fmt/format.h>

#include "engine/kernel_operands.h"
#include "engine/mpi/remote/shared_tensors.h"
#include "engine/mpi/remote/wire_op.h"
#include "engine/threads/thread_worker.h"

namespace tandem::mpi {
namespace {

int step_of_caller() {
  const Worker* issuer = Task::current().worker();
  return issuer == nullptr ? kNoStep : static_cast<const threads::ThreadWorker*>(issuer)->step();
}

}  // namespace

// What cannot be released stays until the run ends.
RemoteBuffer::~RemoteBuffer() {
  try {
    const std::shared_ptr<RemoteAccess> access = access_.lock();
    if (!access) return;
    access->say(process_, RemoteKind::release, [this](ByteWriter& bytes) { bytes.put(id_); });
  } catch (...) {
  }
}

void RemoteEvent::complete_with(const std::optional<JobError>& error) {
  if (error) error_ = error->exception();
  complete();
}

void RemoteEvent::throw_if_failed() const {
  if (is_complete() && error_) std::rethrow_exception(error_);
  if (access_.control().is_stopped()) access_.throw_if_failed_at(process_);
}

std::string RemoteStream::text() const {
  return fmt::format("stream {} of {}", index_, device_.id().text());
}

void RemoteStream::put_place(ByteWriter& bytes) const {
  bytes.put(device_.index()).put(index_).put(step_of_caller()).put(access_.shared_tensors().locked_by_caller(process_));
}

void RemoteStream::launch(Op op) {
  if (is_function(op.kernel)) {
    throw UnavailableError(fmt::format(
        "'{}' is a function of this process, and {} is in another: only kernels run there", op.name, text()));
  }
  for_each_operand(op.kernel, [&](const Tensor& operand) {
    if (!operand || access_.process_of(operand) == process_) return;
    throw UsageError(fmt::format("op '{}' on {} has an operand on {}, in another process: copy it first", op.name,
                                 device_.id().text(), operand.device().id().text()));
  });
  access_.throw_if_lost(process_);
  access_.say(process_, RemoteKind::launch, [&](ByteWriter& bytes) {
    put_place(bytes);
    put_op(bytes, op, [&](const Tensor& operand) { put_ref(bytes, access_.ref_of(operand)); });
  });
}

// Tensors outside the device's process are held here until the copy is done.
void RemoteStream::copy(const Tensor& to, const Tensor& from, Category category) {
  check_copy(to, from, device());
  access_.throw_if_lost(process_);
  std::vector<Tensor> held;
  for (const Tensor& tensor : {to, from}) {
    if (access_.process_of(tensor) != process_) held.push_back(tensor);
  }
  const std::uint64_t holding = held.empty() ? 0 : access_.next_number();
  if (holding != 0) access_.expect(process_, holding, nullptr, std::move(held));
  access_.say(process_, RemoteKind::copy, [&](ByteWriter& bytes) {
    put_place(bytes);
    bytes.put(category).put(holding);
    put_ref(bytes, access_.ref_of(to));
    put_ref(bytes, access_.ref_of(from));
  });
}

Event RemoteStream::record() {
  auto event = std::make_shared<RemoteEvent>(access_, process_, text());
  event->set_number(access_.next_number());
  access_.expect(process_, event->number(), event, {});
  access_.say(process_, RemoteKind::record, [&](ByteWriter& bytes) {
    put_place(bytes);
    bytes.put(event->number());
  });
  return Event(std::move(event));
}

void RemoteStream::wait(const Event& event) {
  if (event.is_complete()) return;
  const auto state = std::dynamic_pointer_cast<cpu::CpuEvent>(event.state());
  TANDEM_REQUIRE(state != nullptr, "an event of another engine");
  const auto remote = std::dynamic_pointer_cast<RemoteEvent>(state);
  const bool is_there = remote && remote->process() == process_;
  const std::uint64_t number = is_there ? remote->number() : access_.next_number();
  access_.say(process_, is_there ? RemoteKind::wait_here : RemoteKind::wait_gate, [&](ByteWriter& bytes) {
    put_place(bytes);
    bytes.put(number);
  });
  if (is_there) return;
  state->when_complete([access = access_.weak_from_this(), process = process_, number] {
    const std::shared_ptr<RemoteAccess> open = access.lock();
    if (open) open->say(process, RemoteKind::open_gate, [&](ByteWriter& bytes) { bytes.put(number); });
  });
}

Stream& RemoteDevice::stream(int index) {
  TANDEM_REQUIRE(index >= 0, "a stream with a negative index");
  const std::lock_guard lock(mutex_);
  std::unique_ptr<RemoteStream>& stream = streams_[index];
  if (!stream) stream = std::make_unique<RemoteStream>(*access_, *this, process_, index);
  return *stream;
}

std::string RemoteDevice::ask(RemoteKind kind, const RemoteAccess::Add& add) const {
  const auto put_request = [&](ByteWriter& bytes) {
    bytes.put(index());
    if (add) add(bytes);
  };
  return access_->ask(process_, kind, put_request, fmt::format("an answer of {}", id().text()));
}

Tensor RemoteDevice::allocate(DType dtype, Shape shape) {
  const std::string answer = ask(RemoteKind::allocate, [&](ByteWriter& bytes) { bytes.put(dtype).put(shape); });
  ByteReader bytes(answer);
  const auto id = bytes.get<std::uint64_t>(), address = bytes.get<std::uint64_t>();
  const std::size_t size = static_cast<std::size_t>(shape.element_count()) * size_of(dtype);
  return {std::make_shared<RemoteBuffer>(*this, id, address, size, access_, process_), dtype, shape};
}

RemoteDevice::MemoryUse RemoteDevice::memory_use() const {
  const std::string answer = ask(RemoteKind::memory_use);
  return ByteReader(answer).get<MemoryUse>();
}

void RemoteDevice::synchronize() {
  ask(RemoteKind::synchronize);
}

}  // namespace tandem::mpi
