#include "topologies/base/shown.h"

#include <gtest/gtest.h>

#include "topologies/base/error.h"

namespace tandem {
namespace {

TEST(Shown, LeavesPrintableTextAsItIs) {
  for (const char* text : {"", "resnet50", "a::b %x #[y]", "größe 10 µs", "日本語", "\U0001F680", "C:\\data"}) {
    EXPECT_EQ(shown(text), text);
    EXPECT_EQ(shown_text(text), text);
    EXPECT_EQ(shown_output(text), text);
  }
}

TEST(Shown, WritesControlCharactersAsEscapes) {
  EXPECT_EQ(shown("\033[31mred\033[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(shown(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(shown("a\r\n\tb\x7f"), "a\\r\\n\\tb\\u007f");
  EXPECT_EQ(shown("\u0085 \u009b31m"), "\\u0085 \\u009b31m") << "C1, which terminals obey, too";
  EXPECT_EQ(shown("\u202eabc\u2066\u2028\ufeff"), "\\u202eabc\\u2066\\u2028\\ufeff");
}

TEST(Shown, WritesBytesThatAreNotUtf8AsEscapes) {
  EXPECT_EQ(shown("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(shown("\xc0\x80\xed\xa0\x80\xf8"), "\\xc0\\x80\\xed\\xa0\\x80\\xf8");
  EXPECT_EQ(shown("ab\xe2\x82"), "ab\\xe2\\x82") << "cut";
}

TEST(Shown, TextsKeepTheirLines) {
  EXPECT_EQ(shown_text("one\n\ttwo\r\033"), "one\n\ttwo\\r\\x1b");
  EXPECT_EQ(shown_text(R"({"a": "\u001b)"
                       "\u009b"
                       R"("})"),
            R"({"a": "\u001b\u009b"})");
}

TEST(Shown, OutputHasNoCommandsOfCiSystems) {
  EXPECT_EQ(shown_output("::error::x"), "\\::error::x");
  EXPECT_EQ(shown_output("a\n  ::set-output name=b::c\na::b"), "a\n  \\::set-output name=b::c\na::b");
  EXPECT_EQ(shown_output("x ##[group]y"), "x #\\#[group]y");
  EXPECT_EQ(shown_output("##vso[task.setvariable]"), "#\\#vso[task.setvariable]");
  EXPECT_EQ(shown_output("## heading [1]"), "## heading [1]");
}

TEST(Shown, IsSafeInXml) {
  EXPECT_EQ(xml_name("a<b>&\"'\n\001"), "a&lt;b&gt;&amp;&quot;&#39;\\n\\x01");
  EXPECT_EQ(xml_text("a\nb"), "a\nb");
}

TEST(Shown, DiagnosticsAreOneLine) {
  EXPECT_EQ((Diagnostic{"a\n::error::b.yaml", 1, 2, "x\033[2J", "unknown key 'y\nz'"}).text(),
            "a\\n::error::b.yaml:1:2: x\\x1b[2J: unknown key 'y\\nz'");
}

TEST(Shown, ShortenedTextsEndWithAWholeCharacter) {
  const std::string text = std::string(39, 'a') + "\u00b5" + "b";
  EXPECT_EQ(shortened(text), std::string(39, 'a') + "...");
  EXPECT_EQ(shortened(std::string(40, 'a')), std::string(40, 'a'));
  EXPECT_EQ(shortened(std::string(60, '\xff')), std::string(40, '\xff') + "...");
}

}  // namespace
}  // namespace tandem
