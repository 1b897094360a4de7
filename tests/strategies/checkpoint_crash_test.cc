// A program that is killed while it saves a checkpoint: at every byte that it writes and before every call that changes
// a file. The directory then has the new checkpoint or the one before, whole; and files that are cut or altered are
// refused.
#include <gmock/gmock.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/training/checkpoint_manager.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kSavingWorkers = 2;
constexpr int kBytesOfATry = 16;
constexpr int kCut = 99;
constexpr int kMostCalls = 1000;  // of a save: far more than there are

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

class CheckpointCrash : public testing::Test {
 protected:
  void SetUp() override {
    // Memory waits for no disk, a thousand times.
    const fs::path memory = "/dev/shm";
    const fs::path parent = access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
    std::string pattern = (parent / "tandem-crash-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  struct Saved {
    double weight = -1, step = -1;
    bool is_whole = true;  // the elements of the weight, and what the workers have, are equal
  };
  using Use = std::function<void(CheckpointManager& manager, Variable& weight, Variable& step)>;

  // Two workers open the directory, restore what is there, and use it.
  Saved open(const Use& use = {}) const {
    Saved saved;
    open_world({.name = "cpu", .engine = "cpu"}, kSavingWorkers, 1)->run([&](Worker& worker) {
      MultiWorkerMirroredStrategy strategy(worker);
      const Scope scope = strategy.scope();
      const auto weight = create_variable({.name = "weight", .shape = {elements_}});
      const auto step = create_variable({.name = "step", .dtype = DType::i64, .trainable = false});
      Checkpoint checkpoint(worker);
      checkpoint.add("weight", weight);
      checkpoint.add("step", step);
      CheckpointManager manager(checkpoint, folder_ / "d", {.max_to_keep = 2});
      strategy.reduce(ReduceOp::sum, Value(1.0));  // all have read the state
      manager.restore_or_initialize();
      if (use) use(manager, *weight, *step);
      const std::vector<double> values = host_values(worker, weight->components().front());
      const double sum = strategy.reduce(ReduceOp::sum, Value(values.front())).number();
      if (worker.index() > 0) return;
      saved = {.weight = values.front(), .step = host_number(worker, step->read())};
      saved.is_whole = std::ranges::all_of(values, [&](double one) { return one == values.front(); }) &&
                       sum == kSavingWorkers * values.front();
    });
    return saved;
  }
  // Saves the next checkpoint, whose values are one more.
  Saved save_next() const {
    return open([](CheckpointManager& manager, Variable& weight, Variable& step) {
      weight.assign_add(Value(1.0));
      step.assign_add(Value(1.0));
      manager.save();
    });
  }

  void begin_with(int checkpoints) const {
    fs::remove_all(folder_ / "d");
    for (int i = 0; i < checkpoints; ++i) save_next();
  }

  // After a crash in the save of checkpoint `number`.
  void expect_intact(int number) const {
    const Saved found = open();
    EXPECT_TRUE(found.is_whole);
    EXPECT_EQ(found.weight, found.step);
    EXPECT_THAT(found.weight, testing::AnyOf(number - 1, number));
    const auto latest = latest_checkpoint(folder_ / "d");
    EXPECT_EQ(latest.has_value(), found.weight > 0);
    EXPECT_EQ(latest ? CheckpointReader(*latest).initial_value("step")(0) : 0, found.step);
  }
  // It goes on after the crash, and clears up.
  void expect_next_save(int number) const {
    const int saved = static_cast<int>(save_next().step);
    EXPECT_THAT(saved, testing::AnyOf(number, number + 1));
    std::set<std::string> files, expected = {"checkpoint"};
    for (const auto& entry : fs::directory_iterator(folder_ / "d")) files.insert(entry.path().filename());
    for (int i = std::max(1, saved - 1); i <= saved; ++i) expected.insert("ckpt-" + std::to_string(i));
    EXPECT_EQ(files, expected);
  }

  fs::path folder_;
  std::int64_t elements_ = 3;
};

// A process that saves, and may not write files of more bytes than that: it ends in the middle of the write.
pid_t start_with_limit(rlim_t bytes, const std::function<void()>& save) {
  const pid_t child = fork();
  if (child != 0) return child;
  const rlimit limit{bytes, bytes};
  std::signal(SIGXFSZ, [](int) { _exit(kCut); });
  setrlimit(RLIMIT_FSIZE, &limit);
  save();
  _exit(0);
}

TEST_F(CheckpointCrash, AtEveryByteLeavesTheOneBefore) {
  // The checkpoint is shorter than the state, which is then cut as well, or longer.
  for (const int elements : {1, 60}) {
    elements_ = elements;
    begin_with(2);
    const fs::path start = folder_ / "start";
    fs::remove_all(start);
    fs::copy(folder_ / "d", start);
    std::set<std::string> cut;
    bool ends = false;
    for (rlim_t bytes = 0; !ends; ++bytes) {
      fs::remove_all(folder_ / "d");
      fs::copy(start, folder_ / "d");
      const pid_t child = start_with_limit(bytes, [this] { save_next(); });
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status));
      ends = WEXITSTATUS(status) == 0;
      EXPECT_EQ(WEXITSTATUS(status), ends ? 0 : kCut);
      if (!ends) cut.insert(fs::exists(folder_ / "d/ckpt-3") ? "state" : "checkpoint");
      SCOPED_TRACE(std::to_string(elements) + " elements, " + std::to_string(bytes) + " bytes");
      expect_intact(3);
      if (ends || bytes % kBytesOfATry == 0) expect_next_save(3);
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_TRUE(cut.contains("checkpoint"));
    EXPECT_EQ(cut.contains("state"), elements == 1);
  }
}

TEST_F(CheckpointCrash, OfAFullDiskIsAnErrorThatNamesTheFile) {
  begin_with(2);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{100, 100};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save_next();
    } catch (const UnknownError& error) {
      _exit(std::string(error.what()) == "cannot write " + (folder_ / "d/ckpt-3").string() + ": File too large" ? 0
                                                                                                                : 1);
    }
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  expect_intact(3);
  expect_next_save(3);
}

bool changes_files(std::uint64_t call) {
  static const std::set<std::uint64_t> calls = {
      SYS_write,  SYS_pwrite64,  SYS_writev,    SYS_renameat, SYS_renameat2, SYS_linkat, SYS_unlinkat,
      SYS_fsync,  SYS_fdatasync, SYS_ftruncate, SYS_fchmod,   SYS_mkdirat,   SYS_openat,
#ifdef SYS_rename
      SYS_rename, SYS_link,      SYS_unlink,    SYS_rmdir,    SYS_mkdir,     SYS_open,
#endif
  };
  return calls.contains(call);
}

// Runs `save` in a process that is killed before the call of this number that may change a file. Returns the process's
// end, or nothing where the system traces none.
std::optional<int> killed_before_call(int number, const std::function<void()>& save) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    std::raise(SIGSTOP);
    save();
    _exit(0);
  }
  int status = 0, calls = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return {};
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL);
  ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
  for (;;) {
    const pid_t thread = waitpid(-1, &status, __WALL);
    if (thread < 0) return {};
    if (!WIFSTOPPED(status)) {
      if (thread == child) return status;
      continue;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info info{};
      if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0) {
        kill(child, SIGKILL);
        while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) continue;
        return {};
      }
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY && changes_files(info.entry.nr) && calls++ == number) {
        kill(child, SIGKILL);
      }
    }
    const int signal = WSTOPSIG(status);
    const bool is_of_tracing = signal == SIGSTOP || signal == SIGTRAP || signal == (SIGTRAP | 0x80);
    ptrace(PTRACE_SYSCALL, thread, nullptr, is_of_tracing ? 0 : signal);
  }
}

TEST_F(CheckpointCrash, BeforeEveryCallLeavesTheOneBefore) {
  for (const int before : {0, 2}) {
    int killed = 0;
    for (int call = 0; call < kMostCalls; ++call) {
      begin_with(before);
      const std::optional<int> status = killed_before_call(call, [this] { save_next(); });
      if (!status) GTEST_SKIP() << "this system lets no process trace another one";
      if (WIFEXITED(*status)) break;
      EXPECT_EQ(WTERMSIG(*status), SIGKILL);
      ++killed;
      SCOPED_TRACE("before call " + std::to_string(call));
      expect_intact(before + 1);
      expect_next_save(before + 1);
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GE(killed, 2 * 4) << "each of two files is opened, written, brought to the disk and renamed";
    EXPECT_LT(killed, kMostCalls);
  }
}

TEST_F(CheckpointCrash, CutAndAlteredCheckpointsAreRefused) {
  begin_with(2);
  const fs::path file = folder_ / "d/ckpt-2";
  const std::string whole = bytes_of(file);
  const auto refusal = [&](const std::string& bytes) {
    write_bytes(file, bytes);
    std::string message;
    try {
      open();
      message = "no error";
    } catch (const DataLossError& error) {
      message = error.what();
    }
    return message;
  };
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_EQ(refusal(whole.substr(0, size)),
              file.string() + ": damaged checkpoint: it is cut off after " + std::to_string(size) + " bytes");
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    ASSERT_THAT(refusal(altered), StartsWith(file.string() + ": damaged checkpoint: it")) << at;
  }
  EXPECT_THAT(refusal(whole + "x"), HasSubstr("its checksum is wrong"));
  write_bytes(file, whole);
  EXPECT_EQ(open().step, 2);
}

TEST_F(CheckpointCrash, NoOlderCheckpointIsTakenForADamagedOne) {
  begin_with(2);
  const fs::path file = folder_ / "d/ckpt-2";
  write_bytes(file, bytes_of(file).substr(0, 50));
  open_world({.name = "cpu", .engine = "cpu"}, 1, 1)->run([&](Worker& worker) {
    const auto weight = create_variable({.name = "weight", .shape = {3}});
    Checkpoint checkpoint(worker);
    checkpoint.add("weight", weight);
    int initialized = 0;
    CheckpointManager manager(checkpoint, folder_ / "d", {.init_fn = [&] { ++initialized; }});
    EXPECT_THROW(manager.restore_or_initialize(), DataLossError);
    EXPECT_EQ(initialized, 0);
    EXPECT_EQ(host_values(worker, weight->components().front()).front(), 0);
    checkpoint.restore(manager.checkpoints().front());  // the older one is there for those who ask for it
    EXPECT_EQ(host_values(worker, weight->components().front()).front(), 1);
  });
}

TEST_F(CheckpointCrash, CutAndAlteredStatesAreRefused) {
  begin_with(2);
  const fs::path file = folder_ / "d/checkpoint";
  const std::string whole = bytes_of(file);
  const auto found = [&](const std::string& bytes) -> std::string {
    write_bytes(file, bytes);
    try {
      return latest_checkpoint(folder_ / "d").value_or("none");
    } catch (const DataLossError& error) {
      return error.what();
    }
  };
  ASSERT_EQ(found(whole), folder_ / "d/ckpt-2");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_THAT(found(whole.substr(0, size)), AllOf(StartsWith(file.string() + ":"), HasSubstr(": damaged state")))
        << size;
  }
  // The first line is a comment: where it is no checksum any more, the others are as they were.
  const std::size_t checked = whole.find('\n') + 1;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    const std::string answer = found(altered);
    if (at < checked && answer == folder_ / "d/ckpt-2") continue;
    ASSERT_THAT(answer, HasSubstr(": damaged state")) << at;
  }
}

}  // namespace
}  // namespace tandem
