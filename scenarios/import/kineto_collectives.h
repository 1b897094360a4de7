// Which kernels of a Kineto trace are collectives, of how many bytes and among whom.
#pragma once

#include <map>
#include <vector>

#include "scenarios/import/kineto_events.h"
#include "scenarios/import/trace.h"

namespace tandem {

class KinetoCollectives {
 public:
  KinetoCollectives(const KinetoEvents& events, RankTrace& trace);

  // Makes a collective of a kernel whose facts are known, on it or on the host's operation that launched it. A kernel
  // of a communication library without them keeps its recorded time.
  void complete(const KinetoEvents::Work& work, TraceOp& op);
  // Notes what is not known.
  void finish();

 private:
  const CollectiveFacts* facts_of(const KinetoEvents::Work& work) const;
  bool set_kind(const CollectiveFacts& facts, TraceOp& op) const;
  int group_of(const CollectiveFacts& facts);

  const KinetoEvents& events_;
  RankTrace& trace_;
  std::map<std::vector<int>, int> groups_;
  std::int64_t unknown_ = 0;
};

}  // namespace tandem
