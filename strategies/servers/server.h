// tf.distribute.Server: the server of one task. It listens on the task's TCP port, so that a wrong address of a cluster
// is noticed, and serves functions to a coordinator; their messages take the engine's way, not that port.
//
// Threads: join() outside of an engine's run blocks the calling thread until any thread calls stop().
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace tandem {

class Worker;
class WorkerFunctions;

struct ServerDef {
  ClusterSpec cluster{};
  std::string job_name{};
  int task_index = 0;
  std::string protocol = "grpc";
};

// Job and index may be omitted when the cluster has a single job and the job a single task (ValueError otherwise).
ServerDef make_server_def(const ClusterSpec& cluster, const std::optional<std::string>& job_name = {},
                          std::optional<int> task_index = {}, const std::string& protocol = "grpc");

class Server {
 public:
  // Binds the task's port on all interfaces, for port 0 any free port; no port where the engine itself listens at the
  // address of this task (start_task_of). InvalidArgumentError for an address in the
  // cluster that is no "host:port" and for a task that the cluster does not have; NotFoundError for a protocol other
  // than grpc; UnknownError when the port is in use.
  explicit Server(ServerDef definition, bool start = true);
  explicit Server(const ClusterSpec& cluster, const std::optional<std::string>& job_name = {},
                  std::optional<int> task_index = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Starts the server of a cluster that consists of this process alone, on any free port.
  static std::unique_ptr<Server> create_local();

  void start();  // does nothing when the server runs already; RuntimeError after stop()
  // Outside of an engine's run it returns after stop(), or immediately if the server was never started. In the program
  // of an engine's worker it is join(worker).
  void join();
  // Blocks until the job ends: until the programs of all tasks have ended or have called this, too. Until then others
  // use this task's devices and, on a parameter server, its variables. InvalidArgumentError in the program of another
  // task than the server's, and where the run has other tasks than its cluster; RuntimeError for a server that was
  // never started, or has stopped.
  void join(Worker& worker) const;
  // Serves functions by name meanwhile, if this is a worker: see WorkerFunctions::serve_until_end_of_job().
  void join(Worker& worker, const WorkerFunctions& functions) const;
  void stop();

  std::string target() const;  // "grpc://localhost:2222"
  int port() const { return port_; }
  const ServerDef& definition() const { return definition_; }

 private:
  class Sockets;
  ServerDef definition_;
  std::unique_ptr<Sockets> sockets_;
  int port_ = 0;
};

}  // namespace tandem
