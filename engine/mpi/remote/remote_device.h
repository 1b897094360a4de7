// Devices of other processes as a program uses them. What is issued to a device is sent to its process
// (device_service.h) and executed there in order.
//
// Threads: as for Device. Errors of the work surface at synchronize(), as they do in the device's process.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/cpu/cpu_event.h"
#include "engine/mpi/messages/job_error.h"
#include "engine/mpi/remote/remote_access.h"

namespace tandem::mpi {

// Memory of another process.
class RemoteBuffer final : public Buffer {
 public:
  // With `access`, the memory is released together with the buffer, unless the access is gone by then.
  RemoteBuffer(Device& device, std::uint64_t id, std::uint64_t address, std::size_t size_bytes,
               std::weak_ptr<RemoteAccess> access = {}, int process = 0)
      : device_(device),
        id_(id),
        address_(address),
        size_bytes_(size_bytes),
        access_(std::move(access)),
        process_(process) {}
  ~RemoteBuffer() override;
  RemoteBuffer(const RemoteBuffer&) = delete;
  RemoteBuffer& operator=(const RemoteBuffer&) = delete;

  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  // In that process.  NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* data() const override { return reinterpret_cast<void*>(address_); }
  bool is_host_accessible() const override { return false; }
  std::uint64_t id() const { return id_; }  // see TensorRef

 private:
  Device& device_;
  const std::uint64_t id_, address_;
  const std::size_t size_bytes_;
  const std::weak_ptr<RemoteAccess> access_;
  const int process_;
};

// Memory of this process that another process uses and keeps alive.
class BorrowedBuffer final : public Buffer {
 public:
  BorrowedBuffer(Device& device, std::uint64_t address, std::size_t size_bytes)
      : device_(device), address_(address), size_bytes_(size_bytes) {}
  Device& device() const override { return device_; }
  std::size_t size_bytes() const override { return size_bytes_; }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as another process has named it
  void* data() const override { return reinterpret_cast<void*>(address_); }
  bool is_host_accessible() const override { return true; }

 private:
  Device& device_;
  const std::uint64_t address_;
  const std::size_t size_bytes_;
};

// A point in a stream of another process.
class RemoteEvent final : public cpu::CpuEvent {
 public:
  RemoteEvent(RemoteAccess& access, int process, std::string text)
      : CpuEvent(access.control()), access_(access), process_(process), text_(std::move(text)) {}
  int process() const { return process_; }
  std::uint64_t number() const { return number_; }
  void set_number(std::uint64_t number) { number_ = number; }
  void complete_with(const std::optional<JobError>& error);
  std::exception_ptr loss() const override { return error_; }

 private:
  std::string text() const override { return text_; }
  void throw_if_failed() const override;

  RemoteAccess& access_;
  const int process_;
  const std::string text_;
  std::uint64_t number_ = 0;  // written before others see the event
  std::exception_ptr error_;  // written before it is complete
};

class RemoteStream final : public Stream {
 public:
  RemoteStream(RemoteAccess& access, Device& device, int process, int index)
      : access_(access), device_(device), process_(process), index_(index) {}
  Device& device() const override { return device_; }
  int index() const override { return index_; }
  void launch(Op op) override;
  void copy(const Tensor& to, const Tensor& from, Category category) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override { record().synchronize(); }

 private:
  void put_place(ByteWriter& bytes) const;
  std::string text() const;

  RemoteAccess& access_;
  Device& device_;
  const int process_, index_;
};

class RemoteDevice final : public threads::RemoteDevice {
 public:
  RemoteDevice(std::shared_ptr<RemoteAccess> access, DeviceId id, int index, int worker, int process)
      : threads::RemoteDevice(std::move(id), index, worker), access_(std::move(access)), process_(process) {}

  Stream& stream(int index) override;
  Tensor allocate(DType dtype, Shape shape) override;
  std::int64_t memory_in_use_bytes() const override { return memory_use().in_use_bytes; }
  std::int64_t memory_peak_bytes() const override { return memory_use().peak_bytes; }
  void synchronize() override;

 private:
  struct MemoryUse {
    std::int64_t in_use_bytes = 0, peak_bytes = 0;
  };
  MemoryUse memory_use() const;
  std::string ask(RemoteKind kind, const RemoteAccess::Add& add = {}) const;

  const std::shared_ptr<RemoteAccess> access_;
  const int process_;
  std::mutex mutex_;  // guards streams_
  std::map<int, std::unique_ptr<RemoteStream>> streams_;
};

}  // namespace tandem::mpi
