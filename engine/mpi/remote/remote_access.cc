#include "engine/mpi/remote/remote_access.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "engine/mpi/remote/device_service.h"
#include "engine/mpi/remote/mailboxes.h"
#include "engine/mpi/remote/remote_device.h"
#include "engine/mpi/remote/shared_tensors.h"
#include "engine/mpi/remote/transfers.h"
#include "engine/task.h"

namespace tandem::mpi {

class RemoteAccess::Answered final : public threads::Wait {
 public:
  Answered(const Request& request, std::string what) : request_(request), what_(std::move(what)) {}
  bool is_over() const override { return request_.is_answered.load(); }
  std::string text() const override { return what_; }

 private:
  const Request& request_;
  const std::string what_;
};

void put_ref(ByteWriter& bytes, const TensorRef& ref) {
  bytes.put(ref);
}

TensorRef get_ref(ByteReader& bytes) {
  return bytes.get<TensorRef>();
}

RemoteAccess::RemoteAccess(Messenger& messenger, Transport& transport, std::vector<int> keepers, bool survives_losses)
    : messenger_(messenger),
      rank_(transport.rank()),
      processes_(transport.size()),
      keepers_(std::move(keepers)),
      survives_losses_(survives_losses),
      is_used_(static_cast<std::size_t>(processes_)),
      is_lost_(static_cast<std::size_t>(processes_)),
      device_service_(std::make_unique<DeviceService>(*this)),
      transfers_(std::make_unique<Transfers>(*this, transport)),
      shared_tensors_(std::make_unique<SharedTensors>(*this)),
      mailboxes_(std::make_unique<Mailboxes>(*this)) {}

RemoteAccess::~RemoteAccess() = default;

void RemoteAccess::add_device(cpu::CpuDevice& device) {
  devices_.push_back(&device);
  owners_.push_back(rank_);
}

void RemoteAccess::add_remote_device(Device& device, int process) {
  devices_.push_back(&device);
  owners_.push_back(process);
}

void RemoteAccess::begin(threads::RunControl& control, OnLoss on_loss) {
  control_ = &control;
  on_loss_ = std::move(on_loss);
  messenger_.begin(control, this);
}

// From here on nobody refers to anything of this run, and nobody waits.
void RemoteAccess::end() {
  has_ended_.store(true);
  std::map<std::uint64_t, Expected> expected;
  std::map<std::uint64_t, Exported> exported;
  {
    const std::lock_guard lock(mutex_);
    expected.swap(expected_);
    exported.swap(exported_);
  }
  device_service_->end();
  shared_tensors_->end();
  mailboxes_->end();
}

cpu::CpuDevice& RemoteAccess::own_device(int index) const {
  TANDEM_CHECK(owners_.at(static_cast<std::size_t>(index)) == rank_, "a device of another process");
  return static_cast<cpu::CpuDevice&>(device(index));
}

void RemoteAccess::say(int to, RemoteKind kind, const Add& add) {
  if (has_ended_.load() || is_lost(to)) return;
  const auto write = [&](ByteWriter& bytes) {
    bytes.put(kind);
    if (add) add(bytes);
  };
  if (to != rank_) {
    is_used_[static_cast<std::size_t>(to)].store(true, std::memory_order_relaxed);
    return messenger_.say_among(to, MessageKind::remote, write);
  }
  ByteWriter bytes;
  write(bytes);
  const std::string message = bytes.take();
  ByteReader reader(message);
  handle(rank_, reader);
  messenger_.wake();
}

std::string RemoteAccess::ask(int to, RemoteKind kind, const Add& add, std::string what) {
  const auto request = std::make_shared<Request>();
  request->to = to;
  const std::uint64_t number = next_number();
  {
    const std::lock_guard lock(mutex_);
    if (const auto lost = errors_.find(to); lost != errors_.end()) std::rethrow_exception(lost->second);
    requests_.emplace(number, request);
  }
  say(to, kind, [&](ByteWriter& bytes) {
    bytes.put(number);
    add(bytes);
  });
  try {
    messenger_.wait_as_task(Answered(*request, std::move(what)), *control_);
  } catch (const RunStopped&) {
    throw_if_failed_at(to);
    throw;
  }
  const std::lock_guard lock(mutex_);
  requests_.erase(number);
  if (!request->is_answered.load()) throw RunStopped{};
  ByteReader bytes(request->answer);
  if (const std::optional<JobError> error = get_error(bytes)) error->rethrow();
  return std::string(bytes.rest());
}

void RemoteAccess::answer(const Reply& reply, const Add& add) {
  say(reply.to, RemoteKind::answer, [&](ByteWriter& bytes) {
    bytes.put(reply.request);
    put_error(bytes, {});
    if (add) add(bytes);
  });
}

void RemoteAccess::refuse(const Reply& reply, const std::exception_ptr& error) {
  say(reply.to, RemoteKind::answer, [&](ByteWriter& bytes) {
    bytes.put(reply.request);
    put_error(bytes, job_error_of(error).value_or(JobError{.text = "the run was stopped"}));
  });
}

// Another process may tell what has failed with a lost process before this one knows of the loss; whoever gets the
// error finds the worker lost. Returns whether `then` is called later.
bool RemoteAccess::waits_for_loss(const std::optional<JobError>& error, std::function<void()> then) {
  if (!error || error->kind != JobError::Kind::lost) return false;
  const std::lock_guard lock(mutex_);
  if (errors_.contains(error->rank)) return false;
  awaiting_loss_[error->rank].push_back(std::move(then));
  return true;
}

void RemoteAccess::take_answer(ByteReader& bytes) {
  const auto number = bytes.get<std::uint64_t>();
  const std::string answer(bytes.rest());
  const auto take = [this, number, answer] {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(number);
    if (found == requests_.end()) return;  // the task was stopped
    found->second->answer = answer;
    found->second->is_answered.store(true);
  };
  if (!waits_for_loss(get_error(bytes), take)) take();
}

void RemoteAccess::expect(int process, std::uint64_t number, std::shared_ptr<RemoteEvent> event,
                          std::vector<Tensor> held) {
  for (Tensor& tensor : held) tensor.lend();
  const std::lock_guard lock(mutex_);
  if (const auto lost = errors_.find(process); lost != errors_.end()) std::rethrow_exception(lost->second);
  expected_.emplace(number, Expected{process, std::move(event), std::move(held)});
}

void RemoteAccess::take_completed(ByteReader& bytes) {
  const auto number = bytes.get<std::uint64_t>();
  const std::optional<JobError> error = get_error(bytes);
  Expected expected;
  {
    const std::lock_guard lock(mutex_);
    const auto found = expected_.find(number);
    TANDEM_CHECK(found != expected_.end(), "an event that nobody has asked for");
    expected = std::move(found->second);
    expected_.erase(found);
  }
  if (!expected.event) return;
  const auto complete = [event = expected.event, error] { event->complete_with(error); };
  if (!waits_for_loss(error, complete)) complete();
}

std::uint64_t RemoteAccess::export_memory(const Tensor& tensor) {
  const std::uint64_t id = next_number();
  const std::lock_guard lock(mutex_);
  exported_.emplace(id, Exported{.tensor = tensor});
  return id;
}

void RemoteAccess::release(std::uint64_t id) {
  Tensor released;
  const std::lock_guard lock(mutex_);
  const auto found = exported_.find(id);
  if (found == exported_.end() || found->second.is_kept) return;
  released = std::move(found->second.tensor);
  exported_.erase(found);
}

void RemoteAccess::keep(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  exported_.at(id).is_kept = true;
}

int RemoteAccess::process_of(const Tensor& tensor) const {
  return owners_.at(static_cast<std::size_t>(tensor.device().index()));
}

TensorRef RemoteAccess::ref_of(const Tensor& tensor) const {
  TensorRef ref{.process = process_of(tensor),
                .device = tensor.device().index(),
                .address = reinterpret_cast<std::uint64_t>(tensor.data()),
                .offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(tensor.data()) -
                                                     static_cast<const std::byte*>(tensor.buffer().data())),
                .dtype = tensor.dtype(),
                .shape = tensor.shape()};
  if (const auto* remote = dynamic_cast<const RemoteBuffer*>(&tensor.buffer())) ref.id = remote->id();
  return ref;
}

// Memory that this process has exported lives as long as anybody uses it. Memory without a number is kept by the
// process that has sent the reference.
Tensor RemoteAccess::tensor_of(const TensorRef& ref) {
  if (ref.process == rank_ && ref.id != 0) {
    const std::lock_guard lock(mutex_);
    const Tensor& memory = exported_.at(ref.id).tensor;
    return {memory.buffer().shared_from_this(), ref.dtype, ref.shape, ref.offset};
  }
  Device& device = this->device(ref.device);
  if (ref.process == rank_) {
    return {std::make_shared<BorrowedBuffer>(device, ref.address, ref.size_bytes()), ref.dtype, ref.shape};
  }
  auto buffer = std::make_shared<RemoteBuffer>(device, ref.id, ref.address - ref.offset, ref.offset + ref.size_bytes());
  return {std::move(buffer), ref.dtype, ref.shape, ref.offset};
}

Tensor RemoteAccess::received(const TensorRef& ref) {
  auto buffer = std::make_shared<RemoteBuffer>(device(ref.device), ref.id, ref.address - ref.offset,
                                               ref.offset + ref.size_bytes(), weak_from_this(), ref.process);
  return {std::move(buffer), ref.dtype, ref.shape, ref.offset};
}

void RemoteAccess::flush() {
  for (int to = 0; to < processes_; ++to) {
    if (to == rank_ || !is_used_[static_cast<std::size_t>(to)].exchange(false)) continue;
    if (is_lost(to)) continue;
    try {
      ask(
          to, RemoteKind::fence, [](ByteWriter&) {}, fmt::format("an answer of rank {}", to));
    } catch (const UnavailableError&) {
      if (!is_lost(to)) throw;
    }
  }
}

bool RemoteAccess::is_busy() const {
  return transfers_->is_busy();
}

std::exception_ptr RemoteAccess::copy(const Tensor& to, const Tensor& from) {
  return transfers_->copy(to, from);
}

bool RemoteAccess::progress() {
  return transfers_->progress();
}

std::exception_ptr RemoteAccess::loss_of(int process) const {
  if (!is_lost(process)) return nullptr;
  const std::lock_guard lock(mutex_);
  return errors_.at(process);
}

std::exception_ptr RemoteAccess::await_loss(int process) {
  class Told final : public threads::Wait {
   public:
    explicit Told(const std::atomic<bool>& is_lost) : is_lost_(is_lost) {}
    bool is_over() const override { return is_lost_.load(); }
    std::string text() const override { return "the loss of a process"; }

   private:
    const std::atomic<bool>& is_lost_;
  };
  messenger_.wait_on_stream(Told(is_lost_[static_cast<std::size_t>(process)]));
  return loss_of(process);
}

void RemoteAccess::throw_if_lost(int process) const {
  if (const std::exception_ptr error = loss_of(process)) std::rethrow_exception(error);
}

void RemoteAccess::lose(int process, const std::exception_ptr& error) {
  // Whoever gets the error finds the worker lost.
  if (on_loss_) on_loss_(process);
  std::vector<Expected> expected;
  std::vector<std::function<void()>> then;
  {
    const std::lock_guard lock(mutex_);
    errors_.emplace(process, error);
    is_lost_[static_cast<std::size_t>(process)].store(true);
    ByteWriter answer;
    put_error(answer, job_error_of(error));
    const std::string text = answer.take();
    then = std::move(awaiting_loss_[process]);
    for (const auto& [number, request] : requests_) {
      if (request->to != process || request->is_answered.load()) continue;
      request->answer = text;
      request->is_answered.store(true);
    }
    for (auto one = expected_.begin(); one != expected_.end();) {
      const bool is_its_own = one->second.process == process;
      if (is_its_own) expected.push_back(std::move(one->second));
      one = is_its_own ? expected_.erase(one) : std::next(one);
    }
  }
  for (const auto& call : then) call();
  transfers_->lose(process);
  device_service_->lose(process);
  shared_tensors_->lose(process);
  for (const Expected& one : expected) {
    if (one.event) one.event->complete_with(job_error_of(error));
  }
}

void RemoteAccess::handle(int from, ByteReader& bytes) {
  const auto kind = bytes.get<RemoteKind>();
  switch (kind) {
    case RemoteKind::answer:
      return take_answer(bytes);
    case RemoteKind::completed:
      return take_completed(bytes);
    case RemoteKind::release:
      return release(bytes.get<std::uint64_t>());
    case RemoteKind::keep:
      return keep(bytes.get<std::uint64_t>());
    case RemoteKind::fence:
      return answer({from, bytes.get<std::uint64_t>()});
    case RemoteKind::get:
    case RemoteKind::put:
    case RemoteKind::put_done:
      return transfers_->handle(from, kind, bytes);
    case RemoteKind::find:
    case RemoteKind::made:
    case RemoteKind::not_made:
    case RemoteKind::lock:
    case RemoteKind::unlock:
      return shared_tensors_->handle(from, kind, bytes);
    case RemoteKind::mail:
      return mailboxes_->take_in(bytes);
    default:
      return device_service_->handle(from, kind, bytes);
  }
}

}  // namespace tandem::mpi
