// A failure of one process, as the others hear of it: its kind, so that they end as it does, and its message.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "engine/mpi/bytes.h"

namespace tandem::mpi {

struct JobError {
  enum class Kind : std::uint8_t { run, deadlock, deadline, argument, usage, unavailable };
  Kind kind = Kind::run;
  std::string text;
  int rank = -1;  // whose failure it is; -1: nobody's, such as a deadlock

  // Throws what it is about.
  [[noreturn]] void rethrow() const;
  std::exception_ptr exception() const;
};

// Nothing for null, and for the end of a run that was stopped because of another failure.
std::optional<JobError> job_error_of(const std::exception_ptr& error);

void put_error(ByteWriter& bytes, const std::optional<JobError>& error);
std::optional<JobError> get_error(ByteReader& bytes);

}  // namespace tandem::mpi
