// Counts the devices, machines and processes of a run by the lines "#  Rank  0 Group  0 Pid  4711 on  gpu-a device  0"
// that it prints, some of which may have been left out. For reports/nccl_tests/nccl_tests_reader.cc.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/nccl_tests/nccl_tests_line.h"

namespace tandem::nccl_tests {

class RankLines {
 public:
  void clear() { *this = {}; }
  // Reads the words of one line; one without a rank and a process is left out.
  void add(const std::vector<Word>& words);
  // Notes that lines are left out here.
  void add_ellipsis(int line);

  bool empty() const { return seen_ == 0; }
  int ellipsis_line() const { return ellipsis_line_; }  // 0: no line is left out
  bool has_gaps() const { return ellipsis_line_ > 0 || last_rank_ + 1 > seen_; }
  // Each is 0 where the lines do not say it.
  int devices() const;
  int nodes() const;
  int devices_per_process() const;

 private:
  int seen_ = 0, last_rank_ = -1, ellipsis_line_ = 0;
  int last_device_ = -1;    // of its machine
  bool ends_open_ = false;  // the last lines are left out
  std::set<std::string> hosts_;
  std::map<std::pair<std::string, int>, int> processes_;  // the number of devices of each process
};

}  // namespace tandem::nccl_tests
