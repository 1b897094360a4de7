#include "engine/mpi/transport/tcp_peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

#include "engine/base/bytes.h"

namespace tandem::mpi {

Peer::Peer(Socket socket, int rank, Arrivals& arrivals, Handler handler)
    : socket_(std::move(socket)), rank_(rank), arrivals_(arrivals), handler_(std::move(handler)) {
  writer_ = std::thread([this] { write(); });
  reader_ = std::thread([this] { read(); });
}

Peer::~Peer() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  writer_.join();
  reader_.join();
}

void Peer::send(FrameHeader header, std::string text) {
  header.bytes = text.size();
  put({.header = header, .text = std::move(text)});
}

std::shared_ptr<Sent> Peer::send(FrameHeader header, const void* data, std::size_t bytes) {
  static const std::byte kNothing{};
  header.bytes = bytes;
  auto sent = std::make_shared<Sent>(false);
  put({.header = header, .data = bytes == 0 ? &kNothing : static_cast<const std::byte*>(data), .sent = sent});
  return sent;
}

void Peer::wait(const Sent& sent) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return sent.load(); });
}

void Peer::put(Outgoing frame) {
  {
    const std::lock_guard lock(mutex_);
    // Small frames usually need no other thread. What cannot be sent is dropped: the reading thread tells of the loss.
    const bool is_first = queue_.empty();
    const Written written = is_broken_ ? Written::failed : is_first ? write_some(frame) : Written::some;
    is_broken_ |= written == Written::failed;
    if (written == Written::some) {
      queue_.push_back(std::move(frame));
    } else if (frame.sent != nullptr) {
      frame.sent->store(true);
    }
  }
  changed_.notify_all();
}

// Writes what the socket takes without waiting.
Peer::Written Peer::write_some(Outgoing& frame) const {
  const std::size_t all = sizeof(FrameHeader) + static_cast<std::size_t>(frame.header.bytes);
  while (frame.written < all) {
    const auto* header = reinterpret_cast<const std::byte*>(&frame.header);
    const auto* body = frame.data != nullptr ? frame.data : reinterpret_cast<const std::byte*>(frame.text.data());
    const std::size_t of_header = std::min(frame.written, sizeof(FrameHeader)), of_body = frame.written - of_header;
    std::array<iovec, 2> parts{
        {{const_cast<std::byte*>(header) + of_header, sizeof(FrameHeader) - of_header},
         {const_cast<std::byte*>(body) + of_body, static_cast<std::size_t>(frame.header.bytes) - of_body}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Written::some : Written::failed;
    frame.written += static_cast<std::size_t>(sent);
  }
  return Written::all;
}

void Peer::write() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Outgoing& frame = queue_.front();  // stays there meanwhile: others only append
    lock.unlock();
    pollfd writable{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    poll(&writable, 1, -1);
    const Written written = write_some(frame);
    lock.lock();
    if (written == Written::some) continue;
    is_broken_ |= written == Written::failed;
    do {
      if (queue_.front().sent != nullptr) queue_.front().sent->store(true);
      queue_.pop_front();
    } while (is_broken_ && !queue_.empty());
    changed_.notify_all();
  }
}

void Peer::read() {
  FrameHeader header;
  while (receive_all(socket_.get(), &header, sizeof(header))) {
    if (header.kind == FrameKind::goodbye) {
      const std::lock_guard lock(mutex_);
      has_said_goodbye_ = true;
      changed_.notify_all();
      return;
    }
    if (!read_frame(header)) break;
  }
  handler_.loss();
  if (incomplete_ != nullptr) arrivals_.fail(*incomplete_);
  const std::lock_guard lock(mutex_);
  is_broken_ = has_said_goodbye_ = true;
  changed_.notify_all();
}

void Peer::shut() {
  shutdown(socket_.get(), SHUT_RDWR);
}

bool Peer::read_frame(const FrameHeader& header) {
  const auto bytes = static_cast<std::size_t>(header.bytes);
  const ArrivalKey key{.from = rank_, .stream = header.stream, .group = header.group, .tag = header.tag};
  const std::shared_ptr<Receipt> receipt = header.kind == FrameKind::data ? arrivals_.waiting(key) : nullptr;
  if (receipt != nullptr) {
    if (receipt->to == nullptr) receipt->text.resize(bytes);
    TANDEM_CHECK(receipt->to == nullptr || receipt->bytes == bytes, "a frame is as long as the memory for it");
    if (!receive_all(socket_.get(), receipt->to == nullptr ? receipt->text.data() : static_cast<void*>(receipt->to),
                     bytes)) {
      incomplete_ = receipt;
      return false;
    }
    arrivals_.finish(*receipt);
    return true;
  }
  std::string text(bytes, 0);
  if (!receive_all(socket_.get(), text.data(), bytes)) return false;
  if (header.kind == FrameKind::data) {
    arrivals_.keep(key, std::move(text));
  } else if (header.kind == FrameKind::abort) {
    handler_.abort(text);
  } else {
    handler_.message(std::move(text));
  }
  return true;
}

void Peer::wait_for_goodbye() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_said_goodbye_; });
}

void Peer::flush(std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [this] { return queue_.empty(); });
}

}  // namespace tandem::mpi
