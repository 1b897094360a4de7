// A stream's part in a collective or a point-to-point transfer.
#pragma once

#include "engine/sim/collectives/collective_group.h"

namespace tandem::sim {

class CollectiveWork : public StreamWork {
 public:
  CollectiveWork(std::shared_ptr<CollectiveCall> call, int rank, Record record, std::optional<double> timeout_s)
      : call_(std::move(call)), rank_(rank), record_(std::move(record)), timeout_s_(timeout_s) {}
  void start(SimStream& stream) override;
  std::string text() const override { return call_->text(); }
  bool starts_before_issue() const override { return true; }  // the call waits for the last issue, once for all

 private:
  std::shared_ptr<CollectiveCall> call_;
  int rank_;
  Record record_;
  std::optional<double> timeout_s_;
};

class PairWork : public StreamWork {
 public:
  PairWork(std::shared_ptr<PairCall> pair, bool is_sender, Tensor tensor, Record record, const SimDevice& peer,
           std::optional<double> timeout_s)
      : pair_(std::move(pair)),
        is_sender_(is_sender),
        tensor_(std::move(tensor)),
        record_(std::move(record)),
        peer_(peer),
        timeout_s_(timeout_s) {}
  void start(SimStream& stream) override;
  std::string text() const override;

 private:
  void miss_deadline(const SimDevice& self) const;

  std::shared_ptr<PairCall> pair_;
  bool is_sender_;
  Tensor tensor_;
  Record record_;
  const SimDevice& peer_;
  std::optional<double> timeout_s_;
};

}  // namespace tandem::sim
