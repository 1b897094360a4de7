// What a machine costs to use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// The price of one machine, with all its devices.
struct Price {
  double per_hour = 0;
  std::string currency{};  // "$", "EUR"

  bool operator==(const Price&) const = default;
};

// A machine costs at most this much an hour, in any currency: what is above it is a slip.
inline constexpr double kMostPerHour = 1e6;

// Parses "2.4 $/h", "98 EUR/h": a number, a currency of one to four letters or one sign, and "/h". Returns nothing for
// another text, and for a number below 0 or above kMostPerHour.
std::optional<Price> parse_price(std::string_view text);
// Returns "2.4 $/h".
std::string price_text(const Price& price);
// Returns an amount with three significant digits or, from 100 on, with two decimals: "0.00123 $", "12.3 $", "1,234.50
// EUR".
std::string money_text(double amount, std::string_view currency);

}  // namespace tandem
