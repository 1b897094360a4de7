#include "scenarios/import/base/input_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "topologies/base/error.h"
#include "topologies/base/strict_yaml.h"  // kMostInputBytes

namespace tandem {
namespace {

std::atomic<std::int64_t> opened_files = 0;

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";  // some editors put it before a text

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  std::error_code ignored;
  const auto kind = std::filesystem::status(path, ignored).type();
  if (kind == std::filesystem::file_type::not_found) fail("no such file");
  if (kind == std::filesystem::file_type::directory) fail("is a folder; expected a file");
  if (kind != std::filesystem::file_type::regular) fail("is no regular file; copy what it gives to one first");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // readers have buffers of their own
  size_bytes_ = static_cast<std::int64_t>(std::filesystem::file_size(path, ignored));
  ++opened_files;
  std::array<char, kUtf8Mark.size()> beginning{};
  if (read(0, beginning) == kUtf8Mark.size() && std::string_view(beginning.data(), beginning.size()) == kUtf8Mark) {
    skipped_bytes_ = kUtf8Mark.size();
    size_bytes_ -= skipped_bytes_;
  }
}

InputFile::InputFile(const std::filesystem::path& path, std::string text)
    : path_(path), held_(std::move(text)), size_bytes_(std::ssize(held_)) {}

InputFile InputFile::of_text(const std::filesystem::path& path, std::string text) {
  return {path, std::move(text)};
}

std::int64_t InputFile::opened() {
  return opened_files;
}

std::size_t InputFile::read(std::int64_t offset, std::span<char> bytes) const {
  if (!file_)
    return std::string_view(held_)
        .substr(std::min<std::size_t>(held_.size(), static_cast<std::size_t>(offset)))
        .copy(bytes.data(), bytes.size());
  const bool is_there = fseeko(file_.get(), offset + skipped_bytes_, SEEK_SET) == 0;
  const std::size_t count = is_there ? std::fread(bytes.data(), 1, bytes.size(), file_.get()) : 0;
  if (count == 0 && (!is_there || std::ferror(file_.get()) != 0)) {
    fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (offset + static_cast<std::int64_t>(count) > size_bytes_) {
    fail("grows while it is read: wait for its writer to end, or copy it first");
  }
  return count;
}

std::string InputFile::text() const {
  if (size_bytes_ > static_cast<std::int64_t>(kMostInputBytes)) {
    fail(fmt::format("larger than {} MiB", kMostInputBytes >> 20));
  }
  std::string text(static_cast<std::size_t>(size_bytes_) + 1, '\0');  // one more shows whether it has grown
  std::size_t held = 0;
  for (std::size_t count = 1; count > 0; held += count) {
    count = read(static_cast<std::int64_t>(held), std::span(text).subspan(held));
  }
  text.resize(held);
  return text;
}

void InputFile::fail(const std::string& message) const {
  throw InputError({{.file = name(), .path = "", .message = message}});
}

}  // namespace tandem
