// What processes say to each other about devices and memory. Messages between two processes are handled in order, so
// what is issued to a device of another process is issued there in order, and memory is released after what uses it.
//
//   to the process of a device                           | back
//   allocate    memory                                   | answer     to a request: an error, or what was asked for
//   release     memory that it has allocated             |
//   memory_use  of the device                            | answer
//   synchronize all streams of the device                | answer
//   fence       nothing but an answer                    | answer
//   launch, copy                                         | completed  where the issuer keeps operands for it
//   record      an event                                 | completed
//   wait_here   for an event recorded there              |
//   wait_gate   for an event of another process          | (from the issuer) open_gate
//   get         values to be sent                        | the values
//   put         values that come                         | put_done
//
//   for tensors that are shared under a name (shared_tensors.h)
//   find, made, not_made, keep, lock, unlock
//
//   mail        a message for a worker's mailbox (mailboxes.h)
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/tensor.h"

namespace tandem::mpi {

enum class RemoteKind : std::uint8_t {
  answer,
  allocate,
  release,
  memory_use,
  synchronize,
  fence,
  launch,
  copy,
  record,
  wait_here,
  wait_gate,
  open_gate,
  completed,
  get,
  put,
  put_done,
  find,
  made,
  not_made,
  keep,
  lock,
  unlock,
  mail
};

// A tensor, as any process can name it.
struct TensorRef {
  int process = 0;
  int device = 0;             // its index in the timeline
  std::uint64_t id = 0;       // of its memory in the table of its process; 0: somebody else keeps it
  std::uint64_t address = 0;  // of the first element
  std::uint64_t offset = 0;   // of the first element in its memory
  DType dtype = DType::f32;
  Shape shape{};

  std::size_t size_bytes() const { return static_cast<std::size_t>(shape.element_count()) * size_of(dtype); }
};

// An answer to whoever has asked, by the number of the request.
struct Reply {
  int to = 0;
  std::uint64_t request = 0;
};

}  // namespace tandem::mpi
