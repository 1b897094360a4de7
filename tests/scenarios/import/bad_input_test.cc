#include <sys/stat.h>
#include <zlib.h>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/base/json_value.h"
#include "tests/scenarios/import/import_files.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class BadInput : public ImportFiles {
 protected:
  std::filesystem::path write_packed(const std::string& name, const std::string& text, int times = 1) const {
    std::filesystem::path file = folder_ / name;
    gzFile out = gzopen(file.c_str(), "wb9");
    for (int i = 0; i < times; ++i) gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    gzclose(out);
    return file;
  }
  std::string problem(const std::filesystem::path& file) const {
    return refusal([&] { import_file(file, {}, ""); });
  }
};

TEST_F(BadInput, OnlyRegularFilesAreRead) {
  EXPECT_THAT(problem(folder_), HasSubstr("is a folder; expected a file"));
  EXPECT_EQ(problem(folder_ / "none.json"), "none.json: no such file");
  const std::filesystem::path fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(problem(fifo), "fifo: is no regular file; copy what it gives to one first");
  EXPECT_THAT(problem("/dev/zero"), HasSubstr("is no regular file"));
}

TEST_F(BadInput, GzipFilesAreUnpacked) {
  const auto file = write_packed("x.json.gz", R"({"a": [1, 2]})");
  EXPECT_EQ(read_json(file).find("a")->items.size(), 2u);
  // One member after another is a gzip file, too.
  const std::string twice = read_unpacked(file, 100);
  std::ifstream in(file, std::ios::binary);
  const std::string packed((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(read_unpacked(write("twice.gz", packed + packed), 100), twice + twice);
}

TEST_F(BadInput, DamagedGzipFilesAreRefused) {
  std::string text = "[";
  for (int i = 0; i < 10000; ++i) text += std::to_string(i * 7919) + ", ";
  const auto file = write_packed("x.json.gz", text + "1]");
  std::ifstream in(file, std::ios::binary);
  std::string packed((std::istreambuf_iterator<char>(in)), {});
  const auto read = [&](const std::string& name, const std::string& bytes) {
    return refusal([&] { read_json(write(name, bytes)); });
  };
  EXPECT_EQ(read("short.gz", packed.substr(0, packed.size() / 2)),
            "short.gz:byte 21203: is a gzip file that ends too early: copy or write it again");
  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
  EXPECT_THAT(read("changed.gz", packed), testing::Not(testing::IsEmpty()));
}

// 128 MiB of blanks in 128 KiB.
TEST_F(BadInput, WhatUnpacksWithoutEndIsRefused) {
  const auto file = write_packed("bomb.gz", std::string(1 << 20, ' '), 128);
  EXPECT_EQ(refusal([&] { read_json(file); }),
            "bomb.gz:byte 65495: unpacks to more than 300 times its size, which no trace does");
}

TEST_F(BadInput, BrokenJsonIsRefusedWhereItIsBroken) {
  EXPECT_EQ(problem(write("x.json", "{\"model\": 1,\n \"b\" 2}")), "x.json:2:6: expected ':' after a key, found '2'");
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "{\"a\":";
  EXPECT_EQ(problem(write("x.json", deep)), "x.json:1:1001: is nested deeper than 200 levels");
}

TEST_F(BadInput, WhatNobodyKnowsIsRefused) {
  const char* const of_a_program = "\x7f\x45LF";
  for (const char* text : {"", "hello", "{\"a\": 1}", "\x1f\x8b", of_a_program, "[[[[", "---\n- a\n"}) {
    EXPECT_THAT(problem(write("x", text)), testing::Not(testing::IsEmpty())) << text;
  }
}

}  // namespace
}  // namespace tandem
