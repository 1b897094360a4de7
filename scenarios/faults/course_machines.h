// The machines of a job that come and go: the places of its workers, and those that are free.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scenarios/faults/fault_settings.h"

namespace tandem {

class CourseMachines {
 public:
  // `spares`: free machines without a name; `uses_free_ones`: whether a free machine takes the place of a lost one;
  // `come_by_name`: there is no other machine than those that node_comes() names.
  CourseMachines(int workers, int spares, bool uses_free_ones, bool come_by_name);

  int lost() const { return lost_; }  // places without a machine
  bool is_up(int worker) const { return places_[static_cast<std::size_t>(worker)].is_up; }

  // Each returns whether a place of the job has lost its machine, or has one again.
  bool lose(int worker);
  bool come_back(int worker);
  // A machine of a trace takes an empty place, or is free. One that goes and was never named is a machine of the job.
  bool node_comes(const std::string& node);
  bool node_goes(const std::string& node);

  void fill_places();

 private:
  struct Place {
    bool is_up = true;
    std::string node{};  // of a trace, that has it
  };
  Place* place_of(const std::string& node);
  bool take(Place& place);                           // its machine; returns whether it had one
  bool give(Place& place, const std::string& node);  // returns whether it had none

  std::vector<Place> places_;
  int lost_ = 0;
  int spares_;
  const bool uses_free_ones_, come_by_name_;
  std::set<std::string> free_nodes_;
};

}  // namespace tandem
