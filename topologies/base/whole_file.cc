#include "topologies/base/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <streambuf>

#include "topologies/base/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

using Write = std::function<void(std::ostream&)>;

constexpr std::string_view kTemporary = ".tmp";
constexpr const char* kOpenFiles = "/proc/self/fd";
constexpr mode_t kUsualMode = 0666;  // less what the umask takes away

[[noreturn]] void cannot_write(const std::string& file) {
  throw Error(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

// Returns whether the path refers to an open file of a process, such as /dev/fd/3.
bool is_open_file(const fs::path& file) {
  std::error_code ignored;
  const std::string path = fs::absolute(file, ignored).lexically_normal().string();
  return path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

// Follows links to the file that is written, which need not exist yet.
fs::path followed(fs::path file) {
  constexpr int kMostLinks = 40;
  std::error_code ignored;
  for (int links = 0; links < kMostLinks && fs::is_symlink(file, ignored); ++links) {
    if (is_open_file(file)) break;
    file = file.parent_path() / fs::read_symlink(file, ignored);
  }
  return file;
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// Returns whether the target is written to directly and never replaced: not a regular file, or one that a process has
// open.
bool is_sink(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status status = fs::status(file, ignored);
  return is_open_file(file) || (fs::exists(status) && !fs::is_regular_file(status));
}

bool is_written_directly(const fs::path& target) {
  return is_sink(target) || access(folder_of(target).c_str(), W_OK) != 0;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Collects what a stream gets, and passes it to a descriptor.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) { clear(); }

 private:
  int_type overflow(int_type next) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(next, traits_type::eof())) sputc(traits_type::to_char_type(next));
    return traits_type::not_eof(next);
  }
  int sync() override {
    const std::string_view text(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    clear();
    return write_all(descriptor_, text) ? 0 : -1;
  }
  void clear() { setp(part_.data(), part_.data() + part_.size()); }

  int descriptor_;
  std::string part_ = std::string(std::size_t{1} << 16, '\0');
};

// The new text, until it takes the place of the old one. The file has no name while it is written, where the file
// system knows such files, so that a kill leaves nothing behind; elsewhere it has one beside the target.
class NewText {
 public:
  explicit NewText(const fs::path& target)
      : target_(target), beside_(target.string() + fmt::format(".{}{}", getpid(), kTemporary)) {
    if (access(kOpenFiles, X_OK) == 0) {
      descriptor_ = open(folder_of(target).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kUsualMode);
      if (descriptor_ >= 0) return;
    }
    unlink(beside_.c_str());  // of a process that had this number and was killed
    descriptor_ = open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kUsualMode);
    has_name_ = descriptor_ >= 0;
  }
  ~NewText() {
    if (descriptor_ >= 0) close(descriptor_);
    if (has_name_) unlink(beside_.c_str());
  }
  NewText(const NewText&) = delete;
  NewText& operator=(const NewText&) = delete;

  int descriptor() const { return descriptor_; }  // negative: it cannot be opened, and errno says why

  // Returns false, and leaves the target as it was, if that fails; errno says why.
  bool take_place() {
    struct stat before {};
    if (stat(target_.c_str(), &before) == 0) fchmod(descriptor_, before.st_mode & 07777);
    if (fsync(descriptor_) != 0 || !give_name()) return false;
    if (rename(beside_.c_str(), target_.c_str()) != 0) return false;
    has_name_ = false;
    keep_name();
    return true;
  }

 private:
  bool give_name() {
    if (has_name_) return true;
    const std::string open_file = fmt::format("{}/{}", kOpenFiles, descriptor_);
    unlink(beside_.c_str());
    has_name_ = linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, beside_.c_str(), AT_SYMLINK_FOLLOW) == 0;
    return has_name_;
  }

  // Names reach the disk in the order in which files were replaced, also when the power fails. A file system that
  // cannot be told so has its own order.
  void keep_name() const {
    const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    fsync(folder);
    close(folder);
  }

  fs::path target_, beside_;
  int descriptor_ = -1;
  bool has_name_ = false;
};

}  // namespace

// The stream's own failure tells more than what a writer throws for it.
void write_to(std::ostream& stream, const std::string& name, const Write& write) {
  try {
    if (stream) write(stream);
  } catch (const Error&) {
    if (stream) throw;
  }
  if (!stream.flush()) cannot_write(name);
}

void replace_file(const std::string& file, const Write& write) {
  const fs::path target = followed(file);
  if (is_written_directly(target)) {
    std::ofstream out(file, std::ios::binary);
    return write_to(out, file, write);
  }
  if (access(target.c_str(), W_OK) != 0 && errno != ENOENT) cannot_write(file);  // it is to stay as it is
  NewText text(target);
  if (text.descriptor() < 0) cannot_write(file);
  DescriptorBuffer buffer(text.descriptor());
  std::ostream stream(&buffer);
  write_to(stream, file, write);
  if (!text.take_place()) cannot_write(file);
}

void replace_file(const std::string& file, std::string_view text) {
  replace_file(file, [text](std::ostream& stream) { stream << text; });
}

void replace_file_in_one_step(const std::string& file, std::string_view text) {
  const fs::path target = followed(file);
  std::error_code ignored;
  if (is_written_directly(target) && fs::is_regular_file(target, ignored)) {
    throw Error(
        fmt::format("cannot write {}: its folder may not be written to, and a crash would leave half of it", file));
  }
  replace_file(file, text);
}

bool is_temporary_name(std::string_view name) {
  if (!name.ends_with(kTemporary)) return false;
  name.remove_suffix(kTemporary.size());
  const std::size_t dot = name.rfind('.');
  return dot != name.npos && dot + 1 < name.size() && name.find_first_not_of("0123456789", dot + 1) == name.npos;
}

void check_replaceable(const std::string& file) {
  const fs::path target = followed(file);
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) {
    errno = EISDIR;
    cannot_write(file);
  }
  if (access(target.c_str(), W_OK) == 0) return;
  if (errno != ENOENT || is_open_file(target) || access(folder_of(target).c_str(), W_OK | X_OK) != 0) {
    cannot_write(file);
  }
}

void append_whole(int descriptor, std::string_view text, const std::string& file) {
  struct stat before {};
  if (fstat(descriptor, &before) != 0) cannot_write(file);
  if (write_all(descriptor, text)) return;
  const int reason = errno;
  const bool is_file = S_ISREG(before.st_mode);
  if (is_file && ftruncate(descriptor, before.st_size) != 0) {
    throw Error(fmt::format("cannot write {}, and its last line is cut now: {}", file, std::strerror(reason)));
  }
  errno = reason;
  cannot_write(file);
}

void append_to_file(const std::string& file, std::string_view text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kUsualMode);
  if (descriptor < 0) cannot_write(file);
  try {
    append_whole(descriptor, text, file);
  } catch (...) {
    close(descriptor);
    throw;
  }
  close(descriptor);
}

}  // namespace tandem
