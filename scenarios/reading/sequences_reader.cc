#include "scenarios/reading/sequences_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "scenarios/reading/number_list.h"
#include "scenarios/scenario/named_files.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostLength = std::int64_t{1} << 40;

std::vector<std::int64_t> read_lengths(const YamlReader& lengths, const std::filesystem::path& folder) {
  std::vector<std::int64_t> read;
  if (lengths.is_map()) {
    lengths.error("expected a list of numbers, or a file with them, found the map");
  } else if (lengths.is_list()) {
    for (const YamlReader& length : lengths.list()) read.push_back(length.whole_number(1, kMostLength, 1));
    if (read.empty()) lengths.error("needs the length of at least one document");
  } else if (const auto file = existing_file(lengths, folder)) {
    const std::vector<double> numbers = included(lengths, [&] {
      return read_number_list(*file, {.what = "the number of tokens of a document",
                                      .whole = "numbers of tokens",
                                      .least = 1,
                                      .most = static_cast<double>(kMostLength),
                                      .is_whole = true});
    });
    for (const double number : numbers) read.push_back(static_cast<std::int64_t>(number));
  }
  return read;
}

// The pairs of a token and one that it sees, itself included, in a document whose tokens see at most `window`.
double pairs_of(std::int64_t length, std::int64_t window) {
  const auto tokens = static_cast<double>(length), seen = static_cast<double>(std::min(length, window));
  return seen * tokens - seen * (seen - 1) / 2;
}

// Documents keep their order; one that does not fit into what is left of a sequence begins the next one.
std::int64_t sequences_of(const std::vector<std::int64_t>& documents, std::int64_t tokens) {
  std::int64_t sequences = 0, left = 0;
  for (const std::int64_t length : documents) {
    if (length > left) {
      ++sequences;
      left = tokens;
    }
    left -= length;
  }
  return sequences;
}

}  // namespace

void read_sequences(const YamlReader& map, const std::filesystem::path& folder, LayersSettings& layers) {
  if (!map) return;
  const YamlReader lengths = map.required("lengths");
  const std::vector<std::int64_t> documents = read_lengths(lengths, folder);
  if (documents.empty() || layers.model.layers.empty()) return;
  const auto is_causal = [](const Layer& layer) {
    return layer.scores != Layer::Scores::none && layer.gemm->attended < 1;
  };
  const auto first = std::ranges::find_if(layers.model.layers, is_causal);
  if (first == layers.model.layers.end()) {
    return map.error(
        fmt::format("is for causal attention (`causal: true`), which model '{}' does not have", layers.model.name));
  }
  if (layers.stack.keeps_scores()) {
    return map.error("is for kernels of attention that leave out what a mask hides: stack: {attention: flash}");
  }
  const std::int64_t tokens = first->gemm->rows;
  const auto longest = std::ranges::max_element(documents);
  if (*longest > tokens) {
    return lengths.error(fmt::format("document {} has {} tokens, and a sequence has {}",
                                     longest - documents.begin() + 1, *longest, tokens));
  }
  PackedSequences packed{.documents = std::ssize(documents),
                         .sequences = sequences_of(documents, tokens),
                         .sequence_tokens = tokens,
                         .tokens = std::accumulate(documents.begin(), documents.end(), std::int64_t{0})};
  for (Layer& layer : layers.model.layers) {
    if (!is_causal(layer)) continue;
    Layer::Gemm& gemm = *layer.gemm;
    const std::int64_t keys = layer.scores == Layer::Scores::made ? gemm.columns : gemm.depth;
    double pairs = 0;
    for (const std::int64_t length : documents) pairs += pairs_of(length, keys);
    const double of_sequence = pairs / static_cast<double>(packed.sequences);
    if (&layer == &*first) packed.pairs = of_sequence / pairs_of(tokens, keys);
    gemm.attended = of_sequence / (static_cast<double>(gemm.rows) * static_cast<double>(keys));
  }
  layers.packed = packed;
}

}  // namespace tandem
