// What tasks send each other over TCP, once they have met: frames of a header and so many bytes. Tasks of one job run
// one build, so a header is sent as it lies in memory.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::mpi {

enum class FrameKind : std::uint8_t {
  message,  // of Transport::post()
  data,     // of a collective or a transfer
  abort,    // the job ends: an exit code and the reason
  goodbye   // nothing more comes from this task
};
// Tells apart what may be on its way between two tasks at the same time. With the group and the tag it says which
// frames come one after the other.
enum class FrameStream : std::uint8_t { none, gather, collective, pair, receiver_chooses, sender_chooses };

struct FrameHeader {
  FrameKind kind = FrameKind::message;
  FrameStream stream = FrameStream::none;
  std::int32_t tag = 0;
  std::uint64_t group = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FrameHeader) == 24, "no padding at its end");

std::string abort_text(int exit_code, const std::string& reason);  // the bytes of an abort frame
int code_of_abort(const std::string& text);
std::string reason_of_abort(const std::string& text);

// Outside of a job that has begun: sends an abort frame, and reads the one that has come, "" if none has.
void send_farewell(int descriptor, const std::string& reason);
std::string farewell_on(int descriptor);

}  // namespace tandem::mpi
