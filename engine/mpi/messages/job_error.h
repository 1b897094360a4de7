// A failure of one process as the others learn of it: its message, and its kind, so that they end in the same way.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace tandem::mpi {

// A rank was lost, and the job goes on.
class LostRankError : public UnavailableError {
 public:
  LostRankError(const std::string& text, int rank) : UnavailableError(text), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

struct JobError {
  enum class Kind : std::uint8_t { run, deadlock, deadline, argument, usage, unavailable, lost };
  Kind kind = Kind::run;
  std::string text;
  int rank = -1;  // whose failure it is, or which rank was lost; -1: nobody's, such as a deadlock

  // Throws the error that this describes.
  [[noreturn]] void rethrow() const;
  std::exception_ptr exception() const;
};

// Describes an exception. Returns nothing for null, and for RunStopped, which another failure has caused.
std::optional<JobError> job_error_of(const std::exception_ptr& error);

void put_error(ByteWriter& bytes, const std::optional<JobError>& error);
std::optional<JobError> get_error(ByteReader& bytes);

}  // namespace tandem::mpi
