#include "topologies/base/units.h"

#include <gtest/gtest.h>

#include <limits>

#include "topologies/base/dtype.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

TEST(Units, ParsesSizesInPowersOf1000And1024AndInBits) {
  EXPECT_EQ(parse_quantity("64MiB", Dimension::bytes), 67108864.0);
  EXPECT_EQ(parse_quantity("64 MiB", Dimension::bytes), 67108864.0);
  EXPECT_EQ(parse_quantity("80GB", Dimension::bytes), 80e9);
  EXPECT_EQ(parse_quantity("1kB", Dimension::bytes), 1000.0);
  EXPECT_EQ(parse_quantity("8Gb", Dimension::bytes), 1e9);
  EXPECT_EQ(parse_quantity("512", Dimension::bytes), 512.0);
  EXPECT_EQ(parse_quantity("512B", Dimension::bytes), 512.0);
}

TEST(Units, ParsesTimesExactly) {
  EXPECT_EQ(parse_quantity("1.3us", Dimension::seconds), 1.3e-6);
  EXPECT_EQ(parse_quantity("3us", Dimension::seconds), 3e-6);
  EXPECT_EQ(parse_quantity("20ms", Dimension::seconds), 0.02);
  EXPECT_EQ(parse_quantity("1e-6", Dimension::seconds), 1e-6);
  EXPECT_EQ(parse_quantity("5 ns", Dimension::seconds), 5e-9);
}

TEST(Units, ParsesBandwidthsInBytesAndBits) {
  EXPECT_EQ(parse_quantity("450GB/s", Dimension::bytes_per_second), 450e9);
  EXPECT_EQ(parse_quantity("200Gbps", Dimension::bytes_per_second), 25e9);
  EXPECT_EQ(parse_quantity("200Gb/s", Dimension::bytes_per_second), 25e9);
  EXPECT_EQ(parse_quantity("1GiB/s", Dimension::bytes_per_second), 1073741824.0);
}

TEST(Units, ParsesComputeRates) {
  EXPECT_EQ(parse_quantity("19.5 TFLOPS", Dimension::flops_per_second), 19.5e12);
  EXPECT_EQ(parse_quantity("70.4GFLOP/s", Dimension::flops_per_second), 70.4e9);
}

TEST(Units, ParsesClocks) {
  EXPECT_EQ(parse_quantity("1.98GHz", Dimension::hertz), 1.98e9);
  EXPECT_EQ(parse_quantity("1410 MHz", Dimension::hertz), 1410e6);
  EXPECT_EQ(parse_quantity("1.98 ghz", Dimension::hertz), std::nullopt);
  EXPECT_EQ(parse_quantity("10.2kW", Dimension::watts), 10200);
  EXPECT_EQ(parse_quantity("700 W", Dimension::watts), 700);
}

TEST(Units, RefusesWhatIsNotANumberAndAUnitOfTheDimension) {
  for (const char* text : {"", "GB/s", "25GB", "25 GBs", "0x10", "010", "-", "nan", "inf", ".5GB/s", "1e999", "25GB/s ",
                           "25  GB/s", "1,5GB/s", "25gb/s"}) {
    EXPECT_EQ(parse_quantity(text, Dimension::bytes_per_second), std::nullopt) << text;
  }
}

TEST(Units, RefusesFiguresThatNoMachineHas) {
  const auto problem = [](double value, Dimension dimension) {
    return quantity_problem(value, dimension, std::to_string(value));
  };
  for (const Dimension dimension : {Dimension::bytes, Dimension::seconds, Dimension::bytes_per_second,
                                    Dimension::flops_per_second, Dimension::hertz, Dimension::watts}) {
    const auto [least, most] = limits_of(dimension);
    EXPECT_EQ(problem(least, dimension), "");
    EXPECT_EQ(problem(most, dimension), "");
    EXPECT_NE(problem(least * 0.99, dimension), "");
    EXPECT_NE(problem(most * 1.01, dimension), "");
    EXPECT_NE(problem(std::numeric_limits<double>::quiet_NaN(), dimension), "");
    EXPECT_EQ(quantity_problem(0, dimension, "0", true), "");
  }
  EXPECT_EQ(quantity_problem(1e-300, Dimension::hertz, "1e-300"), "must be from 1 kHz to 1 THz, found 1e-300");
  EXPECT_EQ(quantity_problem(1e30, Dimension::seconds, "1e30", true), "must be 0 or from 1 fs to 1 day, found 1e30");
  EXPECT_EQ(quantity_problem(0, Dimension::bytes, "0"), "must be greater than 0, found 0");
  EXPECT_EQ(quantity_problem(-1, Dimension::bytes, "-1"), "must be greater than 0, found -1");
  EXPECT_EQ(quantity_problem(-1, Dimension::bytes, "-1", true), "must not be negative, found -1");
}

TEST(Units, FormatsFourSignificantDigits) {
  EXPECT_EQ(format_quantity(1.302e-6, Dimension::seconds), "1.302 us");
  EXPECT_EQ(format_quantity(450e9, Dimension::bytes_per_second), "450.0 GB/s");
  EXPECT_EQ(format_quantity(999.96e-6, Dimension::seconds), "1.000 ms");
  EXPECT_EQ(format_quantity(12345, Dimension::seconds), "12345 s");
  EXPECT_EQ(format_quantity(0, Dimension::seconds), "0 s");
  EXPECT_EQ(format_quantity(-2.5e-3, Dimension::seconds), "-2.500 ms");
  EXPECT_EQ(format_quantity(512, Dimension::bytes), "512 B");
  EXPECT_EQ(format_quantity(19.5e12, Dimension::flops_per_second), "19.50 TFLOPS");
  EXPECT_EQ(format_quantity(1.98e9, Dimension::hertz), "1.980 GHz");
  EXPECT_EQ(format_quantity(10200, Dimension::watts), "10.20 kW");
}

TEST(DTypes, NamesAreInverse) {
  for (const DType dtype :
       {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}) {
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
    EXPECT_GE(size_of(dtype), 1u);
  }
  EXPECT_EQ(dtype_from_name("fp32"), std::nullopt);
  EXPECT_EQ(size_of(DType::tf32), 4u);
}

TEST(Errors, DiagnosticLeavesOutWhatIsNotKnown) {
  EXPECT_EQ((Diagnostic{"a.yaml", 3, 5, "links.nv0", "wrong"}).text(), "a.yaml:3:5: links.nv0: wrong");
  EXPECT_EQ((Diagnostic{"a.yaml", 0, 0, "", "wrong"}).text(), "a.yaml: wrong");
  EXPECT_EQ((Diagnostic{"", 0, 0, "", "wrong"}).text(), "wrong");
  EXPECT_EQ((Diagnostic{"a.yaml", 3, 0, "x", "wrong"}).text(), "a.yaml:3: x: wrong");
}

TEST(Errors, NearestNameKnowsTyposAndLeavesStrangersAlone) {
  const std::vector<std::string> known{"bandwidth", "latency", "sim", "cpu"};
  EXPECT_EQ(nearest_name("bandwith", known), "bandwidth");
  EXPECT_EQ(nearest_name("sims", known), "sim");
  EXPECT_EQ(nearest_name("cup", known), "cpu");
  EXPECT_EQ(nearest_name("elephant", known), "");
  EXPECT_EQ(nearest_name("x", known), "");
}

TEST(ErrorsDeathTest, CheckStopsWithPlaceAndMessage) {
  EXPECT_DEATH(TANDEM_CHECK(1 + 1 == 3, "sums are wrong"), "a bug in tandem: sums are wrong");
}

}  // namespace
}  // namespace tandem
