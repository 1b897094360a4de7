// Files that are replaced as a whole, or not at all.
#include "topologies/base/whole_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "topologies/base/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class WholeFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tandem-whole-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name = "file") const { return (folder_ / name).string(); }
  std::string read(const std::string& name = "file") const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int files() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  template <typename Action>
  static std::string error_of(const Action& action) {
    try {
      action();
      return "none";
    } catch (const Error& error) {
      return error.what();
    }
  }

  fs::path folder_;
};

// Files of this process may not grow beyond a size, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

TEST_F(WholeFile, IsReplacedWithItsPermissionsThroughLinks) {
  replace_file(path(), "old");
  fs::permissions(path(), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", path("link"));
  const std::string large(300'000, 'x');
  replace_file(path("link"), [&](std::ostream& stream) { stream << large << "end"; });
  EXPECT_EQ(read(), large + "end");
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(files(), 2);
}

TEST_F(WholeFile, StaysAsItWasIfItCannotBeWritten) {
  replace_file(path(), "old");
  const std::string large(300'000, 'x');
  {
    const FullDisk full(100'000);
    EXPECT_EQ(error_of([&] { replace_file(path(), large); }), "cannot write " + path() + ": File too large");
    EXPECT_EQ(error_of([&] { append_to_file(path(), large); }), "cannot write " + path() + ": File too large");
  }
  const auto broken = [](std::ostream& stream) {
    stream << "half";
    throw Error("a writer's own problem");
  };
  EXPECT_EQ(error_of([&] { replace_file(path(), broken); }), "a writer's own problem");
  EXPECT_EQ(read(), "old");
  EXPECT_EQ(files(), 1) << "nothing is left beside it";
}

TEST_F(WholeFile, IsCheckedWithoutAChange) {
  check_replaceable(path("new"));
  EXPECT_EQ(files(), 0);
  replace_file(path(), "old");
  check_replaceable(path());
  EXPECT_EQ(read(), "old");
  EXPECT_THAT(error_of([&] { check_replaceable(folder_.string()); }), HasSubstr("Is a directory"));
  EXPECT_THAT(error_of([&] { check_replaceable(path("no/file")); }), HasSubstr("No such file or directory"));
  EXPECT_THAT(error_of([&] { check_replaceable(path(std::string(300, 'n'))); }), HasSubstr("File name too long"));
  EXPECT_THAT(error_of([&] { check_replaceable("/dev/fd/987"); }), HasSubstr("No such file or directory"));
  check_replaceable("/dev/full");
  EXPECT_EQ(error_of([] { replace_file("/dev/full", "text"); }), "cannot write /dev/full: No space left on device");
}

// Root may write everything, so a process of another user tries.
TEST_F(WholeFile, IsNotReplacedIfItIsReadOnly) {
  replace_file(path(), "old");
  fs::permissions(path(), fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(folder_, fs::perms::all);
  constexpr int kRefused = 0, kReplaced = 1, kIsRoot = 2;
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (getuid() == 0 && setuid(kNobody) != 0) _exit(kIsRoot);
    const std::string refusal = error_of([&] { replace_file(path(), "new"); });
    _exit(refusal == "cannot write " + path() + ": Permission denied" ? kRefused : kReplaced);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == kIsRoot) GTEST_SKIP() << "root has no other user here";
  EXPECT_EQ(WEXITSTATUS(status), kRefused);
  EXPECT_EQ(read(), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(WholeFile, LosesNoLineOfSeveralWriters) {
  const std::string line(5000, 'x');
  constexpr int kWriters = 4, kLines = 50;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    for (int i = 0; i < kLines; ++i) append_to_file(path(), line + "\n");
    _exit(0);
  }
  for (const pid_t writer : writers) waitpid(writer, nullptr, 0);
  std::ifstream in(path());
  int lines = 0;
  for (std::string found; std::getline(in, found); ++lines) EXPECT_EQ(found.size(), line.size());
  EXPECT_EQ(lines, kWriters * kLines);
}

}  // namespace
}  // namespace tandem
