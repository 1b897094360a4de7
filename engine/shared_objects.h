// The objects behind Worker::shared, for engines. A task that waits for one waits through the engine's monitor, so that
// a deadlock is seen and a stopped run ends the wait.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/task.h"
#include "engine/worker.h"

namespace tandem {

class SharedObjects {
 public:
  explicit SharedObjects(std::unique_ptr<Monitor> monitor) : monitor_(std::move(monitor)) {}

  // Returns the object of this name. The first task that asks makes it, with the monitor unlocked; others that ask for
  // it wait. When `make` throws, the exception is the asker's, and the next task that asks makes the object.
  std::shared_ptr<void> get(std::string_view name, const Worker::SharedFactory& make);

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

}  // namespace tandem
