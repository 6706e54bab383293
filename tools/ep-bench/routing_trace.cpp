// trace:FILE, routing that was recorded in a serving engine. The form is described in routing.hpp.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tools/ep-bench/routing_hash.hpp"
#include "tools/ep-bench/routing_sources.hpp"

namespace railhead::bench {
namespace {

// One layer's tokens in file order, row-major.
struct TraceLayer {
  std::size_t tokens = 0;
  std::vector<std::int64_t> ids;
  std::vector<float> weights;
};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (std::size_t start = 0; start <= line.size();) {
    const std::size_t end = std::min(line.find(separator, start), line.size());
    fields.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return fields;
}

class TraceParser {
 public:
  TraceParser(std::string path, const RoutingOptions& options) : path_(std::move(path)), options_(options) {}

  Status parse(std::string_view text) {
    while (!text.empty()) {
      ++line_number_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      if (Status parsed = parse_line(line); !parsed.ok()) return parsed;
    }
    if (!header_seen_) return bad("the header line req,token,layer,e0.. is missing");
    if (layers_.empty()) return bad("no token line after the header");
    return {};
  }

  [[nodiscard]] const RoutingOptions& options() const { return options_; }

  std::vector<TraceLayer> take_layers() {
    std::vector<TraceLayer> out;
    for (auto& [number, layer] : layers_) out.push_back(std::move(layer));
    return out;
  }

 private:
  static constexpr std::size_t kFirstExpertColumn = 3;

  [[nodiscard]] Status bad(const std::string& what) const {
    return {Code::invalid_argument, path_ + ":" + std::to_string(line_number_) + ": " + what};
  }

  Status parse_line(std::string_view line) {
    if (line.front() == '#') return header_seen_ ? Status() : parse_comment(line.substr(1));
    return header_seen_ ? parse_token(line) : parse_header(line);
  }

  // Several `key=value` may share a line; what is no such pair is plain comment.
  Status parse_comment(std::string_view comment) {
    for (const std::string_view word : split(comment, ' ')) {
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = word.substr(0, equals);
      if (key != "routed_experts" && key != "top_k") continue;
      const auto value = parse_number<std::uint32_t>(word.substr(equals + 1));
      if (!value || *value == 0) return bad(std::string(word) + ": not a positive number");
      Status taken = take(std::string(key), *value, key == "top_k" ? options_.top_k : options_.experts);
      if (!taken.ok()) return taken;
    }
    return {};
  }

  // What the caller asked for must be what the file has; 0 asks for what the file has.
  Status take(const std::string& what, std::uint32_t in_file, std::uint32_t& asked) const {
    if (asked == 0) asked = in_file;
    if (asked == in_file) return {};
    return bad(what + " is " + std::to_string(in_file) + " in the trace, but " + std::to_string(asked) +
               " was asked for: leave the option out or give the same value");
  }

  Status parse_header(std::string_view line) {
    const auto names = split(line, ',');
    const auto counted = [&](std::size_t first, char letter) {
      std::uint32_t count = 0;
      while (first + count < names.size() && names[first + count] == letter + std::to_string(count)) ++count;
      return count;
    };
    const bool fixed_part =
        names.size() > kFirstExpertColumn && names[0] == "req" && names[1] == "token" && names[2] == "layer";
    const std::uint32_t experts = fixed_part ? counted(kFirstExpertColumn, 'e') : 0;
    const std::uint32_t weights = experts > 0 ? counted(kFirstExpertColumn + experts, 'w') : 0;
    if (experts == 0 || names.size() != kFirstExpertColumn + experts + weights ||
        (weights != 0 && weights != experts)) {
      return bad("the header must be req,token,layer,e0..e{k-1} and then nothing or w0..w{k-1}");
    }
    if (Status taken = take("top_k", experts, options_.top_k); !taken.ok()) return taken;
    if (options_.experts == 0) return bad("no line '# routed_experts=N' before the header: give the number of experts");
    if (Status shape = check_shape(options_); !shape.ok()) return bad(shape.message());
    header_seen_ = true;
    has_weights_ = weights != 0;
    columns_ = names.size();
    return {};
  }

  Status parse_token(std::string_view line) {
    const auto fields = split(line, ',');
    if (fields.size() != columns_) {
      return bad(std::to_string(fields.size()) + " fields, the header has " + std::to_string(columns_));
    }
    const auto number = parse_number<std::uint32_t>(fields[2]);
    if (!number) return bad("layer '" + std::string(fields[2]) + "' is not a number");
    TraceLayer& layer = layers_[*number];
    for (std::uint32_t slot = 0; slot < options_.top_k; ++slot) {
      const std::string_view field = fields[kFirstExpertColumn + slot];
      const auto id = parse_number<std::int64_t>(field);
      if (!id || *id < -1 || *id >= options_.experts) {
        return bad("e" + std::to_string(slot) + " is '" + std::string(field) + "', not an expert from 0 to " +
                   std::to_string(options_.experts - 1) + " or -1");
      }
      layer.ids.push_back(*id);
    }
    return add_weights(fields, layer);
  }

  Status add_weights(const std::vector<std::string_view>& fields, TraceLayer& layer) {
    const std::size_t first = layer.weights.size();
    layer.weights.resize(first + options_.top_k);
    const auto weights = std::span(layer.weights).subspan(first);
    if (!has_weights_) hashed_weights(layer.tokens, weights);
    for (std::size_t slot = 0; has_weights_ && slot < weights.size(); ++slot) {
      const std::string_view field = fields[kFirstExpertColumn + options_.top_k + slot];
      const auto weight = parse_number<float>(field);
      if (!weight || !std::isfinite(*weight)) {
        return bad("w" + std::to_string(slot) + " is '" + std::string(field) + "', not a finite number");
      }
      weights[slot] = *weight;
    }
    ++layer.tokens;
    return {};
  }

  std::string path_;
  RoutingOptions options_;
  std::size_t line_number_ = 0;
  bool header_seen_ = false;
  bool has_weights_ = false;
  std::size_t columns_ = 0;
  std::map<std::uint32_t, TraceLayer> layers_;
};

class TraceRouting final : public RoutingSource {
 public:
  TraceRouting(const RoutingOptions& options, std::vector<TraceLayer> layers)
      : RoutingSource(options), layers_(std::move(layers)) {}

 private:
  void fill(std::uint32_t rank, std::uint64_t round, Routing& out) const override {
    const TraceLayer& layer = layers_[round % layers_.size()];
    const std::size_t start = hash_words({options().seed, rank, round}) % layer.tokens;
    for (std::uint32_t token = 0; token < out.tokens; ++token) {
      const std::size_t from = (start + token) % layer.tokens * top_k();
      const std::size_t to = std::size_t{token} * top_k();
      std::copy_n(&layer.ids[from], top_k(), &out.ids[to]);
      std::copy_n(&layer.weights[from], top_k(), &out.weights[to]);
    }
  }

  std::vector<TraceLayer> layers_;
};

}  // namespace

RoutingResult open_trace(const std::string& path, const RoutingOptions& options) {
  const auto text = read_maybe_gzip(path);
  if (!text) return fail(text.error());
  TraceParser parser(path, options);
  if (Status parsed = parser.parse(*text); !parsed.ok()) return fail(std::move(parsed));
  return std::make_unique<TraceRouting>(parser.options(), parser.take_layers());
}

}  // namespace railhead::bench
