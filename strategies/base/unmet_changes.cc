#include "strategies/base/unmet_changes.h"

#include <fmt/format.h>

#include <utility>

namespace tandem {
namespace {

constexpr int kEntries = 100;

std::string times(int repetitions) {
  return repetitions > 1 ? fmt::format(" ({} times)", repetitions) : "";
}

}  // namespace

void UnmetChanges::add(const std::string& change) {
  if (entries_ == kEntries) {
    ++more_;
    hash_ = hash_ * 31 + std::hash<std::string>()(change);
    return;
  }
  if (change == last_) {
    ++repetitions_;
    return;
  }
  if (!last_.empty()) text_ += last_ + times(repetitions_) + ", ";
  last_ = change;
  repetitions_ = 1;
  ++entries_;
}

std::string UnmetChanges::take() {
  if (entries_ == 0) return "";
  const UnmetChanges taken = std::exchange(*this, {});
  const std::string more = taken.more_ > 0 ? fmt::format(" and {} more, {:x}", taken.more_, taken.hash_) : "";
  return taken.text_ + taken.last_ + times(taken.repetitions_) + more;
}

}  // namespace tandem
