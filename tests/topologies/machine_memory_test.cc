// What a machine, and a control group in it, still has to give.
#include "topologies/base/machine_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tandem {
namespace {

namespace fs = std::filesystem;

class MachineMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tandem-memory-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write("meminfo", "MemTotal: 9000 kB\nMemAvailable:   8000 kB\n");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  double available() const { return available_memory_bytes((folder_ / "meminfo").string(), folder_.string()).value(); }

  fs::path folder_;
};

TEST_F(MachineMemory, FilesThatAGroupHasReadAreNoUse) {
  EXPECT_EQ(available(), 8000 * 1024.0);
  write("memory.max", "max\n");
  write("memory.current", "900000\n");
  EXPECT_EQ(available(), 8000 * 1024.0);
  write("memory.max", "1000000\n");
  EXPECT_EQ(available(), 100000);
  write("memory.stat", "anon 100000\nfile 800000\ninactive_file 700000\n");
  EXPECT_EQ(available(), 800000);
  write("memory.current", "600000\n");  // read at another moment
  EXPECT_EQ(available(), 1000000);
}

}  // namespace
}  // namespace tandem
