// A command that is sent a signal while it runs.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::kills {

struct Death {
  int exit_code = -1;        // of a process ended by a signal: 128 + its number
  bool was_sent = false;     // the signal came before the end
  bool had_handler = false;  // the signal came after the program had installed its handler
  double seconds = 0;  // from the signal to the end of the process and of its children; of the run without a signal
};

class Victim {
 public:
  // Starts the program in `folder`, in a process group of its own. Its output goes to <name>.out and <name>.err there.
  Victim(const std::filesystem::path& folder, const std::vector<std::string>& arguments, const std::string& name = "v");
  ~Victim();  // kills what is left
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  // Sends the signal `after_s` seconds after the start, and waits for the end. 0: sends none.
  Death end(int signal, double after_s);

 private:
  bool has_ended(int& status) const;
  void wait_for_children() const;

  pid_t id_ = 0;
  double began_s_ = 0;
  bool is_collected_ = false;
};

}  // namespace tandem::kills
