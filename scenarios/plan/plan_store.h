// What is known of the points of a plan's space, whichever process found it out, in this search or an earlier one, and
// the results files that keep it (sweep/rank_files.h). Of several ranks, the first one copies to its file what the
// others have written.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/plan/plan_lines.h"
#include "scenarios/sweep/point_places.h"
#include "scenarios/sweep/rank_files.h"
#include "scenarios/sweep/results_file.h"

namespace tandem {

class PlanStore {
 public:
  // What becomes known, by place. They must not throw.
  struct Events {
    std::function<void(std::size_t place, const KeptOfPlan& seen)> seen;
    std::function<void(std::size_t place, const SweptPoint& point)> simulated;  // quickly
    std::function<void(std::size_t place, const std::string& why)> lost;        // by another rank, in this search
  };

  // Without results, nothing is kept after the search. Throws what RankFiles does.
  PlanStore(const SweepSpace& space, const std::vector<SweepSpace::Point>& points, std::filesystem::path results,
            Rank rank, Events events);

  // Reads what earlier searches have kept, except what they lost, and begins to keep more. Throws what ResultsFile
  // does, and what `tick` throws.
  void open(const std::function<void()>& tick, const std::function<void(const std::string&)>& note);
  const RankFiles& ranks() const { return ranks_; }
  const std::vector<std::string>& files() const { return places_.files(); }  // hashes, by place

  // Takes what other ranks have written since.
  void hear();
  // Whether the first rank has ended, which then removes the file of this one.
  bool is_over() const;
  // Ends the files of a search: the first one's has all that the others have.
  void close();

  // Null where nothing is known.
  const SweptPoint* quick(std::size_t place) const { return found(quick_, place); }
  const SweptPoint* whole(std::size_t place) const { return found(whole_, place); }
  // The scenario as it is, with these values of the point at `place`.
  const SweptPoint* variant(const SweepSpace::Values& values, std::size_t place) const {
    return found(variants_, {files_of(values, place), values});
  }
  double given_up_after_s(std::size_t place) const;  // a whole simulation; 0: none was

  void add_seen(const std::string& lines);  // of GroupViewer
  void add_quick(std::size_t place, const std::string& line);
  void add_whole(std::size_t place, SweptPoint point);
  void add_given_up(std::size_t place, double seconds);
  void add_variant(const SweepSpace::Values& values, std::size_t place, SweptPoint point);
  // Tells other ranks that a point will not come from this one.
  void lose(std::size_t place, const std::string& why, bool is_seen);

 private:
  using Variant = std::pair<std::string, SweepSpace::Values>;  // the hash of files first

  template <typename Key>
  static const SweptPoint* found(const std::map<Key, SweptPoint>& points, const Key& key) {
    const auto one = points.find(key);
    return one == points.end() ? nullptr : &one->second;
  }
  void take(const StoredPoints& stored, bool is_old);
  void take_quick(const StoredPoint& stored, bool is_old);
  bool take_of_plan(const LineOfPlan& line, bool is_old);
  void keep(const std::string& lines);
  void keep(std::size_t place, KeptOfPlan kept);
  SweepSpace::Values values_of(std::size_t place) const { return space_.values(points_[place]); }
  std::string files_of(const SweepSpace::Values& values, std::size_t place) const {
    return values.empty() ? "" : files()[place];
  }

  const SweepSpace& space_;
  const std::vector<SweepSpace::Point>& points_;
  SweepIdentity identity_;
  PointPlaces places_;
  RankFiles ranks_;
  Events events_;
  bool copies_ = false;  // what is heard to the file of this rank
  std::unique_ptr<ResultsFile> file_{};
  bool is_empty_ = true;  // the file of this rank
  std::map<std::size_t, SweptPoint> quick_{}, whole_{};
  std::map<Variant, SweptPoint> variants_{};
  std::map<std::size_t, double> given_up_{};
  std::vector<bool> is_seen_;
};

}  // namespace tandem
