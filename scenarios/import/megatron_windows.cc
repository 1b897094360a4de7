#include "scenarios/import/megatron_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "scenarios/import/layer_expressions.h"

namespace tandem {

void set_windows(const Flags& flags, std::vector<BlockSpec>& blocks) {
  if (!flags.is_on("window_size")) return;
  std::string text = flags.text("window_size");
  text.erase(0, std::min(text.find_first_not_of("([ "), text.size()));
  std::int64_t before = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), before);
  constexpr std::int64_t kMostTokens = 1 << 24;
  const bool has_more = std::string_view(end).find_first_not_of(",)] 0123456789-") != std::string_view::npos;
  if (error != std::errc{} || has_more || before < -1 || before > kMostTokens) {
    flags.fail("window_size", fmt::format("expected how many tokens before it a token sees, found '{}'", text));
  }
  if (before < 0) return;  // all of them
  const std::string skipped = flags.text("window_attn_skip_freq");
  std::vector<bool> has_window(blocks.size(), true);
  if (skipped.find('[') != std::string::npos) {
    has_window.clear();
    if (!expand_list(skipped, blocks.size(), has_window)) {
      flags.fail("window_attn_skip_freq",
                 fmt::format("'{}' does not give 0 or 1 for each of {} layers", skipped, blocks.size()));
    }
  } else if (const std::int64_t every = flags.number("window_attn_skip_freq", 0); every > 0) {
    for (std::size_t i = 0; i < blocks.size(); ++i) has_window[i] = (i + 1) % static_cast<std::size_t>(every) != 0;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (has_window[i]) blocks[i].attention->window = before + 1;
  }
}

}  // namespace tandem
