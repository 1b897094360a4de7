#include "engine/sim/cores.h"

#include <algorithm>
#include <utility>

#include "engine/base/core_rules.h"

namespace tandem::sim {
namespace {

constexpr double seconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e9;
}

constexpr double kSpinsS = seconds(kCoreSpin), kTurnS = seconds(kCoreTurn);
constexpr double kPatienceS = seconds(kCorePatience) + seconds(kCoreTick) / 2;

}  // namespace

Cores::Node& Cores::add_node(NodeIndex index, Figures figures) {
  std::unique_ptr<Node>& node = nodes_[index];
  if (node) return *node;
  node = std::make_unique<Node>();
  for (int core = 0; core < figures.cores; ++core) node->free.push_back(core);
  node->idle_since_s.resize(static_cast<std::size_t>(figures.cores), -1);  // before the run
  node->figures = std::move(figures);
  return *node;
}

Cores::Thread& Cores::take(Node& node) {
  if (node.idle.empty()) {
    node.pool.push_back(std::make_unique<Thread>(node, true));
    return *node.pool.back();
  }
  Thread* const thread = node.idle.back();
  node.idle.pop_back();
  return *thread;
}

void Cores::put_back(Thread& thread) {
  thread.node_.idle.push_back(&thread);
  block(thread);
}

void Cores::enter(Thread& thread, Thread::State state) {
  if (thread.state_ == Thread::State::spinning) std::erase(thread.node_.spinning, &thread);
  thread.state_ = state;
  ++thread.changes_;
}

void Cores::run(Thread& thread, const Node* woken_by, Then then) {
  if (thread.state_ == Thread::State::running) return then();
  if (thread.state_ == Thread::State::spinning) {
    enter(thread, Thread::State::running);
    return then();
  }
  if (thread.state_ != Thread::State::asleep) {
    thread.then_ = std::move(then);
    return;
  }
  queue(thread, false, std::move(then));
  if (woken_by != &thread.node_) serve_line(thread.node_);
  stop_spinning(thread.node_);
}

void Cores::queue(Thread& thread, bool first, Then then) {
  thread.then_ = std::move(then);
  enter(thread, Thread::State::in_line);
  std::deque<Thread*>& line = thread.is_task_ ? thread.node_.tasks : thread.node_.streams;
  first ? line.push_front(&thread) : line.push_back(&thread);
  simulation_.at(Simulation::now_s() + kPatienceS, [this, &thread, number = thread.changes_] {
    if (thread.changes_ == number) lose_patience(thread);
  });
}

void Cores::lose_patience(Thread& thread) {
  std::deque<Thread*>& line = thread.is_task_ ? thread.node_.tasks : thread.node_.streams;
  std::erase(line, &thread);
  go_on(thread);
}

// Threads that spin see the line, and make room.
void Cores::stop_spinning(Node& node) {
  while (node.has_line() && !node.spinning.empty()) release(*node.spinning.front());
}

void Cores::release(Thread& thread) {
  enter(thread, Thread::State::asleep);
  if (thread.core_ < 0) return;
  Node& node = thread.node_;
  const int core = std::exchange(thread.core_, -1);
  node.idle_since_s[static_cast<std::size_t>(core)] = Simulation::now_s();
  if (node.has_line()) {
    grant_first(node, core);
  } else {
    node.free.push_back(core);
  }
  serve_line(node);
}

void Cores::block(Thread& thread) {
  if (thread.state_ != Thread::State::running) return;
  enter(thread, Thread::State::spinning);
  if (thread.node_.has_line()) return release(thread);
  thread.node_.spinning.push_back(&thread);
  simulation_.at(Simulation::now_s() + kSpinsS, [this, &thread, number = thread.changes_] {
    if (thread.changes_ == number) release(thread);
  });
}

void Cores::offer(Thread& thread, Then then) {
  Node& node = thread.node_;
  serve_line(node);
  const bool had_turn = Simulation::now_s() - thread.since_s_ > kTurnS;
  if (!node.has_line() || thread.core_ < 0 || (node.tasks.empty() && !had_turn)) return then();
  release(thread);
  queue(thread, !had_turn, std::move(then));
  serve_line(node);
}

void Cores::serve_line(Node& node) {
  while (!node.free.empty() && node.has_line()) {
    const Thread& first = *(node.tasks.empty() ? node.streams : node.tasks).front();
    auto found = std::find(node.free.begin(), node.free.end(), first.last_core_);
    if (found == node.free.end()) found = std::prev(node.free.end());
    const int core = *found;
    node.free.erase(found);
    grant_first(node, core);
  }
}

void Cores::grant_first(Node& node, int core) {
  std::deque<Thread*>& line = node.tasks.empty() ? node.streams : node.tasks;
  Thread& thread = *line.front();
  line.pop_front();
  thread.core_ = thread.last_core_ = core;
  enter(thread, Thread::State::waking);
  const double idle_s = Simulation::now_s() - node.idle_since_s[static_cast<std::size_t>(core)];
  const double after_s = idle_s > 0 ? node.figures.wake_up_s(idle_s) : node.figures.hand_over_s();
  simulation_.at(Simulation::now_s() + after_s, [this, &thread] { go_on(thread); });
}

void Cores::go_on(Thread& thread) {
  enter(thread, Thread::State::running);
  thread.since_s_ = Simulation::now_s();
  std::exchange(thread.then_, nullptr)();
}

}  // namespace tandem::sim
