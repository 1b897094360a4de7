// Finds which kernels of a Kineto trace are collectives, of how many bytes and among which ranks.
#pragma once

#include <map>
#include <vector>

#include "scenarios/import/traces/kineto_events.h"
#include "scenarios/import/traces/trace.h"

namespace tandem {

class KinetoCollectives {
 public:
  KinetoCollectives(const KinetoEvents& events, RankTrace& trace);

  // Turns a kernel into a collective if its facts are known, from the kernel or from the host's operation that launched
  // it. A kernel of a communication library without such facts keeps its recorded time.
  void complete(const KinetoEvents::Work& work, TraceOp& op);
  // Notes what is unknown.
  void finish();

 private:
  const CollectiveFacts* facts_of(const KinetoEvents::Work& work) const;
  bool set_kind(const CollectiveFacts& facts, TraceOp& op) const;
  int group_of(const CollectiveFacts& facts, const FilePlace& place);

  const KinetoEvents& events_;
  RankTrace& trace_;
  std::map<std::vector<int>, int> groups_;
  std::int64_t unknown_ = 0;
};

}  // namespace tandem
