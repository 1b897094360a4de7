#include "strategies/strategy/replica_arguments.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/strategy/regroup.h"

namespace tandem {

void check_arguments(std::string_view call, const Value::Parts& arguments, std::size_t count,
                     std::string_view of_what) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    map_structure(arguments[i], [&](const Value& leaf) {
      if (leaf.is_distributed() && leaf.parts().size() != count) {
        throw ValueError(fmt::format("{} needs a part for each of {} {}, and argument {} is a {} of {} parts", call,
                                     count, of_what, i, name_of(leaf.kind()), leaf.parts().size()));
      }
      return leaf;
    });
  }
}

Value::Parts arguments_of(int replica, const Value::Parts& arguments) {
  Value::Parts mine;
  mine.reserve(arguments.size());
  for (const Value& argument : arguments) mine.push_back(select_replica(replica, argument));
  return mine;
}

}  // namespace tandem
