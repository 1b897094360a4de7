#include "engine/mpi/gathered_records.h"

#include <map>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/mpi/messages/protocol.h"

namespace tandem::mpi {
namespace {

void put_record(ByteWriter& bytes, const Record& record) {
  bytes.put(record.kind).put(record.category).put_text(record.name);
  bytes.put(record.worker).put(record.device).put(record.stream).put(record.step);
  bytes.put(record.start_ns).put(record.end_ns).put(record.bytes).put(record.flops);
  bytes.put(record.ranks).put(record.calls).put(record.sequence).put_text(record.algorithm);
}

Record get_record(ByteReader& bytes) {
  Record record;
  record.kind = bytes.get<RecordKind>();
  record.category = bytes.get<Category>();
  record.name = bytes.get_text();
  record.worker = bytes.get<int>();
  record.device = bytes.get<int>();
  record.stream = bytes.get<int>();
  record.step = bytes.get<int>();
  record.start_ns = bytes.get<Nanoseconds>();
  record.end_ns = bytes.get<Nanoseconds>();
  record.bytes = bytes.get<double>();
  record.flops = bytes.get<double>();
  record.ranks = bytes.get<int>();
  record.calls = bytes.get<int>();
  record.sequence = bytes.get<std::int64_t>();
  record.algorithm = bytes.get_text();
  return record;
}

}  // namespace

std::vector<Record> gather_records(Transport& transport, const std::vector<Record>& mine,
                                   std::vector<AlignedClock>& clocks) {
  ByteWriter bytes;
  bytes.put_list(clocks).put(static_cast<std::uint64_t>(mine.size()));
  for (const Record& record : mine) put_record(bytes, record);
  const std::vector<std::string> texts = transport.gather(bytes.take());
  std::vector<Record> records;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].empty()) continue;
    ByteReader read(texts[rank]);
    std::vector<AlignedClock> known = read.get_list<AlignedClock>();
    if (rank == 0) clocks = std::move(known);
    const AlignedClock& clock = clocks.at(rank);
    for (auto left = read.get<std::uint64_t>(); left > 0; --left) {
      Record& record = records.emplace_back(get_record(read));
      record.start_ns = clock.on_rank_0(record.start_ns);
      record.end_ns = clock.on_rank_0(record.end_ns);
      // Calls that a process counts by itself are different calls in each process, so they get different numbers.
      if (record.kind == RecordKind::collective && !spans_processes(record.sequence)) {
        record.sequence = record.sequence * static_cast<std::int64_t>(texts.size()) + static_cast<std::int64_t>(rank);
      }
    }
  }
  sort_records(records);
  std::map<std::int64_t, std::int64_t> numbers;
  for (Record& record : records) {
    if (record.kind != RecordKind::collective) continue;
    record.sequence = numbers.emplace(record.sequence, static_cast<std::int64_t>(numbers.size())).first->second;
  }
  return records;
}

}  // namespace tandem::mpi
