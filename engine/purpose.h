// What a task's collectives are for, in words of its program: "assign_add() of variable 'w'". Ranks of a collective
// must agree on it, so that two calls that only look alike, such as a sum and a mean, are not taken for one; and errors
// name what the program did, not only which collective it came to.
//
// The purpose is kept with the running task, because the layers between a program's call and its collectives have
// nothing else to do with it. A collective that no program's call is the cause of has none.
//
// Threads: any; each task has its own.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "engine/base/name.h"
#include "engine/task.h"

namespace tandem {

// Restores the running task's purpose at the end of its life.
class PurposeScope {
 public:
  PurposeScope(const PurposeScope&) = delete;
  PurposeScope& operator=(const PurposeScope&) = delete;

 protected:
  PurposeScope() : task_(Task::current()), before_(task_.purpose()) {}
  ~PurposeScope() { task_.set_purpose(before_); }

  Name before() const { return before_; }
  void set(Name purpose) { task_.set_purpose(purpose); }

 private:
  Task& task_;
  const Name before_;
};

// Notes which call of the program is executed, for the life of the object. A call inside another one belongs to that
// one: the outermost counts.
class CallPurpose : PurposeScope {
 public:
  // `text()` makes the words, where they count.
  template <std::invocable Text>
  explicit CallPurpose(const Text& text) {
    if (before().empty()) set(Name(std::string(text())));
  }
};

// Adds to the purpose what else the ranks must agree on, such as the shapes of tensors, for the life of the object.
class CallDetail : PurposeScope {
 public:
  explicit CallDetail(const std::string& detail) {
    set(before().empty() ? Name(detail) : Name(before().text() + ", " + detail));
  }
};

// Shortens two long texts to the part in which they differ.
std::pair<std::string, std::string> shown_difference(const std::string& a, const std::string& b);
// Shortens a long text to its beginning.
std::string shown_beginning(const std::string& text);

}  // namespace tandem
