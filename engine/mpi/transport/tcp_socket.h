// TCP sockets of tasks that were started one by one: addresses of a cluster, and bytes over a connection.
//
// Threads: any; one at a time for each direction of a socket.
#pragma once

#include <netdb.h>

#include <cstddef>
#include <memory>
#include <string>

namespace tandem::mpi {

// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;

  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  int release();
  void close();

 private:
  int descriptor_ = -1;
};

// Where a task listens: "host:port", for IPv6 "[::1]:port".
struct TaskAddress {
  std::string host, port;
};
// Throws UnavailableError, which names the task, for a text that is no address with a port above 0.
TaskAddress address_of_task(const std::string& task, const std::string& text);

using Resolved = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
// Looks up an address; null with the reason where the host is not known.
Resolved resolve(const TaskAddress& address, std::string& reason);

// Listens at the address of a task of this machine, for which TANDEM_TASK_LISTEN may name another host, such as
// 0.0.0.0. Throws UnavailableError, with the task and its address, where the host is unknown or not this machine, or
// the port is taken.
Socket listen_as(const std::string& task, const std::string& text);

// Listens at a port that is free, on all addresses of this machine. Throws UnavailableError where it cannot.
Socket listen_anywhere();
std::string port_of(const Socket& listener);

// Begins to connect; poll() for writing says when connection_error() is known. Returns a closed socket where even that
// fails.
Socket begin_connect(const addrinfo& address);
std::string connection_error(const Socket& socket);  // "" if it is connected

// Sends without delay for small messages, and notices a network that is gone.
void set_options(const Socket& socket);

// Sends or receives exactly so many bytes, and waits until they are. False if the connection has ended.
bool send_all(int descriptor, const void* data, std::size_t bytes);
bool receive_all(int descriptor, void* data, std::size_t bytes);

}  // namespace tandem::mpi
