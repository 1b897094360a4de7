#include "strategies/servers/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>

#include "engine/launched_job.h"
#include "engine/worker.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/text.h"
#include "strategies/servers/worker_functions.h"

namespace tandem {
namespace {

// Returns the given value or, without one, the only known value.
template <typename T>
T given_or_only(const std::optional<T>& given, const std::vector<T>& known, const char* what) {
  if (given) return *given;
  if (known.size() == 1) return known.front();
  throw ValueError(fmt::format("give an explicit {}: there are {} to choose from", what, known.size()));
}

int port_of(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  const auto port =
      colon == std::string::npos ? std::nullopt : whole_number(std::string_view(address).substr(colon + 1));
  if (!port || *port < 0 || *port > 65535 || address.find('/') != std::string::npos) {
    throw InvalidArgumentError(fmt::format("could not parse a port from '{}': an address is host:port", address));
  }
  return *port;
}

int own_port(const ServerDef& definition) {
  for (const auto& [job, tasks] : definition.cluster.by_job()) {
    for (const auto& [index, address] : tasks.by_index()) port_of(address);
  }
  if (definition.protocol != "grpc") {
    throw NotFoundError(fmt::format("no server speaks protocol '{}' (known: grpc)", definition.protocol));
  }
  try {
    return port_of(definition.cluster.task_address(definition.job_name, definition.task_index));
  } catch (const ValueError& unknown) {
    throw InvalidArgumentError(unknown.what());
  }
}

void check_is_task(const ServerDef& definition, const Worker& worker) {
  const std::string served = task_text(definition.job_name, definition.task_index);
  const std::string here = task_text(worker.job(), worker.task());
  if (served != here) throw InvalidArgumentError(fmt::format("the server of {} in the program of {}", served, here));
  const std::set<std::string> expected = tasks_of(definition.cluster), found = tasks_of(worker.cluster());
  if (expected == found) return;
  throw InvalidArgumentError(fmt::format("the server's cluster has the tasks {}, and the run has {}",
                                         fmt::join(expected, ", "), fmt::join(found, ", ")));
}

}  // namespace

ServerDef make_server_def(const ClusterSpec& cluster, const std::optional<std::string>& job_name,
                          std::optional<int> task_index, const std::string& protocol) {
  const std::string job = given_or_only(job_name, cluster.jobs(), "job name");
  const int task = task_index ? *task_index : given_or_only(task_index, cluster.task_indices(job), "task index");
  return {.cluster = cluster, .job_name = job, .task_index = task, .protocol = protocol};
}

// Whether the engine listens at this task's address, because this process is the task (start_task_of).
bool does_engine_listen(const ServerDef& definition) {
  const TaskList& tasks = tasks_of_process();
  if (tasks.names.empty()) return false;
  const auto mine = static_cast<std::size_t>(tasks.index);
  return tasks.names[mine] == task_text(definition.job_name, definition.task_index) &&
         tasks.addresses[mine] == definition.cluster.task_address(definition.job_name, definition.task_index);
}

// The listening socket, and a pipe whose closing end wakes join().
class Server::Sockets {
 public:
  Sockets(int port, bool does_engine_listen) : port_(port) {
    if (pipe(stop_) != 0) refuse(port);
    if (does_engine_listen) return;
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // a port that only lingers is free
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (listener_ < 0 || bind(listener_, as_sockaddr(address), sizeof(address)) != 0 || listen(listener_, 128) != 0) {
      refuse(port);
    }
  }
  ~Sockets() { close_all(); }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  int port() const {
    if (listener_ < 0) return port_;
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(listener_, as_sockaddr(address), &size);
    return ntohs(address.sin_port);
  }
  void start() {
    State before = State::created;
    if (!state_.compare_exchange_strong(before, State::started) && before == State::stopped) {
      throw RuntimeError("the server has stopped, it cannot start again");
    }
  }
  void join() {
    State before = State::created;
    if (state_.compare_exchange_strong(before, State::stopped)) return;
    pollfd stopped{.fd = stop_[0], .events = POLLIN, .revents = 0};
    while (poll(&stopped, 1, -1) < 0 && errno == EINTR) {
    }
  }
  bool is_started() const { return state_ == State::started; }
  void stop() {
    if (state_.exchange(State::stopped) == State::stopped) return;
    if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
    [[maybe_unused]] const auto written = write(stop_[1], "x", 1);  // stays there: every join() returns
  }

 private:
  enum class State { created, started, stopped };

  static sockaddr* as_sockaddr(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }
  void close_all() {
    for (const int descriptor : {listener_, stop_[0], stop_[1]}) {
      if (descriptor >= 0) close(descriptor);
    }
  }
  [[noreturn]] void refuse(int port) {
    const int error = errno;
    close_all();
    throw UnknownError(fmt::format("could not start a server on port {}: {}", port, std::strerror(error)));
  }

  const int port_;
  int listener_ = -1;  // -1: the engine listens
  int stop_[2] = {-1, -1};
  std::atomic<State> state_ = State::created;
};

Server::Server(ServerDef definition, bool start) : definition_(std::move(definition)) {
  const int port = own_port(definition_);
  sockets_ = std::make_unique<Sockets>(port, does_engine_listen(definition_));
  port_ = sockets_->port();
  if (start) sockets_->start();
}

Server::Server(const ClusterSpec& cluster, const std::optional<std::string>& job_name, std::optional<int> task_index)
    : Server(make_server_def(cluster, job_name, task_index)) {}

Server::~Server() = default;

std::unique_ptr<Server> Server::create_local() {
  return std::make_unique<Server>(ClusterSpec{{"localhost", {"localhost:0"}}});
}

void Server::start() {
  sockets_->start();
}

void Server::join() {
  if (Worker* const worker = Task::current().worker()) return join(*worker);
  sockets_->join();
}

void Server::join(Worker& worker) const {
  join(worker, {});
}

void Server::join(Worker& worker, const WorkerFunctions& functions) const {
  if (!sockets_->is_started()) throw RuntimeError("the server does not run");
  check_is_task(definition_, worker);
  functions.serve_until_end_of_job(worker);
}

void Server::stop() {
  sockets_->stop();
}

std::string Server::target() const {
  return fmt::format("grpc://localhost:{}", port_);
}

}  // namespace tandem
