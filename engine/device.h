// Devices, streams and events, with the meaning they have in CUDA.
//
// A device has memory and streams. Operations of one stream run in the order they were issued; different
// streams run independently unless an event orders them. Issuing never waits for the work.
//
// Threads: any task of the device's worker may issue to its streams; calls on one stream are serialised.
// Errors: operands that do not fit throw UsageError at the call. Errors of the work itself surface as RunError at the
// next synchronize() of the same run.
#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/op.h"
#include "engine/tensor.h"

namespace tandem {

enum class DeviceType : std::uint8_t { cpu, gpu };
std::string_view name_of(DeviceType type);  // "CPU", "GPU"

// TensorFlow's device name: /job:worker/replica:0/task:0/device:GPU:1.
struct DeviceId {
  std::string job = "localhost";
  int task = 0;
  DeviceType type = DeviceType::cpu;
  int index = 0;

  std::string text() const;
  // Parses the full form or parts such as "/job:ps/task:1", "/device:GPU:0", "/gpu:0" and "GPU:0"; `defaults` gives
  // the missing ones. Returns nothing for any other text.
  static std::optional<DeviceId> parse(std::string_view text, const DeviceId& defaults);
  auto operator<=>(const DeviceId&) const = default;
};

class Stream;

// A point in a stream. A default-constructed one is complete. Usable within the worker that recorded it.
class EventState {
 public:
  virtual ~EventState() = default;
  virtual bool is_complete() const = 0;
  virtual void synchronize() = 0;  // blocks the calling task
};
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<EventState> state) : state_(std::move(state)) {}
  bool is_complete() const { return !state_ || state_->is_complete(); }
  void synchronize() const {
    if (state_) state_->synchronize();
  }
  const std::shared_ptr<EventState>& state() const { return state_; }

 private:
  std::shared_ptr<EventState> state_;
};

class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device& device() const = 0;
  virtual int index() const = 0;

  virtual void launch(Op op) = 0;
  // Copies between tensors of equal element type and count. One of the two is on this stream's device; the other may be
  // on any device of this worker, and on any device of the cluster if Capabilities::remote_devices.
  virtual void copy(const Tensor& to, const Tensor& from, Category category = Category::communication) = 0;
  virtual Event record() = 0;
  virtual void wait(const Event& event) = 0;  // later operations of this stream start after the event
  virtual void synchronize() = 0;             // blocks the calling task until everything issued so far is done
  // Says that the calling task takes part in a call that another task issues for this stream, too: see
  // Communicator::set_launched_apart(). Models of machines let the time of one launch pass.
  virtual void took_part_in_launch() {}
};

// The purpose of each stream of a device; higher indices are free.
inline constexpr int kComputeStream = 0;
inline constexpr int kCommunicationStream = 1;
inline constexpr int kInputStream = 2;

// Work that a program issues to one device of a run again and again; see Device::repeat(). A default-constructed one is
// new.
struct RepeatedWork {
  class State {
   public:
    virtual ~State() = default;
  };
  std::shared_ptr<State> state{};  // what the engine has kept
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceId& id() const = 0;
  virtual int index() const = 0;          // in Timeline::devices
  virtual int worker() const = 0;         // index of the worker that owns it
  virtual Stream& stream(int index) = 0;  // created on first use
  Stream& compute_stream() { return stream(kComputeStream); }

  // Allocates uninitialised memory. Throws RunError naming the device, the request and the memory in use when it does
  // not fit.
  virtual Tensor allocate(DType dtype, Shape shape) = 0;
  virtual std::int64_t memory_in_use_bytes() const = 0;
  virtual std::int64_t memory_peak_bytes() const = 0;
  virtual void synchronize() = 0;  // all streams

  // Issues work that is the same each time. `issue` launches ops, takes part in collectives, records events and waits
  // for them, on streams of this device; nobody else waits for these events, and nothing but the work depends on
  // whether `issue` was called. With EngineOptions::merges_repeats an engine may issue what it has kept in its place,
  // if other streams than the first one begin by waiting for an event of the work. Called by one task at a time.
  virtual void repeat(RepeatedWork& /*work*/, const std::function<void()>& issue) { issue(); }
};

// For engines: throws UsageError unless Stream::copy may copy `from` to `to` on a stream of `device`.
void check_copy(const Tensor& to, const Tensor& from, const Device& device);

}  // namespace tandem
