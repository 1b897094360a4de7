// Functions of the C library whose last bit differs between its versions and processors, here from additions,
// multiplications and divisions alone, which IEEE 754 fixes to the bit: a simulated time is the same on every machine.
//
// Errors are below 2 units in the last place, those of pow and erfc below 1e-13 of the result. Infinities and NaN
// behave as in the C library. Safe to call from any thread.
#pragma once

namespace tandem::portable {

double exp(double x);

// -infinity for 0, NaN for negative numbers.
double log(double x);

// `base` >= 0; NaN for others.
double pow(double base, double exponent);

// The complementary error function, 1 - erf(x).
double erfc(double x);

// The angle is in radians. Errors are below 1e-15 for angles up to 1e8, and grow in proportion beyond; NaN for
// infinities.
struct SineCosine {
  double sine, cosine;
};
SineCosine sine_cosine(double angle);

}  // namespace tandem::portable
