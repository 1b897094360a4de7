// The objects behind SharedState, for engines. A task that waits for one waits through the engine's monitor, so that
// a deadlock is seen and a stopped run ends the wait.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/shared_state.h"
#include "engine/task.h"

namespace tandem {

class Worker;

class SharedObjects {
 public:
  explicit SharedObjects(std::unique_ptr<Monitor> monitor) : monitor_(std::move(monitor)) {}

  // Returns the object of this name. The first task that asks makes it, with the monitor unlocked; others that ask for
  // it wait. When `make` throws, the exception is the asker's, and the next task that asks makes the object.
  std::shared_ptr<void> get(std::string_view name, const SharedState::Factory& make);

 private:
  struct Entry {
    std::string maker;  // the task's name
    bool is_made = false;
    std::shared_ptr<void> object{};
  };
  // Waits while another task makes the object. Returns null when the calling task must make it.
  const Entry* find(std::string_view name);

  const std::unique_ptr<Monitor> monitor_;  // guards entries_
  std::map<std::string, Entry, std::less<>> entries_;
};

// Implements SharedState by objects of one process. An engine whose workers are several processes overrides it.
class SharedInProcess : public SharedState {
 public:
  std::shared_ptr<void> kept(std::string_view name, const Factory& make) override;
  std::shared_ptr<SharedTensor> tensor(std::string_view name, const TensorFactory& make) override;
  std::shared_ptr<Mailbox> mailbox(int owner, std::string_view name) override;

 protected:
  // Derived classes pass *this as a Worker, which is not to be taken for a copy.
  explicit SharedInProcess(Worker& worker) : worker_(worker) {}
  SharedInProcess(const SharedInProcess&) = delete;
  SharedInProcess& operator=(const SharedInProcess&) = delete;
  ~SharedInProcess() = default;

 private:
  Worker& worker_;  // whose state this is
};

}  // namespace tandem
