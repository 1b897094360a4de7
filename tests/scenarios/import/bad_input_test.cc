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

// Editors of Windows put EF BB BF before a text.
TEST_F(BadInput, AMarkOfUtf8IsNoPartOfAText) {
  const auto kind = [&](const std::string& name, const std::string& text) {
    const auto file = write(name, "\xef\xbb\xbf" + text);
    const Imported imported = import_file(file, {}, "");
    EXPECT_FALSE(imported.scenario.empty());
    return imported.kind;
  };
  EXPECT_EQ(kind("job.toml", "[model]\nflavor = \"8B\"\n[training]\nseq_len = 512\n"), ImportKind::torchtitan);
  EXPECT_EQ(kind("jobs.py",
                 "from torchtitan import x\n\ndef llama3_8b():\n    return Trainer.Config(\n        "
                 "model_spec=model_registry(\"8B\"),\n    )\n"),
            ImportKind::torchtitan);
  EXPECT_EQ(kind("config.json", R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "vocab_size": 100, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128})"),
            ImportKind::hugging_face);
  EXPECT_EQ(kind("model.yaml",
                 "MODEL_ARGS:\n  --num-layers: 2\n  --hidden-size: 64\n  --num-attention-heads: 4\n  "
                 "--seq-length: 128\n  --max-position-embeddings: 128\n  --vocab-size: 100\n"),
            ImportKind::megatron);
  EXPECT_THAT(problem(write("job.toml", "\xef\xbb\xbf[model]\nflavor = \"8B\"\n[training]\nseq_len = 0\n")),
              HasSubstr("job.toml:4:11: training.seq_len"));
  const InputFile empty(write("mark", "\xef\xbb\xbf"));
  EXPECT_EQ(empty.size_bytes(), 0);
  EXPECT_EQ(empty.text(), "");
}

}  // namespace
}  // namespace tandem
