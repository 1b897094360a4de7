// Tasks that are started one by one, each with its TF_CONFIG: the fixture that starts them and collects how they end.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tandem {

inline const std::string kDigits = TANDEM_SOURCE_DIR "/scenarios/examples/digits-multi-worker.yaml";
inline const std::string kServers = TANDEM_SOURCE_DIR "/scenarios/examples/digits-parameter-server.yaml";

// A socket that listens on 127.0.0.1.
class Listener {
 public:
  Listener() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(descriptor_, any, size), 0);
    EXPECT_EQ(listen(descriptor_, 1), 0);
    getsockname(descriptor_, any, &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Listener() { close(descriptor_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  const std::string& address() const { return address_; }

 private:
  int descriptor_;
  std::string address_;
};

inline std::vector<std::string> free_addresses(int count) {
  std::vector<Listener> listeners(static_cast<std::size_t>(count));
  std::vector<std::string> addresses;
  for (const Listener& listener : listeners) addresses.push_back(listener.address());
  return addresses;
}

struct Ended {
  int exit_code = -1;
  std::string out, err;
};

class Tasks : public testing::Test {
 protected:
  using Addresses = std::vector<std::string>;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-tasks-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    for (const auto& [name, process] : processes_) kill(process, SIGKILL);
    for (const auto& [name, process] : processes_) waitpid(process, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  static std::string config(const nlohmann::json& cluster, const std::string& type, int index) {
    return nlohmann::json{{"cluster", cluster}, {"task", {{"type", type}, {"index", index}}}}.dump();
  }
  static nlohmann::json workers(const Addresses& addresses) { return {{"worker", addresses}}; }

  // Starts a process of its own name in this test.
  void start(const std::string& name, const std::string& tf_config, const std::vector<std::string>& command) {
    const std::string out = (folder_ / (name + ".out")).string(), err = (folder_ / (name + ".err")).string();
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    std::filesystem::remove(err);  // of an earlier process of this name, for wait_for()
    const pid_t process = fork();
    ASSERT_GE(process, 0);
    if (process == 0) {
      setenv("TF_CONFIG", tf_config.c_str(), 1);
      setenv("TANDEM_MPI_JOIN_S", join_s_.c_str(), 1);
      dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      execv(words.front(), words.data());
      _exit(127);
    }
    processes_.emplace_back(name, process);
  }
  void start_run(const std::string& name, const std::string& tf_config, const std::string& scenario = kDigits,
                 const std::string& steps = "12") {
    start(name, tf_config,
          {TANDEM_BINARY, "run", scenario, "--engine", "mpi", "--steps", steps, "--replicas", "1", "-q", "--json"});
  }
  // The workers 0, 1, ... of the addresses, as processes "0", "1", ...
  void start_workers(const Addresses& addresses, const std::string& steps = "12") {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      start_run(std::to_string(i), config(workers(addresses), "worker", static_cast<int>(i)), kDigits, steps);
    }
  }
  void signal(const std::string& name, int number) { kill(process_of(name), number); }

  Ended end_of(const std::string& name) {
    int status = 0;
    const pid_t process = process_of(name);
    waitpid(process, &status, 0);
    std::erase_if(processes_, [&](const auto& entry) { return entry.second == process; });
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(name + ".out"), read(name + ".err")};
  }
  pid_t process_of(const std::string& name) const {
    for (const auto& [known, process] : processes_) {
      if (known == name) return process;
    }
    ADD_FAILURE() << name << " was not started";
    return -1;
  }
  std::string read(const std::string& file) const {
    std::ifstream in(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Until the process says so on stderr.
  void wait_for(const std::string& name, const std::string& part) const {
    for (int i = 0; i < 600 && read(name + ".err").find(part) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_THAT(read(name + ".err"), testing::HasSubstr(part));
  }
  // Values of the same scenario in one process.
  nlohmann::json in_one_process(const std::string& scenario, const std::string& number) {
    start("alone", "{}",
          {TANDEM_BINARY, "run", scenario, "--engine", "cpu", "--steps", "12", "--replicas", "1", "--workers", number,
           "-q", "--json"});
    const Ended ended = end_of("alone");
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    return nlohmann::json::parse(ended.out);
  }

  std::filesystem::path folder_;
  std::string join_s_ = "60";

 private:
  std::vector<std::pair<std::string, pid_t>> processes_;
};

}  // namespace tandem
