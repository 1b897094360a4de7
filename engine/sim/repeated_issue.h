// Work that a device repeats (Device::repeat()): what the program has issued once is issued again without it, and takes
// the times that it took before, where nothing else can change them.
//
//   state      entered by                                   what happens
//   queued     RepeatedWork::issue()                        a part is in each stream that the work uses
//   stepwise   the first stream comes to its part, and      the parts are replaced by their items, which run one by
//              times are not known or may be others         one; if nothing disturbed them, their times are kept
//   together   the first stream comes to its part           each stream goes on when its part would have ended, and
//                                                           the records of the kept times are added in the end
//   stepwise   a collective of another stream begins,       what would have begun by now ends when it would have ended;
//              which slows down what starts after it        the other items run one by one
//
// Work is issued each time if it has ops on two streams, which share the device, or if another stream than the first
// one begins without waiting for an event of the work.
//
// Times may be others at the start if the work before a part has not ended, if a collective of another stream slows the
// device down, or if the host has issued something later, in relation to the start, than the device was ready for it.
// Transfers that share links with the collectives of the work do not disturb what runs together, nor does it disturb
// them: that is the error of EngineOptions::merges_repeats.
//
// Called in SimGrid's kernel only (see simulation.h), unless a function says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "engine/collective.h"
#include "engine/device.h"
#include "engine/sim/stream_work.h"
#include "engine/timeline.h"

namespace tandem::sim {

class CollectiveGroup;
class SimDevice;

// An item of the work: what one call of a Stream or a Communicator issues to one stream.
struct RepeatedItem {
  enum class Kind : std::uint8_t { op, collective, record, wait };
  Kind kind{};
  SimStream* stream = nullptr;
  double issued_s = 0;                // after the beginning
  Record record{};                    // op, collective
  double seconds = 0, alone_s = 0;    // op, as OpWork has them
  CollectiveGroup* group = nullptr;   // collective
  int caller = 0, rank = 0;           // collective
  CollectiveSpec spec{};              // collective
  std::shared_ptr<SimEvent> event{};  // record, wait: that of the first time

  bool has_record() const { return kind == Kind::op || kind == Kind::collective; }
  bool slows_ops() const;
};

// Called from the device's task, unless a function says otherwise.
class RepeatedWork : public tandem::RepeatedWork::State, public std::enable_shared_from_this<RepeatedWork> {
 public:
  // The host begins to issue the work for the first time; calls of add() follow, then end().
  explicit RepeatedWork(SimDevice& device);

  void add(RepeatedItem item);  // issued_s is the date
  void end();
  // Issues what was added so far, one by one, because something follows that cannot be repeated. Also called by tasks
  // of other devices that take part in a collective.
  void spoil();
  bool is_spoilt() const { return is_spoilt_; }
  // Whether the event is one of the work.
  bool has(const SimEvent& event) const;
  // Issues all items, of which the host issues the first one at `began_s`.
  void issue(double began_s);
  double began_s() const { return began_s_; }
  double host_s() const { return host_s_; }  // how long the host issues

 private:
  friend class RepeatedIssue;
  // The items of a stream.
  struct Part {
    SimStream* stream = nullptr;
    std::vector<std::size_t> items{};
  };
  // When an item started and ended, after the start of the first part, and what was recorded of it.
  struct ItemTime {
    double start_s = 0, end_s = 0;
    Record record{};  // its times as well; its sequence number counts the calls of the work
  };
  // Times that nothing disturbed.
  struct Times {
    std::vector<ItemTime> items{};
    std::vector<double> ends_s{};  // of the parts
    std::int64_t calls = 0;
    double lead_s = 0;  // the first item must have been issued so much earlier than the work starts
  };

  SimDevice& device_;
  double began_s_ = 0, host_s_ = 0;  // the first time: its date, and how long the task issued
  std::vector<RepeatedItem> items_;
  std::vector<Part> parts_;  // the first is that of the first item
  int slowing_ = 0;          // items that slow ops down
  bool is_spoilt_ = false;
  std::unique_ptr<const Times> times_;  // null: not known
};

// One time.
class RepeatedIssue : public RecordListener, public std::enable_shared_from_this<RepeatedIssue> {
 public:
  // The host begins to issue at `issued_s`.
  RepeatedIssue(std::shared_ptr<RepeatedWork> work, double issued_s, int step);

  // A stream comes to its part, and to the part's end.
  void arrive(std::size_t part);
  void end(std::size_t part);
  // A collective of another stream begins, while the work runs together.
  void disturb();
  void ended(const Record& record) override;

 private:
  struct Place {
    bool has_arrived = false, has_ended = false;
    std::vector<std::unique_ptr<StreamWork>> items{};  // stepwise, until the stream has come to them
    double ended_s = 0;
  };
  // An item that has ended.
  struct Ended {
    Record record;
    double end_s = 0;
  };
  SimStream& stream_of(std::size_t part) const { return *work_->parts_[part].stream; }
  void start();
  bool can_run_together() const;
  void run_together();
  void end_together(std::size_t part);
  void run_stepwise();
  // Makes the items that have not ended `after_s` after the start, in a run that was together until then; all of them
  // without a date.
  void make_items(std::optional<double> after_s);
  std::set<std::int64_t> calls_begun(double after_s) const;
  Record record_at(const RepeatedWork::ItemTime& time) const;
  void add_records(double until_s) const;
  void keep_times();
  bool find_times(std::size_t part, RepeatedWork::Times& times);

  const std::shared_ptr<RepeatedWork> work_;
  const double issued_s_;
  const int step_;
  std::vector<Place> places_;
  bool is_stepwise_ = false;
  double start_s_ = 0;
  Nanoseconds start_ns_ = 0;
  std::int64_t first_call_ = 0;  // of a run together: the number of its first call
  std::size_t under_way_;        // parts
  // In a stepwise run:
  bool is_disturbed_ = false;
  std::int64_t slowed_before_ = 0, slowed_after_ = 0;  // SimDevice::collectives_begun() at the start and at the end
  double ended_s_ = -1;                                // when the last part did
  std::vector<Ended> ended_;
};

}  // namespace tandem::sim
