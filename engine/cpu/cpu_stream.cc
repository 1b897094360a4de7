#include "engine/cpu/cpu_stream.h"

#include <cstring>

#include "engine/cpu/slow_down.h"
#include "engine/kernels/kernels.h"

namespace tandem::cpu {

void CpuStream::synchronize() {
  if (is_empty() && !has_loss_.load() && !context_.control.is_stopped()) {
    note_use();
    worker_.throw_if_failed();
    return;
  }
  record().synchronize();
}

void CpuStream::log(Record record, Nanoseconds start, Nanoseconds end) {
  record.start_ns = start;
  record.end_ns = end;
  log_.add(record);
}

// Occupies its core meanwhile, as work that takes longer would.
void CpuStream::hold_back(Nanoseconds start, double factor) const {
  factor *= 1 + slow_down();
  if (factor != 1) context_.hold_back(start, factor);
}

void CpuStream::execute(Op& op, int step) {
  waiter_.offer_core();
  if (is_lost()) return;
  const Nanoseconds start = context_.now();
  if (!attempt(op.name, threads::After::success, [&] { tandem::execute(op.kernel); })) return;
  hold_back(start, slowdown_at(start, step));
  if (!context_.is_recorded(RecordKind::op)) return;
  const Nanoseconds end = context_.now();
  Record record = make_record(RecordKind::op, op.category, op.name, step);
  record.bytes = op.cost.bytes;
  record.flops = op.cost.flops;
  log(record, start, end);
}

void CpuStream::execute(Copy& copy, int step) {
  waiter_.offer_core();
  const Nanoseconds start = context_.now();
  const std::size_t bytes = copy.to.size_bytes();
  const auto move = [&] {
    if (copy.to.buffer().is_host_accessible() && copy.from.buffer().is_host_accessible()) {
      std::memmove(copy.to.data(), copy.from.data(), bytes);
    } else {
      note_loss(copy.issuer, context_.remote_memory->copy(copy.to, copy.from));
    }
  };
  if (!attempt("copy", threads::After::success, move)) return;
  hold_back(start, 1);
  if (!context_.is_recorded(RecordKind::copy)) return;
  const Nanoseconds end = context_.now();
  Record record = make_record(RecordKind::copy, copy.category, "copy", step);
  record.bytes = static_cast<double>(bytes);
  log(record, start, end);
}

// The next event of the same issuer tells of it.
void CpuStream::note_loss(int issuer, const std::exception_ptr& loss) {
  if (!loss) return;
  losses_[issuer] = loss;
  if (threads::is_issued_here(issuer)) has_loss_.store(true);
}

void CpuStream::execute(Mark& mark, int /*step*/) {
  const auto loss = losses_.find(mark.issuer);
  if (loss == losses_.end()) return mark.event->complete();
  const std::exception_ptr error = loss->second;
  losses_.erase(loss);
  has_loss_.store(!losses_.empty() && threads::is_issued_here(losses_.begin()->first));
  mark.event->complete_with_loss(error);
}

void CpuStream::execute(WaitFor& wait, int /*step*/) {
  if (wait.event->wait_on_stream(waiter_)) note_loss(wait.issuer, wait.event->loss());
}

// Takes part even when an op of this worker has failed, because the other devices wait for it.
void CpuStream::execute(Collective& collective, int step) {
  const Nanoseconds start = context_.now();
  bool took_part = false;
  attempt(collective.call->name(collective.rank), threads::After::anything, [&] { took_part = take_part(collective); });
  if (!took_part || !context_.is_recorded(RecordKind::collective)) return;
  const Nanoseconds end = context_.now();
  log(make_record(collective, step), start, end);
}

}  // namespace tandem::cpu
