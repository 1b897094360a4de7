// The connection to one other task: a thread writes the frames that the socket does not take immediately, and another
// reads what arrives.
//
// Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/mpi/transport/tcp_arrivals.h"
#include "engine/mpi/transport/tcp_socket.h"

namespace tandem::mpi {

// Whether the memory of a frame was sent, and may change.
using Sent = std::atomic<bool>;

class Peer {
 public:
  // What the reading thread does with what is no data.
  struct Handler {
    std::function<void(std::string text)> message;
    std::function<void(const std::string& text)> abort;
    std::function<void()> loss;  // the connection has ended without a goodbye; returns if the job goes on
  };
  Peer(Socket socket, int rank, Arrivals& arrivals, Handler handler);
  ~Peer();  // after say_goodbye() and wait_for_goodbye()
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void send(FrameHeader header, std::string text);
  std::shared_ptr<Sent> send(FrameHeader header, const void* data, std::size_t bytes);
  void wait(const Sent& sent);

  void shut();  // ends the connection: the reading thread tells of the loss, and what is not sent is dropped
  void say_goodbye() { send({.kind = FrameKind::goodbye}, ""); }
  void wait_for_goodbye();  // or for the loss
  // Waits until everything is sent, or the time has come.
  void flush(std::chrono::steady_clock::time_point until);

 private:
  struct Outgoing {
    FrameHeader header;
    std::string text{};
    const std::byte* data = nullptr;  // null: `text`
    std::shared_ptr<Sent> sent{};
    std::size_t written = 0;  // of the header and what follows
  };
  enum class Written : std::uint8_t { all, some, failed };

  void put(Outgoing frame);
  Written write_some(Outgoing& frame) const;
  void write();
  void read();
  bool read_frame(const FrameHeader& header);

  const Socket socket_;
  const int rank_;
  Arrivals& arrivals_;
  const Handler handler_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Outgoing> queue_;
  bool is_broken_ = false, is_ending_ = false, has_said_goodbye_ = false;
  std::shared_ptr<Receipt> incomplete_;  // only the reading thread uses it
  std::thread writer_, reader_;
};

}  // namespace tandem::mpi
