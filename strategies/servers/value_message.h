// Values as bytes and tensors, on their way to another worker (engine/mailbox.h). Numbers, texts, tensors and slices
// travel with their structure, and a variable as the name of its published tensor. That a number was a literal is lost.
//
// Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "strategies/values/value.h"
#include "strategies/variables/variable.h"

namespace tandem {

class Strategy;
class Worker;

// Returns the value with every tensor that is on a device of another worker copied to this worker's CPU:0, once the
// work that writes its tensors has ended. TypeError for a tensor without memory.
Value ready_to_send(Worker& worker, const Value& value);

// Appends a value and its tensors. TypeError for a variable of another strategy than `strategy`, or that no other
// worker can find, or whose constraint is a function of this process, and for a tensor without memory.
void put_value(ByteWriter& bytes, std::vector<Tensor>& tensors, const Value& value, const Strategy& strategy);

// What get_value() asks for. `part` is the index in the per-replica or mirrored value that is being read, else 0.
struct ValueSource {
  std::function<Tensor(std::size_t part)> next_tensor;  // in the order in which they were appended
  std::function<std::shared_ptr<Variable>(const std::string& shared_name, const VariableSpec& spec)> variable;
  std::function<std::string(std::size_t part)> place{};  // the device of a part; empty: the one that was sent
};
// Reads what put_value() wrote.
Value get_value(ByteReader& bytes, const ValueSource& source, std::size_t part = 0);

}  // namespace tandem
