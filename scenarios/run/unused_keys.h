// Names what a user wrote that had no say in a run, so that nothing is silently unused.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/run/report.h"
#include "scenarios/job/job.h"

namespace tandem {

// Keys, or flags of the command line, and the reasons why they have no effect.
class UnusedKeys {
 public:
  void add(const std::string& key, const std::string& why) { add(key, why, "has no effect here: "); }
  // Likewise where it cannot be excluded that the key has one.
  void add_doubtful(const std::string& key, const std::string& why) { add(key, why, "may have no effect here: "); }
  // Returns a note for each reason, in the order in which they were added: "has no effect here: KEY, KEY: why".
  std::vector<std::string> notes() const;

 private:
  struct Reason {
    std::string opening, keys, why;
  };
  void add(const std::string& key, const std::string& why, const char* opening);

  std::vector<Reason> reasons_;
};

using Consulted = std::set<std::string>;  // Timeline::consulted

// Add what had no effect in the run that left this report and timeline: keys of its scenario, or the flags that took
// their place (Scenario::flags); NCCL's variables, whose keys `key_of` returns; and keys of a cluster.
void find_unused_keys(const Job& job, const Report& report, const Timeline& timeline, UnusedKeys& unused);
void find_unused_variables(const std::map<std::string, std::string>& nccl, const Consulted& consulted,
                           const std::function<std::string(const std::string&)>& key_of, UnusedKeys& unused);
void find_unused_keys(const Topology& topology, const Consulted& consulted, UnusedKeys& unused);

// Returns whether workers of the job are so many alike that some may represent others. A run then does not see which
// links the others use.
bool may_have_representatives(const Job& job);
// Returns `consulted` with every figure of a link that somebody wrote.
Consulted with_links_of(const Topology& topology, Consulted consulted);

// Leaves out of the notes of two runs of one scenario those on keys of which the other run has a use.
void keep_unused_in_both(std::vector<std::string>& notes, std::vector<std::string>& others);

// Returns whether a note is one of these.
bool is_about_unused_keys(std::string_view note);

}  // namespace tandem
