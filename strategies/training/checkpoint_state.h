// The file "checkpoint" of a directory of checkpoints: it names the latest checkpoint and all that are kept, in the
// text form of TensorFlow's CheckpointState. Its first line is a comment with the checksum of the others, which shows
// whether they are whole; a file without it, such as TensorFlow's, is taken as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct KeptCheckpoint {
  std::string name{};  // of the file, relative to the directory
  double saved_s = 0;  // on the clock of the run that saved it
};

struct CheckpointState {
  std::string latest{};                // a name as in `kept`
  std::vector<KeptCheckpoint> kept{};  // oldest first
  double last_preserved_s = 0;         // when the last checkpoint was saved that stays for good
};

std::string state_file_of(const std::string& directory);
// Returns nothing where the directory, or this file in it, is not there. DataLossError, naming the line, for a file of
// another form or with another checksum, and UnknownError for one that cannot be read.
std::optional<CheckpointState> read_checkpoint_state(const std::string& directory);
// Replaces the file in one step. UnknownError when the file system refuses.
void write_checkpoint_state(const std::string& directory, const CheckpointState& state);
// Deletes the file, if it is there. UnknownError when the file system refuses.
void remove_checkpoint_state(const std::string& directory);

}  // namespace tandem
