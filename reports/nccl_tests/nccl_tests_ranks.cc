#include "reports/nccl_tests/nccl_tests_ranks.h"

#include <algorithm>

namespace tandem::nccl_tests {

void RankLines::add(const std::vector<Word>& words) {
  const auto pid = number_after<int>(words, "Pid"), rank = number_after<int>(words, "Rank");
  if (!rank || !pid) return;
  std::string host;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text == "on") host = words[i + 1].text;
  }
  ++seen_;
  ends_open_ = false;
  if (*rank >= last_rank_) {
    last_rank_ = *rank;
    last_device_ = number_after<int>(words, "device").value_or(-1);
  }
  hosts_.insert(host);
  ++processes_[{host, *pid}];
}

void RankLines::add_ellipsis(int line) {
  if (seen_ == 0) return;
  ellipsis_line_ = line;
  ends_open_ = true;
}

int RankLines::devices() const {
  if (ends_open_) return 0;
  return has_gaps() ? last_rank_ + 1 : seen_;
}

int RankLines::nodes() const {
  if (!has_gaps()) return static_cast<int>(hosts_.size());
  if (ends_open_) return 0;
  // The first and the last rank are of one machine only if all are.
  if (hosts_.size() == 1) return 1;
  const int of_machine = last_device_ + 1;
  return of_machine > 0 && devices() % of_machine == 0 ? devices() / of_machine : 0;
}

int RankLines::devices_per_process() const {
  int most = 0;
  for (const auto& [process, count] : processes_) most = std::max(most, count);
  const bool is_one_process = has_gaps() && seen_ > 1 && processes_.size() == 1;
  return is_one_process ? devices() : most;
}

}  // namespace tandem::nccl_tests
