// Divides the arguments of replica functions and update functions among the replicas or components.
#pragma once

#include <cstddef>
#include <string_view>

#include "strategies/values/value.h"

namespace tandem {

// Throws ValueError, naming the call and both numbers, for an argument that is distributed over fewer or more than
// `count` parts, at any depth of a nested value. `of_what` completes the message: "replicas".
void check_arguments(std::string_view call, const Value::Parts& arguments, std::size_t count, std::string_view of_what);

// Returns each argument's part for the replica or component of this index.
Value::Parts arguments_of(int replica, const Value::Parts& arguments);

}  // namespace tandem
