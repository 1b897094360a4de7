#include "scenarios/import/traces/trace_edit.h"

#include <algorithm>

namespace tandem {

int TraceEdit::insert(int position, TraceOp op) {
  inserted_.push_back({position, std::move(op)});
  return static_cast<int>(trace_.ops.size() + inserted_.size()) - 1;
}

void TraceEdit::replace(int op, int instead) {
  replaced_[op] = instead;
}

int TraceEdit::followed(int op) const {
  for (auto found = replaced_.find(op); found != replaced_.end(); found = replaced_.find(op)) op = found->second;
  return op;
}

TraceOp TraceEdit::op_of(int number) const {
  const auto count = static_cast<int>(trace_.ops.size());
  TraceOp op = number < count ? trace_.ops[static_cast<std::size_t>(number)]
                              : inserted_[static_cast<std::size_t>(number - count)].op;
  if (const auto more = more_waits_.find(number); more != more_waits_.end()) {
    op.after.insert(op.after.end(), more->second.begin(), more->second.end());
  }
  return op;
}

void TraceEdit::apply() {
  const auto count = static_cast<int>(trace_.ops.size());
  std::multimap<int, int> behind;  // numbers of ops put in, by their positions
  for (std::size_t i = 0; i < inserted_.size(); ++i) {
    behind.emplace(inserted_[i].position, count + static_cast<int>(i));
  }
  std::vector<int> order;
  for (int position = -1; position < count; ++position) {
    if (position >= 0 && !replaced_.contains(position)) order.push_back(position);
    const auto [begin, end] = behind.equal_range(position);
    for (auto at = begin; at != end; ++at) order.push_back(at->second);
  }
  std::vector<int> places(static_cast<std::size_t>(count) + inserted_.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) places[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  const auto place_of = [&](int op) { return places[static_cast<std::size_t>(followed(op))]; };

  std::vector<TraceOp> ops;
  std::int64_t host_ns = 0;  // of ops left out
  int host_waits_for = -1, next = 0;
  for (const int number : order) {
    const int reached = number < count ? number : inserted_[static_cast<std::size_t>(number - count)].position + 1;
    for (; next < reached; ++next) {
      if (!replaced_.contains(next)) continue;
      const TraceOp& left_out = trace_.ops[static_cast<std::size_t>(next)];
      host_ns += left_out.issue_ns;
      host_waits_for = std::max(host_waits_for, left_out.host_waits_for);
    }
    TraceOp op = op_of(number);
    const auto own = static_cast<int>(ops.size());
    op.issue_ns += host_ns;
    host_ns = 0;
    if (op.host_waits_for < 0) op.host_waits_for = host_waits_for;
    host_waits_for = -1;
    if (op.host_waits_for >= 0) op.host_waits_for = place_of(op.host_waits_for);
    if (op.host_waits_for >= own) op.host_waits_for = -1;
    for (int& other : op.after) other = place_of(other);
    std::erase_if(op.after, [own](int other) { return other >= own; });
    std::sort(op.after.begin(), op.after.end());
    op.after.erase(std::unique(op.after.begin(), op.after.end()), op.after.end());
    ops.push_back(std::move(op));
  }
  trace_.ops = std::move(ops);
}

}  // namespace tandem
