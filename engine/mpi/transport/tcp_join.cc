#include "engine/mpi/transport/tcp_join.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/mpi/transport/tcp_frame.h"
#include "engine/mpi/transport/transport.h"
#include "topologies/base/error.h"

namespace tandem::mpi {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kHello = "tandem-task/1";
constexpr std::string_view kAccepted = "ok";
constexpr std::string_view kRefused = "refused: ";
constexpr int kHelloLines = 4;
constexpr std::size_t kLongestHello = 1 << 20;
constexpr int kBetweenLooks_ms = 50;
constexpr auto kRetry = std::chrono::milliseconds(200);
constexpr auto kAnswer = std::chrono::seconds(10);  // how long a connection may stay without a word
constexpr auto kFirstNews = std::chrono::seconds(2), kNews = std::chrono::seconds(30);

// What all tasks must have in common, in one line.
std::string cluster_text(const TaskList& tasks) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < tasks.names.size(); ++i) all.push_back(tasks.names[i] + " " + tasks.addresses[i]);
  std::string text = fmt::format("{}", fmt::join(all, ", "));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::optional<int> number_in(const std::string& text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && last == end ? std::optional(number) : std::nullopt;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

// A connection that is not a task's yet.
struct Attempt {
  Socket socket;
  int rank = -1;  // to which it leads; -1: from a task that will say who it is
  bool is_connecting = false;
  bool is_over = false;
  std::string received{};
  steady_clock::time_point since = steady_clock::now();
};

class Meeting {
 public:
  Meeting(const TaskList& tasks, double timeout_s, Socket listener)
      : tasks_(tasks),
        cluster_(cluster_text(tasks)),
        timeout_s_(timeout_s),
        others_(tasks.names.size()),
        sockets_(tasks.names.size()),
        listener_(std::move(listener)) {
    for (std::size_t rank = 0; rank < others_.size(); ++rank) {
      others_[rank].address = address_of_task(tasks.names[rank], tasks.addresses[rank]);
    }
    if (!listener_.is_open()) listener_ = listen_as(tasks.names.at(mine()), tasks.addresses.at(mine()));
  }

  TaskSockets run() {
    try {
      while (!missing().empty()) {
        begin_attempts();
        look();
        attempts_.remove_if([](const Attempt& attempt) { return attempt.is_over; });
        check_signal();
        tell_news();
        check_time();
      }
    } catch (const Error& error) {
      say_goodbye(error.what());
      throw;
    }
    sockets_[mine()] = std::move(listener_);
    return std::move(sockets_);
  }

 private:
  struct Other {
    TaskAddress address{};
    steady_clock::time_point next{};
    int tries = 0;
    std::string reason{};  // why it was not reached
  };

  std::size_t mine() const { return static_cast<std::size_t>(tasks_.index); }
  std::string place(int rank) const { return place_of_task(tasks_, rank); }
  Other& other(int rank) { return others_[static_cast<std::size_t>(rank)]; }
  Socket& socket_to(int rank) { return sockets_[static_cast<std::size_t>(rank)]; }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < sockets_.size(); ++rank) {
      if (rank != mine() && !sockets_[rank].is_open()) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }

  void begin_attempts() {
    for (const int rank : missing()) {
      if (rank > tasks_.index || steady_clock::now() < other(rank).next) continue;
      const auto leads_there = [rank](const Attempt& attempt) { return attempt.rank == rank; };
      if (std::any_of(attempts_.begin(), attempts_.end(), leads_there)) continue;
      other(rank).next = steady_clock::now() + kRetry;
      const Resolved resolved = resolve(other(rank).address, other(rank).reason);
      if (resolved == nullptr) continue;
      Socket socket = begin_connect(nth(*resolved, other(rank).tries++));
      if (!socket.is_open()) other(rank).reason = std::strerror(errno);
      if (socket.is_open()) attempts_.push_back({.socket = std::move(socket), .rank = rank, .is_connecting = true});
    }
  }
  // A host may have several addresses, which have their turns.
  static const addrinfo& nth(const addrinfo& first, int n) {
    int count = 0;
    for (const addrinfo* one = &first; one != nullptr; one = one->ai_next) ++count;
    const addrinfo* one = &first;
    for (int left = n % count; left > 0; --left) one = one->ai_next;
    return *one;
  }

  // Waits a moment for something to happen on any connection.
  void look() {
    std::vector<pollfd> polled{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    std::vector<Attempt*> attempts;
    for (Attempt& attempt : attempts_) {
      attempts.push_back(&attempt);
      polled.push_back({.fd = attempt.socket.get(),
                        .events = static_cast<short>(attempt.is_connecting ? POLLOUT : POLLIN),
                        .revents = 0});
    }
    for (const Socket& socket : sockets_) {
      polled.push_back({.fd = socket.get(), .events = POLLRDHUP, .revents = 0});
    }
    if (poll(polled.data(), polled.size(), kBetweenLooks_ms) < 0) return;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (polled[1 + i].revents != 0) go_on(*attempts[i]);
      if (steady_clock::now() - attempts[i]->since > kAnswer) give_up(*attempts[i], "it does not answer");
    }
    for (std::size_t rank = 0; rank < sockets_.size(); ++rank) {
      if (sockets_[rank].is_open() && polled[1 + attempts.size() + rank].revents != 0)
        note_loss(static_cast<int>(rank));
    }
    if (polled.front().revents != 0) accept_some();
  }

  void accept_some() {
    for (;;) {
      Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) return;
      attempts_.push_back({.socket = std::move(socket)});
    }
  }

  void give_up(Attempt& attempt, const std::string& reason) {
    attempt.is_over = true;
    if (attempt.rank >= 0) other(attempt.rank).reason = reason;
  }

  void go_on(Attempt& attempt) {
    if (attempt.is_connecting) return introduce(attempt);
    // One byte at a time, because what follows the last line is for others.
    for (char byte = 0; !attempt.is_over;) {
      const ssize_t received = recv(attempt.socket.get(), &byte, 1, 0);
      if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (received <= 0) return give_up(attempt, "it has ended the connection");
      attempt.received += byte;
      if (attempt.received.size() > kLongestHello)
        return give_up(attempt, "what listens there is no task of this kind");
      if (byte != '\n') continue;
      if (attempt.rank >= 0) return take_answer(attempt);
      if (!is_hello(attempt.received)) return give_up(attempt, "");
      if (lines_of(attempt.received).size() == kHelloLines) return answer(attempt);
    }
  }

  void introduce(Attempt& attempt) {
    if (const std::string error = connection_error(attempt.socket); !error.empty()) return give_up(attempt, error);
    attempt.is_connecting = false;
    const std::string hello = fmt::format("{}\n{}\n{}\n{}\n", kHello, tasks_.index, attempt.rank, cluster_);
    if (!send_all(attempt.socket.get(), hello.data(), hello.size())) give_up(attempt, "it has ended the connection");
  }

  static bool is_hello(const std::string& received) { return lines_of(received).front() == kHello; }

  // Decides about a task that has introduced itself.
  void answer(Attempt& attempt) {
    const std::vector<std::string> lines = lines_of(attempt.received);
    const int rank = number_in(lines[1]).value_or(-1);
    const bool is_known = rank >= 0 && rank < static_cast<int>(sockets_.size());
    if (lines[3] != cluster_) {
      const std::string who = is_known ? tasks_.names[static_cast<std::size_t>(rank)] : "a task of another cluster";
      const std::string reason = fmt::format(
          "{} and a process that connects to it as {} have different clusters in TF_CONFIG: {} here, and "
          "there {}; all tasks of a job have the same",
          place(tasks_.index), who, cluster_, lines[3]);
      refuse(attempt, reason);
      throw RunError(reason);
    }
    if (!is_known || number_in(lines[2]) != tasks_.index) {
      return refuse(attempt, fmt::format("{} is reached at the address of another task", place(tasks_.index)));
    }
    if (rank == tasks_.index || socket_to(rank).is_open()) {
      return refuse(
          attempt, fmt::format("two processes are {}; each process has an index of its own in TF_CONFIG", place(rank)));
    }
    const std::string text = std::string(kAccepted) + "\n";
    if (!send_all(attempt.socket.get(), text.data(), text.size())) return give_up(attempt, "");
    take(rank, attempt);
  }

  void refuse(Attempt& attempt, const std::string& reason) {
    const std::string text = std::string(kRefused) + reason + "\n";
    send_all(attempt.socket.get(), text.data(), text.size());
    attempt.is_over = true;
  }

  void take_answer(Attempt& attempt) {
    const std::string line = lines_of(attempt.received).front();
    if (line == kAccepted) return take(attempt.rank, attempt);
    if (line.starts_with(kRefused)) throw RunError(line.substr(kRefused.size()));
    give_up(attempt, "what listens there is no task of this kind");
  }

  void take(int rank, Attempt& attempt) {
    set_options(attempt.socket);
    socket_to(rank) = std::move(attempt.socket);
    attempt.is_over = true;
  }

  // A task has ended before all were there: with a reason, or it may be started again.
  void note_loss(int rank) {
    const std::string reason = farewell_on(socket_to(rank).get());
    socket_to(rank).close();
    if (!reason.empty()) throw RunError(reason);
    other(rank).reason = "it has ended before all tasks were there";
  }

  void say_goodbye(const std::string& reason) {
    for (const Socket& socket : sockets_) {
      if (socket.is_open()) send_farewell(socket.get(), reason);
    }
  }

  std::string missing_text() const {
    std::vector<std::string> places;
    for (const int rank : missing()) {
      const std::string& reason = others_[static_cast<std::size_t>(rank)].reason;
      places.push_back(place(rank) + (reason.empty() ? "" : fmt::format(" ({})", reason)));
    }
    return fmt::format("{}", fmt::join(places, " and "));
  }

  void tell_news() {
    const steady_clock::time_point now = steady_clock::now();
    if (now < news_at_) return;
    const std::vector<int> waits_for = missing();
    if (waits_for.empty() || (waits_for == told_ && now < repeat_at_)) return;
    told_ = waits_for;
    news_at_ = now + kFirstNews;
    repeat_at_ = now + kNews;
    std::fputs(fmt::format("tandem: {} waits for {}\n", place(tasks_.index), missing_text()).c_str(), stderr);
  }

  void check_time() const {
    if (steady_clock::now() - begin_ < std::chrono::duration<double>(timeout_s_) || missing().empty()) return;
    throw RunError(
        fmt::format("{} has waited {:g} s for {}; start each task of the cluster, with its own index in TF_CONFIG, or "
                    "correct its address",
                    place(tasks_.index), timeout_s_, missing_text()));
  }

  void check_signal() const {
    const int signal = signal_to_job();
    if (signal == 0) return;
    std::fputs(fmt::format("tandem: {} was interrupted (SIG{}) before all tasks had begun\n", place(tasks_.index),
                           sigabbrev_np(signal))
                   .c_str(),
               stderr);
    _exit(kInterrupted);
  }

  const TaskList& tasks_;
  const std::string cluster_;
  const double timeout_s_;
  const steady_clock::time_point begin_ = steady_clock::now();
  std::vector<Other> others_;  // by rank
  TaskSockets sockets_;        // by rank
  Socket listener_;
  std::list<Attempt> attempts_;
  std::vector<int> told_;  // of which missing tasks the user knows
  steady_clock::time_point news_at_ = begin_ + kFirstNews, repeat_at_ = begin_;
};

}  // namespace

TaskSockets meet_tasks(const TaskList& tasks, double timeout_s, Socket listener) {
  return Meeting(tasks, timeout_s, std::move(listener)).run();
}

std::string place_of_task(const TaskList& tasks, int rank) {
  const auto i = static_cast<std::size_t>(rank);
  return fmt::format("{} at {}", tasks.names.at(i), tasks.addresses.at(i));
}

}  // namespace tandem::mpi
