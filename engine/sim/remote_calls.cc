#include "engine/sim/remote_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "topologies/base/units.h"

namespace tandem::sim {

bool RemoteCalls::are_apart(NodeIndex server, NodeIndex client) const {
  const Topology& topology = simulation_.platform().topology();
  return topology.worker(server) != topology.worker(client);
}

// Returns the model of the server's cable to the network; null where no link is one of a network.
const LinkModel* RemoteCalls::model_between(NodeIndex server, NodeIndex client) const {
  Platform& platform = simulation_.platform();
  for (const Edge& hop : platform.route(server, client)->hops) {
    const LinkModel& model = platform.topology().link_model(hop.link);
    if (model.kind == LinkKind::network) return &model;
  }
  return nullptr;
}

void RemoteCalls::consult(const LinkModel& model) {
  if (!consulted_.insert(&model).second) return;
  const auto note = [&](const char* what, const Figure& figure, Dimension dimension) {
    if (figure.value <= 0 || figure.provenance != Provenance::assumed) return;
    notes_.add(fmt::format("assumed: {} of '{}', {} ({})", what, model.id, format_quantity(figure.value, dimension),
                           figure.source));
  };
  note("what a server takes for a remote call", model.remote_call_s, Dimension::seconds);
  note("the rate of data of remote calls", model.remote_call_bytes_per_s, Dimension::bytes_per_second);
}

void RemoteCalls::after(double& busy_until_s, double seconds, Simulation::Then then) {
  if (seconds <= 0) return then();
  busy_until_s = std::max(busy_until_s, Simulation::now_s()) + seconds;
  simulation_.at(busy_until_s, std::move(then));
}

// The network begins with the server, and the data are there when both have ended.
void RemoteCalls::move(const Call& call, double seconds, Simulation::Then then) {
  if (seconds <= 0) return call.transfer(std::move(then));
  Server& server = servers_[call.worker];
  double& busy_until_s = call.sends ? server.sends_until_s : server.takes_until_s;
  const double begin_s = std::max(busy_until_s, Simulation::now_s());
  busy_until_s = begin_s + seconds;
  const auto join = [left = std::make_shared<int>(2), then = std::move(then)] {
    if (--*left == 0) then();
  };
  simulation_.at(busy_until_s, join);
  simulation_.at(begin_s, [transfer = call.transfer, join] { transfer(join); });
}

void RemoteCalls::make(const Call& call, Simulation::Then then) {
  const LinkModel* model = model_between(call.server, call.client);
  if (model == nullptr) return call.transfer(std::move(then));
  consult(*model);
  const double rate = model->remote_call_bytes_per_s.value;
  const double call_s = model->remote_call_s.value, data_s = rate > 0 ? call.bytes / rate : 0;
  double& handles_until_s = servers_[call.worker].handles_until_s;
  if (call.sends) {
    after(handles_until_s, call_s, [this, call, data_s, then = std::move(then)] { move(call, data_s, then); });
  } else {
    move(call, data_s,
         [this, &handles_until_s, call_s, then = std::move(then)] { after(handles_until_s, call_s, then); });
  }
}

void RemoteCalls::add_consulted(std::set<std::string>& inputs) const {
  for (const LinkModel* model : consulted_) {
    inputs.insert(model->id + ".remote_call");
    inputs.insert(model->id + ".remote_call_bandwidth");
  }
}

}  // namespace tandem::sim
