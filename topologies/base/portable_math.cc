#include "topologies/base/portable_math.h"

#include <array>
#include <cmath>
#include <limits>

namespace tandem::portable {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts. The first has 32 zero bits at its end, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp+0;

// 1 / n! for n from 0.
template <std::size_t kCount>
constexpr auto kInversesUpTo = [] {
  std::array<double, kCount> values{};
  double factorial = 1;
  for (std::size_t n = 0; n < values.size(); ++n) {
    if (n > 0) factorial *= static_cast<double>(n);
    values[n] = 1 / factorial;
  }
  return values;
}();
constexpr auto kInverseFactorials = kInversesUpTo<15>;

// erf(x) for small x, from its series with positive terms: 2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!.
double erf_by_series(double x) {
  double term = x, sum = x;
  for (int n = 1; std::abs(term) > 1e-18 * std::abs(sum); ++n) {
    term *= 2 * x * x / (2 * n + 1);
    sum += term;
  }
  return kTwoOverSqrtPi * portable::exp(-x * x) * sum;
}

// erfc(x) for x > 2, from its continued fraction: exp(-x^2) / sqrt(pi) / (x + 1/2 / (x + 2/2 / (x + 3/2 / ...))).
double erfc_by_fraction(double x) {
  constexpr int kTerms = 60;
  double denominator = x;
  for (int n = kTerms; n > 0; --n) denominator = x + n / 2.0 / denominator;
  return kTwoOverSqrtPi / 2 * portable::exp(-x * x) / denominator;
}

}  // namespace

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710) return kInfinity;
  if (x < -746) return 0;
  // x = power ln 2 + rest, with |rest| <= ln 2 / 2; the series ends below a quarter of the last place.
  const double power = std::floor(x * kInverseLn2 + 0.5);
  const double rest = (x - power * kLn2High) - power * kLn2Low;
  double sum = 0;
  for (std::size_t n = kInverseFactorials.size(); n-- > 0;) sum = sum * rest + kInverseFactorials[n];
  return std::ldexp(sum, static_cast<int>(power));
}

double log(double x) {
  if (std::isnan(x) || x == kInfinity) return x;
  if (x <= 0) return x == 0 ? -kInfinity : kNaN;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < kSqrtHalf) {
    mantissa *= 2;
    --exponent;
  }
  // log(1 + f) = 2 artanh(s) with s = f / (2 + f), |s| <= 0.172; written so that f itself, which is exact, leads.
  const double f = mantissa - 1;
  const double s = f / (2 + f), z = s * s;
  double series = 0;
  for (int n = 23; n >= 3; n -= 2) series = (series + 2.0 / n) * z;
  const double half_square = 0.5 * f * f;
  return exponent * kLn2High - ((half_square - (s * (half_square + series) + exponent * kLn2Low)) - f);
}

double pow(double base, double exponent) {
  if (exponent == 0 || base == 1) return 1;
  if (exponent == 1) return base;
  return portable::exp(exponent * portable::log(base));
}

// angle = quarters pi / 2 + rest, with |rest| <= pi / 4. Each part of pi / 2 but the last has 26 bits, so that its
// product with a number of quarters of as many bits is exact.
SineCosine sine_cosine(double angle) {
  constexpr std::array<double, 4> kHalfPi{0x1.921fb5p+0, 0x1.110b46p-26, 0x1.1a6263p-54, 0x1.8a2e03707344ap-81};
  const double quarters = std::floor(angle * kTwoOverPi + 0.5);
  double rest = angle;
  for (const double part : kHalfPi) rest -= quarters * part;
  constexpr auto kInverses = kInversesUpTo<18>;
  const double square = rest * rest;
  double sine = 0, cosine = 0;
  for (std::size_t n = kInverses.size(); n > 0; n -= 2) {
    sine = kInverses[n - 1] - square * sine;
    cosine = kInverses[n - 2] - square * cosine;
  }
  sine *= rest;
  // Modulo 4 without an integer, which might be too small.
  const double quarter = quarters - 4 * std::floor(quarters / 4);
  if (quarter == 1) return {cosine, -sine};
  if (quarter == 2) return {-sine, -cosine};
  if (quarter == 3) return {-cosine, sine};
  return {sine, cosine};
}

double erfc(double x) {
  if (std::isnan(x)) return x;
  if (x > 27) return 0;
  if (x < -6) return 2;
  if (x < -2) return 2 - erfc_by_fraction(-x);
  return x > 2 ? erfc_by_fraction(x) : 1 - erf_by_series(x);
}

}  // namespace tandem::portable
