// Hides what differs between SimGrid 3.32 and 4.x. The only file of Tandem that includes SimGrid.
//
// Threads: only the one that drives the simulation. "Kernel" is SimGrid's word for the context that owns the simulated
// world (maestro). Activities that are started in the kernel report their end to a callback there, so that no actor has
// to wait for them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <simgrid/s4u.hpp>

// None of these compiles without the header above, and 3.32's umbrella header does not define SIMGRID_VERSION.
#include <simgrid/version.h>
#include <xbt/log.h>
#include <simgrid/Exception.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#if SIMGRID_VERSION >= 40000
#include <simgrid/simcall.hpp>
#else
#include <simgrid/simix.hpp>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TANDEM_SIM_SANITIZED 1
#else
#define TANDEM_SIM_SANITIZED 0
#endif

// simgrid::kernel::EngineImpl::now_, which 3.32 and 4.x export without an installed header. SimGrid expects one
// simulation in a process and never sets its clock back, but equal runs must start at the same time to the last bit.
extern double tandem_simgrid_clock __asm__("_ZN7simgrid6kernel10EngineImpl4now_E");
// simgrid::kernel::activity::CommImpl::set_rate: Comm::set_rate has no effect on a flow between two hosts in 3.32 and
// 4.0.
extern void* tandem_simgrid_set_rate(void* comm,
                                     double bytes_per_s) __asm__("_ZN7simgrid6kernel8activity8CommImpl8set_rateEd");
#if SIMGRID_VERSION < 33500
// Private or protected in 3.32, which never empties them: see forget_ended_engines().
extern simgrid::xbt::signal<void(simgrid::s4u::Activity const&)> tandem_simgrid_on_completion __asm__(
    "_ZN7simgrid3s4u8Activity13on_completionE");
extern simgrid::xbt::signal<void(simgrid::s4u::Exec const&)> tandem_simgrid_on_exec_start __asm__(
    "_ZN7simgrid3s4u4Exec8on_startE");
#endif

namespace tandem::simgrid_compat {

namespace s4u = simgrid::s4u;
using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::routing::NetZoneImpl;
using LocalRoute = simgrid::kernel::routing::Route;
using ActorKilled = simgrid::ForcefulKillException;  // unwinds an actor's stack; must not be swallowed

inline std::string version_text() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  sg_version_get(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + (patch != 0 ? "." + std::to_string(patch) : "");
}

// Dates that differ by less, in seconds, are equal. A hundredth of a nanosecond is more than the spacing of doubles
// during the first ten hours of simulated time.
inline constexpr double kTimingPrecision = 1e-11;
inline constexpr const char* kTimingPrecisionText = "1e-11";

inline void reset_clock() {
  tandem_simgrid_clock = 0;
}

// Sets SimGrid's models and options. SimGrid refuses to change its models after the first platform of a process.
inline void configure() {
  using s4u::Engine;
  xbt_log_control_set("root.app:file:/dev/null");  // failures are reported by exceptions
  Engine::set_config("network/model:CM02");
  Engine::set_config("network/TCP-gamma:0");
  Engine::set_config("network/crosstraffic:0");
#if SIMGRID_VERSION >= 40000
  Engine::set_config(std::string("precision/timing:") + kTimingPrecisionText);
  Engine::set_config("precision/work-amount:1e-9");
#else
  Engine::set_config(std::string("surf/precision:") + kTimingPrecisionText);
  Engine::set_config("maxmin/precision:1e-9");
#endif
#if TANDEM_SIM_SANITIZED
  Engine::set_config("contexts/factory:thread");  // sanitizers do not follow switched stacks
#else
  Engine::set_config("contexts/stack-size:1024");  // KiB; kernels of ops run on the main stack, not on an actor's
#endif
}

// Makes this the zone of all hosts and links: SimGrid's root on 3.32, a child of the root that exists since 4.0.
inline void adopt_zone([[maybe_unused]] NetZoneImpl* zone) {
#if SIMGRID_VERSION >= 40000
  zone->set_parent(s4u::Engine::get_instance()->get_netzone_root()->get_impl());
#endif
}

// Called once in a process, before the first simulation. The configuration belongs to the process, but SimGrid reads
// some of it when an engine begins, so an engine without content takes it over.
inline void prepare_process() {
  s4u::Engine engine("prepare");
  configure();
#if SIMGRID_VERSION < 40000
  s4u::create_empty_zone("empty");
  engine.run();  // 3.32 seals the first platform it runs, and no later one
#endif
}

// Whether links can be added while a simulation runs, because nothing has sealed its platform.
inline constexpr bool kLinksOnDemand = SIMGRID_VERSION < 40000;

inline void seal_platform() {
  if (!kLinksOnDemand) s4u::Engine::get_instance()->get_netzone_root()->seal();
}

// Adds a host for actors and for the ends of flows. The work of devices is not simulated by SimGrid but by Processors.
inline s4u::Host* add_host(NetZoneImpl* zone, const std::string& name) {
  constexpr double kSpeed = 1;
#if SIMGRID_VERSION >= 40000
  s4u::Host* host = zone->add_host(name, {kSpeed});
#else
  s4u::Host* host = zone->create_host(name, {kSpeed});
#endif
  if (kLinksOnDemand) host->seal();
  return host;
}

// Adds one direction of a link, which all flows that cross it share.
inline s4u::Link* add_link(NetZoneImpl* zone, const std::string& name, double bandwidth_bytes_per_s) {
#if SIMGRID_VERSION >= 40000
  return zone->add_link(name, {bandwidth_bytes_per_s});
#else
  return zone->create_link(name, {bandwidth_bytes_per_s})->seal();
#endif
}

// Calls `ended(data)` in the kernel for every activity that was started there with set_data(data).
inline void connect_completion(void (*ended)(void* data)) {
#if SIMGRID_VERSION >= 33500
  s4u::Comm::on_completion_cb([ended](const s4u::Comm& comm) { ended(comm.get_data<void>()); });
  s4u::Exec::on_completion_cb([ended](const s4u::Exec& exec) { ended(exec.get_data<void>()); });
#else
  s4u::Activity::on_completion_cb([ended](const s4u::Activity& activity) {
    if (const auto* comm = dynamic_cast<const s4u::Comm*>(&activity)) {
      ended(comm->get_data<void>());
    } else if (const auto* exec = dynamic_cast<const s4u::Exec*>(&activity)) {
      ended(exec->get_data<void>());
    }
  });
#endif
}

// Removes the callbacks for virtual machines that every engine of 3.32 leaves in the process. After a thousand
// simulations each activity would call thousands of them.
inline void forget_ended_engines() {
#if SIMGRID_VERSION < 33500
  tandem_simgrid_on_completion.disconnect_slots();
  tandem_simgrid_on_exec_start.disconnect_slots();
  s4u::Host::on_state_change.disconnect_slots();
  s4u::Engine::on_platform_created.disconnect_slots();
#endif
}

// Whether there is an engine. Engine::has_instance() of 4.0 says no after the first one of a process has ended.
inline bool has_engine = false;

// Begins an engine whose clock starts at 0. It registers itself with SimGrid; end_engine() deletes it.
inline void begin_engine(void (*ended)(void* data)) {
  static bool is_prepared = false;
  const bool is_first = !std::exchange(is_prepared, true);
  if (is_first) prepare_process();
  forget_ended_engines();
  if (is_first || SIMGRID_VERSION < 33500) connect_completion(ended);
  new s4u::Engine("tandem");
  has_engine = true;
  reset_clock();
}

inline void end_engine() {
  has_engine = false;
  delete s4u::Engine::get_instance();
}

// Both start an activity in the kernel; the caller keeps the pointer until it has ended. This one takes no time, but
// ends only after everything that SimGrid already knows to end at this instant.
inline s4u::ActivityPtr start_instant(s4u::Host* host, void* data) {
  s4u::ExecPtr exec = s4u::Exec::init();
  exec->set_data(data);
  exec->set_flops_amount(0);
  exec->set_host(host);
#if SIMGRID_VERSION >= 33500
  exec->start();
#else
  exec->vetoable_start();
#endif
  return exec;
}

// Makes the flow that was started last share its links as `count` equal flows would. No installed header defines a
// network model, whose first base is Model, or gives access to the action of a Comm.
inline void let_last_flow_count_as(int count) {
  auto* model = reinterpret_cast<simgrid::kernel::resource::Model*>(
      s4u::Engine::get_instance()->get_netzone_root()->get_impl()->get_network_model().get());
  model->get_started_action_set()->back().set_sharing_penalty(1.0 / count);
}

// `most_per_s`: bytes/s that the flow does not exceed; 0: the links decide. It represents `count` equal flows, whose
// bytes and bounds are added.
inline s4u::ActivityPtr start_comm(s4u::Host* from, s4u::Host* to, std::uint64_t bytes, double most_per_s, int count,
                                   void* data) {
  s4u::CommPtr comm = s4u::Comm::sendto_init();
  comm->set_data(data);
  comm->set_payload_size(bytes);
  if (most_per_s > 0) tandem_simgrid_set_rate(comm->get_impl(), most_per_s);
  comm->set_source(from);
  comm->set_destination(to);
#if SIMGRID_VERSION >= 33500
  if (comm->get_state() == s4u::Activity::State::INITED) comm->start();
#endif
  if (count > 1) let_last_flow_count_as(count);
  return comm;
}

using Timer = simgrid::kernel::timer::Timer;  // valid until it is called or removed

inline Timer* at(double date_s, std::function<void()> call) {
  return Timer::set(date_s, std::move(call));
}

inline void remove(Timer* timer) {
  timer->remove();
}

// Runs `call` in the kernel, from an actor or from the kernel itself, before returning.
template <typename Call>
void in_kernel(Call&& call) {
  simgrid::kernel::actor::simcall_answered(std::forward<Call>(call));
}

inline void start_actor(const std::string& name, s4u::Host* host, void* data, const std::function<void()>& body) {
  const auto with_data = [data, body] {
    s4u::Actor::self()->set_data(data);
    body();
  };
#if SIMGRID_VERSION >= 40100
  host->add_actor(name, with_data);
#else
  s4u::Actor::init(name, host)->start(with_data);
#endif
}

// Returns the data of the running actor; null in the kernel and outside a simulation.
inline void* current_actor_data() {
  if (!has_engine) return nullptr;
  s4u::Actor* self = s4u::Actor::self();
  return self == nullptr ? nullptr : self->get_data<void>();
}

}  // namespace tandem::simgrid_compat
