// One task's server: it holds the task's TCP port, so that a cluster's addresses are checked where they are used.
//
// Threads: join() blocks the calling thread; stop() may be called from any thread and makes it return.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace tandem {

struct ServerDef {
  ClusterSpec cluster{};
  std::string job_name{};
  int task_index = 0;
  std::string protocol = "grpc";
};

// Job and index may be left out where the cluster has only one job, the job only one task; else ValueError.
ServerDef make_server_def(const ClusterSpec& cluster, const std::optional<std::string>& job_name = {},
                          std::optional<int> task_index = {}, const std::string& protocol = "grpc");

class Server {
 public:
  // Binds the task's port on all interfaces, any free one for port 0. InvalidArgumentError for an address of the
  // cluster that is no "host:port" and for a task the cluster does not have, NotFoundError for another protocol than
  // grpc, UnknownError where the port is in use.
  explicit Server(ServerDef definition, bool start = true);
  explicit Server(const ClusterSpec& cluster, const std::optional<std::string>& job_name = {},
                  std::optional<int> task_index = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // A cluster of this process alone, on any free port.
  static std::unique_ptr<Server> create_local();

  void start();  // nothing to do when it runs already; RuntimeError once it has stopped
  void join();   // returns after stop(), and at once where it was never started
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
