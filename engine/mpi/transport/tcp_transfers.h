// The transfers of a connection, as their users look at them.
#pragma once

#include <memory>
#include <utility>

#include "engine/mpi/transport/tcp_arrivals.h"
#include "engine/mpi/transport/tcp_peer.h"
#include "engine/mpi/transport/transport.h"

namespace tandem::mpi {

class SendTransfer final : public Transfer {
 public:
  explicit SendTransfer(std::shared_ptr<Sent> sent) : sent_(std::move(sent)) {}
  bool is_done() override { return sent_->load(); }

 private:
  const std::shared_ptr<Sent> sent_;
};

class ReceiveTransfer final : public Transfer {
 public:
  explicit ReceiveTransfer(std::shared_ptr<Receipt> receipt) : receipt_(std::move(receipt)) {}
  bool is_done() override { return receipt_->is_done.load(); }
  bool has_failed() const override { return receipt_->is_lost.load(); }

 private:
  const std::shared_ptr<Receipt> receipt_;
};

}  // namespace tandem::mpi
