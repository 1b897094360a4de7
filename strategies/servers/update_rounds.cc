#include "strategies/servers/update_rounds.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

namespace tandem {
namespace {

constexpr std::string_view kTokens = "applied updates", kComers = "takers in updates";

bool takes_part(const WorkerSpec& spec) {
  return spec.job != "ps" && spec.job != "evaluator";
}

// Adds a part to a sum, which the first part of a round begins anew.
void accumulate(const Tensor& sum, const Tensor& part, bool is_first, const std::string& variable) {
  Op op = is_first ? op::scale_add(sum, part, 1, 0) : op::elementwise(kernel::Binary::add, sum, sum, part);
  op.name = "accumulate " + variable;
  op.category = Category::communication;
  sum.device().compute_stream().launch(std::move(op));
}

}  // namespace

UpdateRounds::UpdateRounds(Worker& worker)
    : worker_(worker), first_(worker.index()), monitor_(worker.tasks().make_monitor()) {
  const auto cluster = worker.cluster();
  const auto place = [&](int index) {
    const WorkerSpec& spec = cluster[static_cast<std::size_t>(index)];
    return std::pair(spec.job != "chief", spec.task);
  };
  for (int index = 0; index < worker.count(); ++index) {
    if (!takes_part(cluster[static_cast<std::size_t>(index)])) continue;
    ++workers_;
    if (place(index) < place(first_)) first_ = index;
    std::shared_ptr<Mailbox> mailbox = worker.shared().mailbox(index, kTokens);
    index == worker.index() ? tokens_ = std::move(mailbox) : others_.emplace_back(std::move(mailbox));
  }
  come_ = worker.shared().mailbox(first_, kComers);
}

void UpdateRounds::await(const std::string& variable) {
  const std::lock_guard lock(*monitor_);
  await(variable, rounds_[variable]);
}

// With the monitor held, so that one task at a time receives.
void UpdateRounds::await(const std::string& variable, const Rounds& rounds) {
  while (rounds.applied < rounds.given) {
    const WorkerMessage token =
        tokens_->receive(fmt::format("the other workers to take part in an update of variable '{}'", variable));
    ++rounds_[token.text].applied;
  }
}

UpdateRounds::Rounds& UpdateRounds::opened(const std::string& variable, Device& server,
                                           const std::vector<Tensor>& parts) {
  Rounds& rounds = rounds_[variable];
  await(variable, rounds);
  const auto shared = [&](const std::string& what, DType dtype, const Shape& shape) {
    return worker_.shared().tensor(fmt::format("{} of variable {}", what, variable),
                                   [&] { return server.allocate(dtype, shape); });
  };
  if (!parts.empty() && !rounds.arrivals) rounds.arrivals = shared("arrivals", DType::u8, {1});
  while (rounds.sums.size() < parts.size()) {
    const Tensor& part = parts[rounds.sums.size()];
    rounds.sums.push_back(shared(fmt::format("accumulator {}", rounds.sums.size()), part.dtype(), part.shape()));
  }
  return rounds;
}

void UpdateRounds::give(const std::string& variable, Device& server, const std::vector<Tensor>& parts,
                        const Apply& apply) {
  const std::lock_guard lock(*monitor_);
  Rounds& rounds = opened(variable, server, parts);
  const bool has_applied = parts.empty() ? lead(rounds, variable, apply) : add(rounds, variable, parts, apply);
  ++rounds.given;
  if (!has_applied) return;
  ++rounds.applied;
  for (const std::shared_ptr<Mailbox>& other : others_) other->send({.text = variable});
}

// Returns whether this worker has applied the update, as the last one.
bool UpdateRounds::add(Rounds& rounds, const std::string& variable, const std::vector<Tensor>& parts,
                       const Apply& apply) {
  const std::lock_guard round(*rounds.arrivals);
  const std::int64_t before = rounds.arrivals->version() % workers_;
  std::vector<Tensor> sums;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sums.push_back(rounds.sums[i]->tensor());
    accumulate(sums.back(), parts[i], before == 0, variable);
  }
  rounds.arrivals->note_change();
  if (before + 1 < workers_) return false;
  apply(sums);
  return true;
}

// Returns whether this worker has applied the update, as the first of the cluster.
bool UpdateRounds::lead(Rounds& rounds, const std::string& variable, const Apply& apply) {
  if (worker_.index() != first_) {
    come_->send({.text = variable});
    return false;
  }
  while (rounds.come < workers_ - 1) {
    const WorkerMessage comer =
        come_->receive(fmt::format("the other workers to take part in an update of variable '{}'", variable));
    ++rounds_[comer.text].come;
  }
  rounds.come -= workers_ - 1;
  apply({});
  return true;
}

}  // namespace tandem
