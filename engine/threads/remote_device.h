// A device of another process of the run. In this process it is a member of groups and nothing more, unless a derived
// class reaches it.
#pragma once

#include <utility>

#include "engine/device.h"

namespace tandem::threads {

class RemoteDevice : public Device {
 public:
  RemoteDevice(DeviceId id, int index, int worker) : id_(std::move(id)), index_(index), worker_(worker) {}

  const DeviceId& id() const override { return id_; }
  int index() const override { return index_; }
  int worker() const override { return worker_; }
  Stream& stream(int /*index*/) override { refuse(); }
  Tensor allocate(DType /*dtype*/, Shape /*shape*/) override { refuse(); }
  std::int64_t memory_in_use_bytes() const override { return 0; }
  std::int64_t memory_peak_bytes() const override { return 0; }
  void synchronize() override {}

 private:
  [[noreturn]] void refuse() const { throw UsageError(id_.text() + " is a device of another process"); }

  const DeviceId id_;
  const int index_, worker_;
};

}  // namespace tandem::threads
