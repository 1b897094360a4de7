#include "topologies/price.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr std::string_view kPerHour = "/h";
constexpr std::array<std::string_view, 5> kSigns{"$", "\u20ac", "\u00a3", "\u00a5", "\u20b9"};
constexpr std::size_t kMostLetters = 4;

bool is_currency(std::string_view text) {
  if (std::find(kSigns.begin(), kSigns.end(), text) != kSigns.end()) return true;
  const auto is_letter = [](char one) { return (one >= 'A' && one <= 'Z') || (one >= 'a' && one <= 'z'); };
  return !text.empty() && text.size() <= kMostLetters && std::all_of(text.begin(), text.end(), is_letter);
}

// Separates thousands by commas.
std::string with_thousands(const std::string& number) {
  std::string text = number;
  for (std::size_t place = text.find('.'); place > 3; place -= 3) text.insert(place - 3, ",");
  return text;
}

}  // namespace

std::optional<Price> parse_price(std::string_view text) {
  if (!text.ends_with(kPerHour)) return std::nullopt;
  text.remove_suffix(kPerHour.size());
  const std::size_t end = text.find_first_not_of("0123456789.+-");
  if (end == std::string_view::npos) return std::nullopt;
  // A number without a unit is in the base unit of any dimension.
  const std::optional<double> number = parse_quantity(text.substr(0, end), Dimension::seconds);
  std::string_view currency = text.substr(end);
  if (currency.starts_with(' ')) currency.remove_prefix(1);
  if (!number || *number < 0 || *number > kMostPerHour || !is_currency(currency)) return std::nullopt;
  return Price{.per_hour = *number, .currency = std::string(currency)};
}

std::string price_text(const Price& price) {
  std::string number = fmt::format("{:.12f}", price.per_hour);  // without an exponent, which prices do not have
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return fmt::format("{} {}/h", number, price.currency);
}

std::string money_text(double amount, std::string_view currency) {
  constexpr int kDigits = 3, kMostDecimals = 15;
  if (amount >= 100) return fmt::format("{} {}", with_thousands(fmt::format("{:.2f}", amount)), currency);
  if (amount <= 0) return fmt::format("0 {}", currency);
  int decimals = kDigits - 2;  // of an amount from 10 to 100
  for (double shown = amount; shown < 10 && decimals < kMostDecimals; shown *= 10) ++decimals;
  return fmt::format("{:.{}f} {}", amount, decimals, currency);
}

}  // namespace tandem
