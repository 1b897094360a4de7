// What is asked of NVIDIA's management library, against one that is built beside this test.
#include "engine/cuda/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "engine/cuda/clock_log.h"
#include "engine/engine_info.h"

namespace tandem::cuda {
namespace {

TEST(Nvml, IsLeftOutWhereItIsNotThere) {
  EXPECT_EQ(Nvml::open("libno-such-library.so.1"), nullptr);
  EXPECT_EQ(Nvml::open("libdl.so.2"), nullptr) << "another library";
}

TEST(Nvml, TellsWhatItKnows) {
  const auto nvml = Nvml::open(TANDEM_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  EXPECT_EQ(nvml->driver_version(), "580.82.07");
  const GpuState state = nvml->state_of("0000:1B:00.0");
  EXPECT_EQ(state.sm_mhz, 1755U);
  EXPECT_EQ(state.sm_most_mhz, 1980U);
  EXPECT_EQ(state.memory_most_mhz, 2619U);
  EXPECT_FALSE(state.power_limit_mw) << "not supported: left out";
  EXPECT_EQ(clocks_text(nvml->state_of("0000:2A:00.0")), "") << "a GPU it does not know";
}

TEST(Nvml, WritesClocksAsFarAsTheyAreKnown) {
  EXPECT_EQ(clocks_text({.sm_mhz = 1755, .sm_most_mhz = 1980, .memory_mhz = 2619, .memory_most_mhz = 2619}),
            "SM 1755 of 1980 MHz, memory 2619 of 2619 MHz");
  EXPECT_EQ(clocks_text({.sm_most_mhz = 1980}), "SM at most 1980 MHz");
  EXPECT_EQ(clocks_text({.memory_mhz = 2619}), "memory 2619 MHz");
  EXPECT_EQ(clocks_text({}), "");
}

TEST(ClockLog, ReadsClocksDuringTheRun) {
  ClockLog clocks({"0000:1B:00.0", "0000:2A:00.0"}, Nvml::open(TANDEM_FAKE_NVML), std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const std::vector<std::string> texts = clocks.finish();
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_TRUE(texts[0].starts_with("SM 1755 of 1980 MHz")) << texts[0];
  EXPECT_NE(texts[0].find("(SM 1755 to 1755 MHz in "), std::string::npos) << texts[0];
  EXPECT_EQ(texts[1], "") << "a GPU it does not know";
}

TEST(ClockLog, OfAShortRunIsReadAtItsEnd) {
  ClockLog clocks({"0000:1B:00.0"}, Nvml::open(TANDEM_FAKE_NVML), std::chrono::minutes(1));
  EXPECT_TRUE(clocks.finish()[0].starts_with("SM 1755 of 1980 MHz"));
  EXPECT_EQ(ClockLog({"0000:1B:00.0"}, nullptr).finish()[0], "") << "without the library";
}

TEST(Nvml, TellsWhatHoldsAGpuBackAndWhoElseIsOnIt) {
  const GpuState state = Nvml::open(TANDEM_FAKE_NVML)->state_of("0000:1B:00.0");
  EXPECT_EQ(state.slow_reasons, 0x4cU);
  ASSERT_TRUE(state.programs);
  ASSERT_EQ(state.programs->size(), 21U) << "more than it was first asked for";
  EXPECT_DOUBLE_EQ(state.programs->at(6).share, 0.25) << "the newest sample";
  const std::vector<GpuState> readings(2, state);
  const auto use = use_of("GPU 0", readings, static_cast<unsigned>(getpid()));
  ASSERT_TRUE(use);
  EXPECT_EQ(*use, (GpuUse{.gpu = "GPU 0",
                          .readings = 2,
                          .slowed = 2,
                          .slowed_by = {"heat"},
                          .power_limited = 2,
                          .other_programs = 20,
                          .others_share = 0.25}));
}

TEST(Nvml, TakesTheBusiestProgramForThisOneWhereNumbersDiffer) {
  const std::vector<GpuState> readings = {{.programs = std::vector<GpuProgram>{{11, 0.1}, {12, 0.8}}},
                                          {.programs = std::vector<GpuProgram>{{12, 0.8}}}};
  const auto use = use_of("GPU 1", readings, 1);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->other_programs, 1);
  EXPECT_DOUBLE_EQ(use->others_share, 0.05);
  EXPECT_FALSE(use_of("GPU 1", std::vector<GpuState>(3), 1)) << "nothing is known";
  EXPECT_EQ(use_of("GPU 1", std::vector<GpuState>{{.slow_reasons = 0x8}, {.slow_reasons = 0x80}}, 1)->slowed_by,
            (std::vector<std::string>{"the hardware", "the power supply"}));
  EXPECT_EQ(use_of("GPU 1", std::vector<GpuState>{{.slow_reasons = 0x5}}, 1)->slowed, 0) << "idle, power limit";
}

TEST(ClockLog, SumsUpWhatDisturbedTheRun) {
  ClockLog clocks({"0000:1B:00.0", "0000:2A:00.0"}, Nvml::open(TANDEM_FAKE_NVML), std::chrono::minutes(1));
  clocks.finish();
  const std::vector<GpuUse> uses = clocks.uses();
  ASSERT_EQ(uses.size(), 1U) << "nothing is known of the other";
  EXPECT_EQ(uses[0].gpu, "GPU 0");
  EXPECT_EQ(uses[0].slowed, 1);
  ClockLog without({"0000:1B:00.0"}, nullptr);
  without.finish();
  EXPECT_TRUE(without.uses().empty());
}

TEST(CudaLibraries, AreThoseItWasBuiltWith) {
  const LibraryVersions libraries = engine_info("cuda").libraries();
  ASSERT_EQ(libraries.size(), 6U);
  EXPECT_EQ(libraries[0].first, "cuda");
  EXPECT_EQ(libraries[2].first, "nccl");
  EXPECT_EQ(libraries[5].first, "nccl_file");
  for (const auto& [name, version] : libraries) EXPECT_NE(version.find('.'), std::string::npos) << name;
}

}  // namespace
}  // namespace tandem::cuda
