#include "engine/mpi/transport/tcp_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/launched_job.h"
#include "topologies/base/error.h"

namespace tandem::mpi {
namespace {

constexpr int kQueued = 1024;  // connections that nobody has accepted yet
// A job that has just ended may hold the port for a moment.
constexpr int kBindTries = 10;
constexpr auto kBetweenBinds = std::chrono::milliseconds(100);

void enable(int descriptor, int level, int option, int value = 1) {
  setsockopt(descriptor, level, option, &value, sizeof(value));
}

bool is_port(const std::string& text) {
  int port = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, port);
  return error == std::errc{} && last == end && port > 0 && port <= 65535;
}

// Returns the listening socket, or a closed one with errno.
Socket try_to_listen(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return socket;
  enable(socket.get(), SOL_SOCKET, SO_REUSEADDR);  // a port that only lingers is free
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 && listen(socket.get(), kQueued) == 0) return socket;
  const int error = errno;
  socket.close();
  errno = error;
  return socket;
}

[[noreturn]] void refuse_to_listen(const std::string& task, const std::string& text, const std::string& listens,
                                   int error) {
  const std::string where = fmt::format("{} cannot listen at its address {}", task, text);
  if (error == EADDRINUSE) {
    throw UnavailableError(
        fmt::format("{}: the port is taken, by another program or by another process that is {}, too; give the "
                    "task a free port, in the cluster of every task, or end the other process",
                    where, task));
  }
  if (error == EADDRNOTAVAIL) {
    throw UnavailableError(fmt::format(
        "{}: {} is no address of this machine, {}; start {} on the machine of that address, or correct the address or "
        "this task's index (where a service forwards to this machine, TANDEM_TASK_LISTEN=0.0.0.0 listens there)",
        where, listens, host_name(), task));
  }
  throw UnavailableError(fmt::format("{}: {}", where, std::strerror(error)));
}

bool wait_for(int descriptor, short events) {
  pollfd one{.fd = descriptor, .events = events, .revents = 0};
  while (poll(&one, 1, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

bool is_only_busy(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = other.release();
  return *this;
}

int Socket::release() {
  return std::exchange(descriptor_, -1);
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(release());
}

TaskAddress address_of_task(const std::string& task, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  TaskAddress address{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  const bool has_brackets = address.host.starts_with("[") && address.host.ends_with("]");
  if (has_brackets) address.host = address.host.substr(1, address.host.size() - 2);
  const bool has_host = !address.host.empty() && address.host.find('/') == std::string::npos &&
                        (has_brackets || address.host.find(':') == std::string::npos);
  if (has_host && is_port(address.port)) return address;
  throw UnavailableError(
      fmt::format("the address of {} is '{}', must be host:port with a port from 1 to 65535, at which the other tasks "
                  "find it",
                  task, text));
}

Resolved resolve(const TaskAddress& address, std::string& reason) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (error != 0) reason = fmt::format("its host is not known here: {}", gai_strerror(error));
  return {error == 0 ? found : nullptr, [](addrinfo* info) {
            if (info != nullptr) freeaddrinfo(info);
          }};
}

Socket listen_as(const std::string& task, const std::string& text) {
  TaskAddress address = address_of_task(task, text);
  if (const char* host = std::getenv("TANDEM_TASK_LISTEN"); host != nullptr && *host != '\0') address.host = host;
  std::string reason;
  const Resolved resolved = resolve(address, reason);
  if (resolved == nullptr) {
    throw UnavailableError(fmt::format("{} cannot listen at its address {}: {}", task, text, reason));
  }
  int first_error = 0;
  for (int tries = 0; tries < kBindTries; ++tries) {
    first_error = 0;
    for (const addrinfo* one = resolved.get(); one != nullptr; one = one->ai_next) {
      Socket socket = try_to_listen(*one);
      if (socket.is_open()) return socket;
      if (first_error == 0 || errno == EADDRINUSE) first_error = errno;
    }
    if (first_error != EADDRINUSE) break;
    std::this_thread::sleep_for(kBetweenBinds);
  }
  refuse_to_listen(task, text, address.host, first_error);
}

Socket listen_anywhere() {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  enable(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  const auto listens = [&socket](const auto& address) {
    return socket.is_open() && bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
           listen(socket.get(), kQueued) == 0;
  };
  if (listens(six)) return socket;
  socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  if (listens(four)) return socket;
  throw UnavailableError(fmt::format("this rank cannot listen at any port: {}", std::strerror(errno)));
}

std::string port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  std::array<char, 16> port{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV);
  return port.data();
}

Socket begin_connect(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() || connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0 || errno == EINPROGRESS) {
    return socket;
  }
  const int error = errno;
  socket.close();
  errno = error;
  return socket;
}

std::string connection_error(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return std::strerror(error);
  // A connection to a port that nobody listens at may meet itself, if the system has given it that port.
  sockaddr_storage mine{}, other{};
  socklen_t mine_size = sizeof(mine), other_size = sizeof(other);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&mine), &mine_size);
  getpeername(socket.get(), reinterpret_cast<sockaddr*>(&other), &other_size);
  return mine_size == other_size && std::memcmp(&mine, &other, mine_size) == 0 ? std::strerror(ECONNREFUSED) : "";
}

void set_options(const Socket& socket) {
  enable(socket.get(), IPPROTO_TCP, TCP_NODELAY);
  enable(socket.get(), SOL_SOCKET, SO_KEEPALIVE);
}

bool send_all(int descriptor, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(descriptor, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && !is_only_busy(errno)) return false;
    if (sent < 0 && !wait_for(descriptor, POLLOUT)) return false;
    if (sent < 0) continue;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int descriptor, void* data, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t received = recv(descriptor, to, bytes, 0);
    if (received == 0 || (received < 0 && !is_only_busy(errno))) return false;
    if (received < 0 && !wait_for(descriptor, POLLIN)) return false;
    if (received < 0) continue;
    to += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return true;
}

}  // namespace tandem::mpi
