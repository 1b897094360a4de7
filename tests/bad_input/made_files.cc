#include "tests/bad_input/made_files.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>

namespace tandem::bad_input {
namespace {

namespace fs = std::filesystem;

constexpr int kMillion = 1'000'000;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::string repeated(std::string_view text, int times) {
  std::string all;
  all.reserve(text.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// `text` so many times, as one member of a gzip file.
void pack(const fs::path& file, const std::string& text, int times = 1) {
  const gzFile out = gzopen(file.c_str(), "wb9");
  for (int i = 0; i < times; ++i) gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
}

// Events whose numbers do not pack well, so that the file has a middle.
std::string json_events() {
  std::string text = "{\"traceEvents\": [";
  for (int i = 0; i < 20000; ++i) text += "{\"ph\": \"i\", \"ts\": " + std::to_string(i * 7919 % 65521) + "}, ";
  return text + "{}]}";
}

void make_socket(const fs::path& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  file.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int end = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(end, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) std::perror("bind");
  close(end);
}

// Each value has ten of the one before it: ten to the power of nine.
std::string alias_bomb() {
  std::string text = "schema_version: 1\nname: x\na0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int level = 1; level < 9; ++level) {
    const std::string below = "*a" + std::to_string(level - 1);
    const std::string own = std::to_string(level);
    text += "a" + own + ": &a" + own + " [" + below + repeated(", " + below, 9) + "]\n";
  }
  return text;
}

std::string nccl_file() {
  return "<system version=\"1\"><cpu numaid=\"0\" affinity=\"1\" arch=\"x86_64\" vendor=\"AuthenticAMD\"/></system>\n";
}

std::string smi_of(int gpus) {
  std::string text;
  for (int i = 0; i < gpus; ++i) text += "\tGPU" + std::to_string(i);
  for (int i = 0; i < gpus; ++i) text += "\nGPU" + std::to_string(i) + repeated("\tSYS", gpus);
  return text + "\n";
}

// The output of nccl-tests for so many sizes, in microseconds that are those of 1 GB/s.
std::string times_of(int sizes) {
  std::string text =
      "# nThread 1 nGpus 2 minBytes 1000 maxBytes 1000 step: 1000(bytes) warmup iters: 5 iters: 20 agg iters: 1 "
      "validation: 1 graph: 0\n# all_reduce_perf\n"
      "#  Rank  0 Group  0 Pid      1 on       node device  0 [0x00] GPU\n"
      "#  Rank  1 Group  0 Pid      1 on       node device  1 [0x01] GPU\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
  for (int i = 1; i <= sizes; ++i) {
    const std::string bytes = std::to_string(1000 * i), count = std::to_string(250 * i), time = std::to_string(i);
    const std::string times = time + " 1.00 1.00 0 ";
    text += bytes + " " + count + " float sum -1 " + times + times + "\n";
  }
  return text;
}

// Each node waits for the one before it; the first waits for the last.
std::string long_circle() {
  constexpr int kNodes = 200'000;
  const auto varint = [](std::uint64_t number) {
    std::string text;
    for (; number >= 0x80; number >>= 7) text += static_cast<char>((number & 0x7f) | 0x80);
    return text + static_cast<char>(number);
  };
  std::string text = std::string("\x07\x0a\x05") + "0.0.4";
  for (int i = 1; i <= kNodes; ++i) {
    const std::string before = varint(static_cast<std::uint64_t>(i == 1 ? kNodes : i - 1));
    const std::string node = "\x08" + varint(static_cast<std::uint64_t>(i)) + "\x18\x04\x28" + before + "\x38\x05";
    text += varint(node.size()) + node;
  }
  return text;
}

void damage(const fs::path& file, const std::function<std::string(std::string)>& change) {
  pack(file, json_events());
  write(file, change(bytes_of(file)));
}

using Maker = std::function<void(const fs::path&)>;

Maker text_of(std::function<std::string()> make) {
  return [make = std::move(make)](const fs::path& file) { write(file, make()); };
}

std::map<std::string, Maker> odd_places() {
  return {
      {"folder", [](const fs::path& file) { fs::create_directory(file); }},
      {"empty_folder", [](const fs::path& file) { fs::create_directory(file); }},
      {"fifo", [](const fs::path& file) { mkfifo(file.c_str(), 0600); }},
      {"none", [](const fs::path&) {}},
      {"endless", [](const fs::path& file) { fs::create_symlink("/dev/zero", file); }},
      {"circle", [](const fs::path& file) { fs::create_symlink(file, file); }},
      {"socket", make_socket},
      {"grows", text_of([] { return "{\"traceEvents\": [\n" + repeated("{\"ph\": \"i\"},\n", 1000); })},
  };
}

std::map<std::string, Maker> packed_files() {
  return {
      {"bomb.json.gz", [](const fs::path& file) { pack(file, std::string(kMebibyte, ' '), 1024); }},
      {"bomb.0.et.gz", [](const fs::path& file) { pack(file, std::string(kMebibyte, '\0'), 1024); }},
      {"bomb_of_bombs.json.gz",
       [](const fs::path& file) {
         pack(file, std::string(kMebibyte, ' '), 256);
         pack(file, bytes_of(file));
       }},
      {"packed.xml.gz", [](const fs::path& file) { pack(file, nccl_file()); }},
      {"packed.yaml.gz", [](const fs::path& file) { pack(file, "schema_version: 1\n"); }},
      {"hidden.zip", text_of([] { return std::string("PK\x03\x04\x14\0\0\0\x08\0", 10) + std::string(64, 'x'); })},
      {"cut.json.gz",
       [](const fs::path& file) { damage(file, [](const std::string& b) { return b.substr(0, b.size() / 2); }); }},
      {"damaged.json.gz",
       [](const fs::path& file) {
         damage(file, [](std::string b) {
           for (std::size_t i = b.size() / 2; i < b.size() / 2 + 64; ++i) b[i] = '\xff';
           return b;
         });
       }},
      {"wrong_sum.json.gz",
       [](const fs::path& file) {
         damage(file, [](std::string b) {
           b[b.size() - 8] = static_cast<char>(b[b.size() - 8] ^ 1);
           return b;
         });
       }},
      {"rubbish_behind.json.gz",
       [](const fs::path& file) { damage(file, [](const std::string& b) { return b + "rubbish"; }); }},
  };
}

std::map<std::string, Maker> deep_and_long_files() {
  return {
      {"deep.json", text_of([] { return repeated("{\"a\":", kMillion); })},
      {"deep_list.json", text_of([] { return repeated("[", kMillion); })},
      {"deep_trace.json", text_of([] { return "{\"traceEvents\": [" + repeated("{\"args\":", kMillion); })},
      {"deep.yaml", text_of([] { return "schema_version: 1\nname: " + repeated("[", kMillion) + "\n"; })},
      {"deep.xml", text_of([] { return repeated("<system>", kMillion); })},
      {"deep.dot", text_of([] { return "digraph t " + repeated("{", kMillion); })},
      {"alias_bomb.yaml", text_of(alias_bomb)},
      {"large.yaml", text_of([] { return "schema_version: 1\n" + repeated("# nothing to see here\n", kMillion); })},
      {"long_name.xml", text_of([] { return "<system version=\"" + std::string(4 * kMebibyte, '9') + "\"/>"; })},
      {"long_string.json", text_of([] { return "{\"model_type\": \"" + std::string(80 * kMebibyte, 'a') + "\"}"; })},
      {"many_keys.json", text_of([] {
         std::string text = "{\"model_type\": \"llama\"";
         for (int i = 0; i < kMillion / 4; ++i) text += ",\"k" + std::to_string(i) + "\":1";
         return text + "}";
       })},
      {"report.jsonl", text_of([] { return "{\n  \"schema_version\": 1,\n  \"kind\": \"report\"\n}\n"; })},
      {"notes.jsonl", text_of([] { return std::string("what I did today\nnothing much\n"); })},
      {"merge.jsonl", text_of([] {
         const std::string launch = "{\"schema_version\":1,\"kind\":\"launch\",\"scenario\":\"other\"}\n";
         return "<<<<<<< HEAD\n" + launch + "=======\n" + launch + ">>>>>>> main\n" + launch;
       })},
      {"pretty.jsonl", text_of([] { return std::string("{\n  \"kind\": \"launch\"\n}\n"); })},
      {"million.jsonl", text_of([] { return repeated("{\"kind\":\"launch\"}\n", kMillion) + "{\"kind\":\"la"; })},
      {"many_gpus.txt", text_of([] { return smi_of(1500); })},
      {"chain.0.et", text_of(long_circle)},
      {"many_times.txt", text_of([] { return times_of(10'001); })},
  };
}

}  // namespace

bool make_file(const std::string& name, const fs::path& folder) {
  for (const auto& makers : {odd_places(), packed_files(), deep_and_long_files()}) {
    const auto found = makers.find(name);
    if (found == makers.end()) continue;
    found->second(folder / name);
    return true;
  }
  return false;
}

GrowingFile::GrowingFile(const fs::path& file)
    : writer_([this, file] {
        constexpr int kEvents = 100;
        const std::string events = repeated("{\"ph\": \"i\"},\n", kEvents);
        std::ofstream out(file, std::ios::binary | std::ios::app);
        // At a pace that fills no disk in the time that a test may take.
        while (!is_over_) {
          out << events << std::flush;
          std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
      }) {}

GrowingFile::~GrowingFile() {
  is_over_ = true;
  writer_.join();
}

}  // namespace tandem::bad_input
