// A process's way to the devices and the memory of the other processes of a run, and theirs to its own: what remote
// devices, transfers and shared tensors have in common. See remote_protocol.h.
//
// Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/cpu/cpu_device.h"
#include "engine/mpi/messages/messenger.h"
#include "engine/mpi/remote/remote_protocol.h"
#include "engine/threads/remote_device.h"

namespace tandem::mpi {

class DeviceService;
class Mailboxes;
class RemoteEvent;
class SharedTensors;
class Transfers;

class RemoteAccess final : public threads::RemoteMemory,
                           public MessageHandler,
                           public std::enable_shared_from_this<RemoteAccess> {
 public:
  using Add = std::function<void(ByteWriter&)>;

  // `keepers`: processes whose loss ends the job. They keep what all must find. `survives_losses`: the job goes on
  // without the others.
  RemoteAccess(Messenger& messenger, Transport& transport, std::vector<int> keepers, bool survives_losses);
  ~RemoteAccess() override;

  // By their indices, in order.
  void add_device(cpu::CpuDevice& device);
  void add_remote_device(Device& device, int process);
  // Calls `on_loss` for each process that is lost, on the thread of the messenger.
  using OnLoss = std::function<void(int process)>;
  void begin(threads::RunControl& control, OnLoss on_loss);
  void end();  // of the run in all processes

  // Whether devices of other processes can be used at all: some were added.
  bool reaches_devices() const { return !devices_.empty(); }
  int rank() const { return rank_; }
  int processes() const { return processes_; }
  const std::vector<int>& keepers() const { return keepers_; }
  bool survives_losses() const { return survives_losses_; }
  bool is_lost(int process) const { return is_lost_[static_cast<std::size_t>(process)].load(); }
  void throw_if_lost(int process) const;          // UnavailableError
  std::exception_ptr loss_of(int process) const;  // null: it is there
  // Waits, on the thread of a stream, until this process has been told of a loss that it has noticed.
  std::exception_ptr await_loss(int process);
  threads::RunControl& control() { return *control_; }
  Device& device(int index) const { return *devices_.at(static_cast<std::size_t>(index)); }
  cpu::CpuDevice& own_device(int index) const;

  // Sends a message to any process. One to this process is handled before the call returns, one to a lost process is
  // dropped.
  void say(int to, RemoteKind kind, const Add& add = {});
  // Sends a request, its number first, and waits for the answer, on a task's thread. `what` completes "worker 0 waits
  // for". Throws the error of the answer, and RunStopped.
  std::string ask(int to, RemoteKind kind, const Add& add, std::string what);
  void answer(const Reply& reply, const Add& add = {});
  void refuse(const Reply& reply, const std::exception_ptr& error);
  // Wait for what a message brings: as a task, which a stopped run ends, and on the thread of a stream.
  void wait_as_task(const threads::Wait& wait) { messenger_.wait_as_task(wait, *control_); }
  void wait_on_stream(const threads::Wait& wait) { messenger_.wait_on_stream(wait); }
  // Ends the run of all processes.
  void fail(const std::exception_ptr& error) { messenger_.fail(error); }
  void throw_if_failed_at(int rank) { messenger_.throw_if_failed_at(rank); }
  std::uint64_t next_number() { return ++numbers_; }

  // Memory of this process that others name. It is kept until they release it or the run ends.
  std::uint64_t export_memory(const Tensor& tensor);
  void release(std::uint64_t id);
  void keep(std::uint64_t id);  // to the end of the run
  TensorRef ref_of(const Tensor& tensor) const;
  Tensor tensor_of(const TensorRef& ref);
  // The same for memory that another process has exported for this one, which releases it with the tensor.
  Tensor received(const TensorRef& ref);
  int process_of(const Tensor& tensor) const;

  // Another process will complete the event of this number, which may be null; until then the tensors are held.
  void expect(int process, std::uint64_t number, std::shared_ptr<RemoteEvent> event, std::vector<Tensor> held);

  // Waits until what tasks here have issued to other processes has reached them.
  void flush();
  bool is_busy() const;  // values are on their way
  std::exception_ptr copy(const Tensor& to, const Tensor& from) override;
  SharedTensors& shared_tensors() { return *shared_tensors_; }
  Mailboxes& mailboxes() { return *mailboxes_; }
  DeviceService& device_service() { return *device_service_; }
  void wake() { messenger_.wake(); }  // those that wait for what messages bring

  void handle(int from, ByteReader& bytes) override;
  bool progress() override;
  // Drops what a lost process has begun here: its updates that are not whole, its locks, values that come from it or go
  // to it, and streams that wait for it. Whoever here waits for an answer of it gets the error.
  void lose(int process, const std::exception_ptr& error) override;

 private:
  struct Request {
    int to = 0;  // process
    std::atomic<bool> is_answered{false};
    std::string answer;  // written before
  };
  class Answered;
  struct Expected {
    int process = 0;
    std::shared_ptr<RemoteEvent> event;  // may be null
    std::vector<Tensor> held;
  };

  struct Exported {
    Tensor tensor;
    bool is_kept = false;
  };

  void take_answer(ByteReader& bytes);
  void take_completed(ByteReader& bytes);
  bool waits_for_loss(const std::optional<JobError>& error, std::function<void()> then);

  Messenger& messenger_;
  const int rank_, processes_;
  const std::vector<int> keepers_;
  const bool survives_losses_;
  OnLoss on_loss_;
  threads::RunControl* control_ = nullptr;
  std::vector<Device*> devices_;        // by index
  std::vector<int> owners_;             // the process of each
  std::atomic<bool> has_ended_{false};  // nothing is said any more
  std::atomic<std::uint64_t> numbers_{0};
  std::vector<std::atomic<bool>> is_used_;  // processes that something was issued to
  std::vector<std::atomic<bool>> is_lost_;  // processes

  mutable std::mutex mutex_;  // guards the rest down to awaiting_loss_
  std::map<std::uint64_t, std::shared_ptr<Request>> requests_;
  std::map<std::uint64_t, Expected> expected_;
  std::map<std::uint64_t, Exported> exported_;
  std::map<int, std::exception_ptr> errors_;                         // of lost processes
  std::map<int, std::vector<std::function<void()>>> awaiting_loss_;  // by process

  std::unique_ptr<DeviceService> device_service_;
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<SharedTensors> shared_tensors_;
  std::unique_ptr<Mailboxes> mailboxes_;
};

void put_ref(ByteWriter& bytes, const TensorRef& ref);
TensorRef get_ref(ByteReader& bytes);

}  // namespace tandem::mpi
