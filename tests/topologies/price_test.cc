#include "topologies/price.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

TEST(Price, HasANumberACurrencyAndAnHour) {
  EXPECT_EQ(parse_price("2.4 $/h"), (Price{.per_hour = 2.4, .currency = "$"}));
  EXPECT_EQ(parse_price("98 EUR/h"), (Price{.per_hour = 98, .currency = "EUR"}));
  EXPECT_EQ(parse_price("1.5\u20ac/h"), (Price{.per_hour = 1.5, .currency = "\u20ac"}));
  EXPECT_EQ(parse_price("0 $/h"), (Price{.per_hour = 0, .currency = "$"}));
  for (const char* text : {"2.4", "2.4 $", "$/h", "2.4/h", "-1 $/h", "1e3 $/h", "2.4 $/min", "2.4 dollars/h",
                           "2.4  $/h", "nan $/h", "2000000 $/h", ""}) {
    EXPECT_EQ(parse_price(text), std::nullopt) << text;
  }
  for (const char* text : {"2.4 $/h", "98 EUR/h", "0.00001 $/h", "0 $/h"}) {
    EXPECT_EQ(price_text(*parse_price(text)), text);
  }
}

TEST(Price, AmountsHaveThreeDigitsOrCents) {
  EXPECT_EQ(money_text(0.00123456, "$"), "0.00123 $");
  EXPECT_EQ(money_text(0.00004, "$"), "0.0000400 $");
  EXPECT_EQ(money_text(12.345, "$"), "12.3 $");
  EXPECT_EQ(money_text(0, "$"), "0 $");
  EXPECT_EQ(money_text(386.2345, "$"), "386.23 $");
  EXPECT_EQ(money_text(1234567.891, "EUR"), "1,234,567.89 EUR");
}

TEST(Price, OfAMachineIsThatOfEachMachineOfACluster) {
  const auto price_of = [](const std::string& text) {
    return parse_topology_yaml("schema_version: 1\n" + text, "t.yaml").facts().price;
  };
  EXPECT_EQ(price_of("cluster: {node: hgx-h100, workers: 2}"), std::nullopt);
  EXPECT_EQ(price_of("price: 98 $/h\ncluster: {node: hgx-h100, workers: 2}")->per_hour, 98);
  EXPECT_EQ(price_of("price: 12 $/h\nbased_on: dgx1-v100")->per_hour, 12);
}

TEST(Power, OfAMachineIsReadAndWritten) {
  const Topology topology =
      parse_topology_yaml("schema_version: 1\npower: 9.1kW\ncluster: {node: hgx-h100, workers: 2}", "t.yaml");
  EXPECT_EQ(topology.facts().power_w, 9100);
  std::ostringstream text;
  write_topology_yaml(topology, text);
  EXPECT_THAT(text.str(), testing::HasSubstr("\npower: 9.1kW\n"));
  EXPECT_EQ(parse_topology_yaml(text.str(), "t.yaml").facts().power_w, 9100);
}

}  // namespace
}  // namespace tandem
