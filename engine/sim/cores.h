// The cores of nodes whose devices are threads, and which threads have them: by the rules of the cpu engine
// (engine/threads/cores.h, waiter.cc), whose words this uses.
//
//   state     | is                                        | next
//   ----------|-------------------------------------------|---------------------------------------------------------
//   asleep    | waits, without a core                     | run(): in line
//   in line   | could run                                 | a core is free and nobody was in line before: waking.
//             |                                           | kPatience is over: running, without a core of its own
//   waking    | has a core, but does not run yet          | hand_over_s or wake_up_s() later: running
//   running   | works on its core                         | block(): spinning. offer(): maybe in line
//   spinning  | waits, and keeps its core                 | run(): running. kSpins later, or as soon as any thread is
//             |                                           | in line: asleep
//
// Everything here is called in SimGrid's kernel.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/sim/simulation.h"
#include "topologies/topology.h"

namespace tandem::sim {

class Cores {
 public:
  using Then = std::function<void()>;
  struct Node;

  class Thread {
   public:
    Thread(Node& node, bool is_task) : node_(node), is_task_(is_task) {}
    bool is_asleep() const { return state_ == State::asleep; }
    bool is_spinning() const { return state_ == State::spinning; }

   private:
    friend class Cores;
    enum class State : std::uint8_t { asleep, in_line, waking, running, spinning };
    Node& node_;
    const bool is_task_;
    State state_ = State::asleep;
    int core_ = -1, last_core_ = -1;  // -1: none
    double since_s_ = 0;              // when it last began to run on its core
    std::uint64_t changes_ = 0;       // of its state
    Then then_{};
  };

  // What the threads of a node take, of its device model.
  struct Figures {
    int cores = 1;
    std::function<double()> hand_over_s;
    std::function<double(double idle_s)> wake_up_s;
  };
  struct Node {
    Figures figures;
    std::vector<int> free{};  // cores, the latest freed last
    std::vector<double> idle_since_s{};
    std::deque<Thread*> tasks{}, streams{};  // in line
    std::vector<Thread*> spinning{};
    std::vector<std::unique_ptr<Thread>> pool{};  // all threads of tasks
    std::vector<Thread*> idle{};                  // those without a task, the latest last
    bool has_line() const { return !tasks.empty() || !streams.empty(); }
  };

  explicit Cores(Simulation& simulation) : simulation_(simulation) {}
  Node& add_node(NodeIndex node, Figures figures);

  // Takes a thread for a task from the node's pool, and returns it.
  Thread& take(Node& node);
  void put_back(Thread& thread);

  // Calls `then` once the thread runs, which may be before this returns. Replaces what was to be called before. A
  // stream whose thread is of the node `woken_by` will block or start an op at this instant, and makes room then; where
  // others wake a thread (null, or another node), it gets a free core now.
  void run(Thread& thread, const Node* woken_by, Then then);
  // Notes that the thread waits.
  void block(Thread& thread);
  // Lets a running stream make room for others between two ops; calls `then` once it may go on.
  void offer(Thread& thread, Then then);
  // Gives free cores to those in line.
  void serve_line(Node& node);

 private:
  void enter(Thread& thread, Thread::State state);
  void queue(Thread& thread, bool first, Then then);
  void stop_spinning(Node& node);
  void release(Thread& thread);
  void grant_first(Node& node, int core);
  void go_on(Thread& thread);
  void lose_patience(Thread& thread);

  Simulation& simulation_;
  std::map<NodeIndex, std::unique_ptr<Node>> nodes_;
};

}  // namespace tandem::sim
