// What servers take for remote calls. A copy that a worker issues on the stream of another machine's device is a call:
// it asks that device's process, the server, to send data or to take them. A server handles its calls one after
// another, each for LinkModel::remote_call_s: before it sends, and after it has taken the data. It sends the data of
// one call at a time and takes those of another one meanwhile, both at LinkModel::remote_call_bytes_per_s, while the
// network moves them: a slower network may still have data of a call whose server has begun the next one. Its devices'
// work goes on beside all this.
//
// Called in SimGrid's kernel only (see simulation.h).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>

#include "engine/sim/base/notes.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

class RemoteCalls {
 public:
  RemoteCalls(Simulation& simulation, Notes& notes) : simulation_(simulation), notes_(notes) {}
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;

  // Whether a worker's work on the device of another one is a call.
  bool are_apart(NodeIndex server, NodeIndex client) const;
  // A call that moves so many bytes between a server and a client, and how the network moves them.
  struct Call {
    int worker = 0;  // whose process is the server
    NodeIndex server = 0, client = 0;
    bool sends = false;  // the server does; else it takes them
    double bytes = 0;
    std::function<void(Simulation::Then then)> transfer{};
  };
  // Calls `then` at the end of the call.
  void make(const Call& call, Simulation::Then then);

  // As Network::add_consulted().
  void add_consulted(std::set<std::string>& inputs) const;
  void forget_consulted() { consulted_.clear(); }

 private:
  struct Server {
    double handles_until_s = 0, sends_until_s = 0, takes_until_s = 0;
  };
  const LinkModel* model_between(NodeIndex server, NodeIndex client) const;
  void consult(const LinkModel& model);
  void move(const Call& call, double seconds, Simulation::Then then);
  // Calls `then` when a part of the server that is busy until then has spent so much on what comes next.
  void after(double& busy_until_s, double seconds, Simulation::Then then);

  Simulation& simulation_;
  Notes& notes_;
  std::unordered_map<int, Server> servers_;  // by worker; never iterated
  std::set<const LinkModel*> consulted_;     // only its names are read
};

}  // namespace tandem::sim
