// The arguments of replica functions and update functions: what each replica or component gets of them.
#pragma once

#include <cstddef>
#include <string_view>

#include "strategies/values/value.h"

namespace tandem {

// Throws ValueError, naming the call and both numbers, for an argument that is distributed over fewer than `count`
// parts, at any depth of a nested value. `of_what` completes the message: "replicas".
void check_arguments(std::string_view call, const Value::Parts& arguments, std::size_t count, std::string_view of_what);

// Each argument's part for a replica, or a component of that index.
Value::Parts arguments_of(int replica, const Value::Parts& arguments);

}  // namespace tandem
