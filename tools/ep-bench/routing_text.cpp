// text:FILE, hash layers: each word's id picks its experts by fixed hashes, so real language gives real skew.
#include <algorithm>
#include <utility>
#include <vector>

#include "tools/ep-bench/routing_hash.hpp"
#include "tools/ep-bench/routing_sources.hpp"

namespace railhead::bench {
namespace {

// ASCII letters and digits, and every byte of a multi-byte UTF-8 character.
bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::vector<std::uint64_t> word_ids(const std::string& text) {
  std::vector<std::uint64_t> ids;
  std::string word;
  const auto end_of_word = [&] {
    if (!word.empty()) ids.push_back(hash_text(word));
    word.clear();
  };
  for (const char c : text) {
    if (is_word_byte(c)) {
      word.push_back(to_lower(c));
    } else {
      end_of_word();
    }
  }
  end_of_word();
  return ids;
}

class TextRouting final : public RoutingSource {
 public:
  TextRouting(const RoutingOptions& options, std::vector<std::uint64_t> words)
      : RoutingSource(options), words_(std::move(words)) {}

 private:
  void fill(std::uint32_t rank, std::uint64_t round, Routing& out) const override {
    const std::size_t start = hash_words({options().seed, rank, round}) % words_.size();
    for (std::uint32_t token = 0; token < out.tokens; ++token) {
      const std::uint64_t word = words_[(start + token) % words_.size()];
      const std::size_t first = std::size_t{token} * top_k();
      pick_experts(word, std::span(out.ids).subspan(first, top_k()));
      hashed_weights(word, std::span(out.weights).subspan(first, top_k()));
    }
  }

  // One hash per slot; a taken expert moves on to the next free one.
  void pick_experts(std::uint64_t word, std::span<std::int64_t> ids) const {
    for (std::size_t slot = 0; slot < ids.size(); ++slot) {
      auto expert = static_cast<std::int64_t>(hash_words({word, slot}) % experts());
      const auto taken = ids.first(slot);
      while (std::find(taken.begin(), taken.end(), expert) != taken.end()) expert = (expert + 1) % experts();
      ids[slot] = expert;
    }
  }

  std::vector<std::uint64_t> words_;
};

}  // namespace

RoutingResult open_text(const std::string& path, const RoutingOptions& options) {
  if (Status shape = check_shape(options); !shape.ok()) return fail(std::move(shape));
  const auto text = read_maybe_gzip(path);
  if (!text) return fail(text.error());
  std::vector<std::uint64_t> words = word_ids(*text);
  if (words.empty()) return fail(Code::invalid_argument, path + ": no words in the file");
  return std::make_unique<TextRouting>(options, std::move(words));
}

}  // namespace railhead::bench
