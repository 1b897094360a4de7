#include "engine/mpi/transport/tcp_frame.h"

#include <sys/socket.h>

#include "engine/base/bytes.h"
#include "engine/mpi/transport/tcp_socket.h"
#include "engine/mpi/transport/transport.h"

namespace tandem::mpi {

std::string abort_text(int exit_code, const std::string& reason) {
  return ByteWriter().put(exit_code).put_text(reason).take();
}

int code_of_abort(const std::string& text) {
  return ByteReader(text).get<int>();
}

std::string reason_of_abort(const std::string& text) {
  ByteReader bytes(text);
  bytes.get<int>();
  return bytes.get_text();
}

void send_farewell(int descriptor, const std::string& reason) {
  const std::string text = abort_text(kRunFailed, reason);
  const FrameHeader header{.kind = FrameKind::abort, .bytes = text.size()};
  if (send_all(descriptor, &header, sizeof(header))) send_all(descriptor, text.data(), text.size());
}

std::string farewell_on(int descriptor) {
  FrameHeader header;
  if (recv(descriptor, &header, sizeof(header), MSG_DONTWAIT) != sizeof(header)) return "";
  if (header.kind != FrameKind::abort) return "";
  std::string text(static_cast<std::size_t>(header.bytes), 0);
  return receive_all(descriptor, text.data(), text.size()) ? reason_of_abort(text) : "";
}

}  // namespace tandem::mpi
