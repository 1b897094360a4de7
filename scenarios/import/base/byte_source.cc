#include "scenarios/import/base/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include "engine/base/run_phase.h"
#include "topologies/base/error.h"
#include "topologies/base/machine_memory.h"

namespace tandem {
namespace {

constexpr std::size_t kPiece = 256 * 1024;
// Traces pack 10 to 60 times; deflate ends at about 1,032.
constexpr std::int64_t kLikelyRatio = 300;
constexpr std::int64_t kUnsuspicious = std::int64_t{64} << 20;
constexpr std::int64_t kMostUnpacked = std::int64_t{16} << 30;
constexpr std::int64_t kBetweenEstimates = std::int64_t{4} << 20;  // bytes of the file
// Resident memory of `tandem import` (/usr/bin/time), 2026-11-25: a Kineto trace of 169 MB, 600,000 kernels and as many
// launches, took 485 MB.
constexpr double kMemoryOfAByte = 3;
constexpr int kGzipWindow = 15 + 16;  // zlib's number for gzip with the largest window

}  // namespace

ByteSource::ByteSource(const InputFile& file, Reads reads) : file_(file), name_(file.name()), reads_(reads) {
  begin();
}

ByteSource::ByteSource(const std::filesystem::path& file, Reads reads)
    : own_(file), file_(*own_), name_(file.string()), reads_(reads) {
  begin();
}

void ByteSource::begin() {
  packed_.resize(kPiece);
  held_ = read();
  if (held_ >= 2 && packed_[0] == '\x1f' && packed_[1] == '\x8b') begin_unpacking();
}

ByteSource::~ByteSource() {
  if (inflate_) inflateEnd(inflate_.get());
}

void ByteSource::fail(const std::string& message, std::int64_t byte) {
  has_failed_ = true;
  throw InputError({problem_at(name_, {.byte = byte}, message)});
}

void ByteSource::fail_here(const std::string& message) {
  fail(message, read_bytes_ - static_cast<std::int64_t>(inflate_->avail_in));
}

std::size_t ByteSource::read() {
  has_failed_ = true;  // unless it returns
  const std::size_t count = file_.read(read_bytes_, packed_);
  has_failed_ = false;
  read_bytes_ += static_cast<std::int64_t>(count);
  if (reads_ == Reads::beginning) return count;
  if (read_bytes_ / kBetweenEstimates > (read_bytes_ - static_cast<std::int64_t>(count)) / kBetweenEstimates) {
    estimate_rest();
  }
  return count;
}

// Refuses a trace whose rest has no room, and tells those who wait how much has been read.
void ByteSource::estimate_rest() {
  const double ratio = is_packed() ? static_cast<double>(unpacked_bytes_) / static_cast<double>(read_bytes_) : 1;
  const double rest = static_cast<double>(file_.size_bytes() - read_bytes_) * ratio;
  check_memory(name_ + ": the rest of this trace", rest * kMemoryOfAByte, "a trace of fewer steps needs less");
  tell_phase({.text = fmt::format("reads {}, {} % of it", name_, 100 * read_bytes_ / file_.size_bytes())});
}

void ByteSource::begin_unpacking() {
  inflate_ = std::make_unique<z_stream_s>();
  *inflate_ = {};
  unpacked_.resize(kPiece);
  if (inflateInit2(inflate_.get(), kGzipWindow) != Z_OK) fail("cannot be unpacked: zlib did not start");
  inflate_->next_in = reinterpret_cast<Bytef*>(packed_.data());
  inflate_->avail_in = static_cast<uInt>(held_);
}

std::string_view ByteSource::next() {
  if (inflate_) return unpack();
  if (held_ == 0) held_ = read();
  const std::string_view piece(packed_.data(), held_);
  held_ = 0;
  return piece;
}

std::string_view ByteSource::unpack() {
  inflate_->next_out = reinterpret_cast<Bytef*>(unpacked_.data());
  inflate_->avail_out = static_cast<uInt>(unpacked_.size());
  while (inflate_->avail_out == unpacked_.size()) {
    if (inflate_->avail_in == 0) {
      inflate_->avail_in = static_cast<uInt>(read());
      inflate_->next_in = reinterpret_cast<Bytef*>(packed_.data());
      if (inflate_->avail_in == 0 && is_at_end_) return {};
      if (inflate_->avail_in == 0) fail_here("is a gzip file that ends too early: copy or write it again");
    }
    if (is_at_end_) {  // another member follows
      inflateReset(inflate_.get());
      is_at_end_ = false;
    }
    const int result = inflate(inflate_.get(), Z_NO_FLUSH);
    is_at_end_ = result == Z_STREAM_END;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      fail_here(fmt::format("is a damaged gzip file: {}", inflate_->msg != nullptr ? inflate_->msg : "unknown data"));
    }
  }
  const std::size_t count = unpacked_.size() - inflate_->avail_out;
  unpacked_bytes_ += static_cast<std::int64_t>(count);
  if (unpacked_bytes_ > kMostUnpacked ||
      (unpacked_bytes_ > kUnsuspicious && unpacked_bytes_ / kLikelyRatio > read_bytes_)) {
    fail_here(fmt::format("unpacks to more than {} times its size, which no trace does", kLikelyRatio));
  }
  return {unpacked_.data(), count};
}

std::string beginning_of(const InputFile& file, std::int64_t most) {
  ByteSource source(file, ByteSource::Reads::beginning);
  std::string text;
  for (std::string_view piece = source.next(); !piece.empty() && static_cast<std::int64_t>(text.size()) < most;
       piece = source.next()) {
    text += piece;
  }
  return text;
}

std::string read_unpacked(const InputFile& file, std::int64_t most) {
  ByteSource source(file);
  std::string text;
  for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
    text += piece;
    if (static_cast<std::int64_t>(text.size()) > most) {
      throw InputError(
          {{.file = source.name(), .path = "", .message = fmt::format("has more than {} MiB", most >> 20)}});
    }
  }
  return text;
}

}  // namespace tandem
