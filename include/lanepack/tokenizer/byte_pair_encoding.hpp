#pragma once

/// @file
/// Byte-level byte pair encoding out of a vocabulary and ranked merges held in memory.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/tokenizer/added_tokens.hpp>
#include <lanepack/tokenizer/concept.hpp>
#include <lanepack/tokenizer/normalization.hpp>
#include <lanepack/tokenizer/pre_tokenizer.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// Two neighbouring tokens and the token that replaces them.
struct byte_pair_merge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t merged = 0;

  friend bool operator==(const byte_pair_merge&, const byte_pair_merge&) = default;
};

/// Tokens and merges of a `byte_pair_encoding`.
struct byte_pair_vocabulary {
  /// Bytes of every token; its place is its id. Empty: the id has no meaning here. At most 2^21.
  std::vector<std::string> tokens;
  /// Best first. Of merges of the same pair the last counts.
  std::vector<byte_pair_merge> merges;
  /// Tokens that are found in text before anything else. Such a token may be among `tokens` too.
  std::vector<added_token> added;
  /// More tokens, with their ids, that no text becomes: `decode` knows them.
  std::vector<std::pair<std::int32_t, std::string>> decoded_only;
};

/// What is done to text before it is split into pieces.
enum class text_normalization : std::uint8_t {
  /// Nothing.
  none,
  /// Normalization form C, as Qwen's models want it.
  nfc,
};

/// How a `byte_pair_encoding` treats text.
struct byte_pair_options {
  /// How text is split into pieces; merges never cross a piece's end.
  split_pattern split = split_pattern::gpt2;
  text_normalization normalization = text_normalization::none;
  /// Text that does not start with a space is given one.
  bool add_prefix_space = false;
  /// A piece that is a token is that token, whatever the merges say (Llama 3).
  bool ignore_merges = false;
};

namespace detail {

/// Ids of byte strings, for look-ups alone.
class token_table {
 public:
  /// @param tokens  Stay where they are and as they are for the life of the table.
  void build(const std::vector<std::string>& tokens, const std::vector<bool>& listed) {
    std::size_t count = 0;
    for (const bool each : listed) count += each ? 1 : 0;
    const std::size_t slots = std::bit_ceil(2 * count + 2);
    shift_ = 64 - static_cast<int>(std::bit_width(slots - 1));
    mask_ = slots - 1;
    slots_.assign(slots, {});
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (!listed[id]) continue;
      const key wanted = key_of(tokens[id]);
      std::size_t at = place_of(wanted);
      while (slots_[at].id >= 0) at = (at + 1) & mask_;
      slots_[at] = {wanted, static_cast<std::int32_t>(id)};
    }
  }

  /// The id of `bytes`, which are not empty; -1 where they are no token.
  [[nodiscard]] std::int32_t find(std::string_view bytes,
                                  const std::vector<std::string>& tokens) const noexcept {
    const key wanted = key_of(bytes);
    for (std::size_t at = place_of(wanted);; at = (at + 1) & mask_) {
      const slot& each = slots_[at];
      if (each.id < 0) return -1;
      if (each.name == wanted &&
          (bytes.size() <= 16 || tokens[static_cast<std::size_t>(each.id)] == bytes)) {
        return each.id;
      }
    }
  }

 private:
  /// Up to 16 bytes are their own key.
  struct key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::uint32_t size = 0;

    friend bool operator==(const key&, const key&) = default;
  };
  struct slot {
    key name;
    std::int32_t id = -1;
  };

  static std::uint64_t load(const char* p, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, p, bytes);
    return value;
  }

  static key key_of(std::string_view bytes) noexcept {
    const std::size_t size = bytes.size();
    key out;
    out.size = static_cast<std::uint32_t>(size);
    const char* const p = bytes.data();
    if (size >= 8) {
      out.low = load(p, 8);
      out.high = load(p + size - 8, 8);
      for (std::size_t i = 8; size > 16 && i + 8 < size; i += 8) {
        out.low = (std::rotl(out.low, 29) ^ load(p + i, 8)) * 0x9e3779b97f4a7c15;
      }
    } else if (size >= 4) {
      out.low = load(p, 4) | load(p + size - 4, 4) << 32;
    } else {
      const auto byte = [p](std::size_t i) {
        return std::uint64_t{static_cast<unsigned char>(p[i])};
      };
      out.low = byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16;
    }
    return out;
  }

  [[nodiscard]] std::size_t place_of(const key& wanted) const noexcept {
    const std::uint64_t mixed =
        (wanted.low ^ std::rotl(wanted.high * 0x9fb21c651e98df25, 32) ^ wanted.size) *
        0x9e3779b97f4a7c15;
    return static_cast<std::size_t>((mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9 >> shift_);
  }

  std::vector<slot> slots_;
  int shift_ = 63;
  std::size_t mask_ = 0;
};

/// Rank and result of the merge of two tokens.
class merge_table {
 public:
  static constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();

  struct merge {
    std::uint32_t rank = no_rank;
    std::int32_t merged = -1;
  };

  void build(const std::vector<byte_pair_merge>& merges) {
    const std::size_t slots = std::bit_ceil(2 * merges.size() + 2);
    shift_ = 64 - static_cast<int>(std::bit_width(slots - 1));
    mask_ = slots - 1;
    slots_.assign(slots, {});
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const std::uint64_t wanted = key_of(merges[rank].left, merges[rank].right);
      std::size_t at = place_of(wanted);
      while (slots_[at].pair != no_pair && slots_[at].pair != wanted) at = (at + 1) & mask_;
      slots_[at] = {wanted, {static_cast<std::uint32_t>(rank), merges[rank].merged}};
    }
  }

  [[nodiscard]] merge find(std::int32_t left, std::int32_t right) const noexcept {
    const std::uint64_t wanted = key_of(left, right);
    for (std::size_t at = place_of(wanted);; at = (at + 1) & mask_) {
      const slot& each = slots_[at];
      if (each.pair == wanted) return each.what;
      if (each.pair == no_pair) return {};
    }
  }

 private:
  static constexpr std::uint64_t no_pair = std::numeric_limits<std::uint64_t>::max();

  struct slot {
    std::uint64_t pair = no_pair;
    merge what;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  [[nodiscard]] std::size_t place_of(std::uint64_t wanted) const noexcept {
    const std::uint64_t mixed = wanted * 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>((mixed ^ (mixed >> 32)) * 0xbf58476d1ce4e5b9 >> shift_);
  }

  std::vector<slot> slots_;
  int shift_ = 63;
  std::size_t mask_ = 0;
};

}  // namespace detail

/// Byte-level byte pair encoding as GPT-2 introduced it; models `tokenizer`.
///
/// Text is cut at added tokens, normalized, split into pieces, and in each piece the neighbours
/// whose merge ranks best are replaced, the leftmost first, until no merge is left (Sennrich,
/// Haddow and Birch 2016; on bytes as in Radford et al. 2019). Special tokens are not looked for in
/// text; other added tokens are. `decode(encode(text))` is `text` where nothing is normalized,
/// stripped or prefixed. Nothing is kept from one call to the next.
/// @complexity  `encode` takes O(bytes), and O(n log n) in a piece of n bytes that is no token;
///              short pieces are merged in O(n^2) of at most 64. Construction encodes every token.
/// @thread_safety  Const members may be called by any number of threads.
class byte_pair_encoding {
 public:
  /// Most tokens of a vocabulary.
  static constexpr std::size_t max_tokens = std::size_t{1} << 21;

  /// @throws invalid_option  Named `tokens`, `merges`, `added` or `decoded_only`: a byte has no
  /// token, two tokens
  ///         have the same bytes, ids are out of range, a merge's tokens do not make up its result,
  ///         or an added token is empty, there twice or has the id of another token.
  explicit byte_pair_encoding(byte_pair_vocabulary vocabulary,
                              const byte_pair_options& options = {})
      : options_(options), tokens_(std::move(vocabulary.tokens)) {
    check_tokens();
    check_merges(vocabulary.merges);
    merges_.build(vocabulary.merges);
    find_byte_tokens();
    std::vector<bool> listed(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) listed[id] = is_whole(id);
    whole_.build(tokens_, listed);
    take_decoded_only(vocabulary.decoded_only);
    take_added(std::move(vocabulary.added));
  }

  [[nodiscard]] const byte_pair_options& options() const noexcept { return options_; }
  /// In the order of the vocabulary.
  [[nodiscard]] const std::vector<added_token>& added_tokens() const noexcept { return added_; }

  /// Appends the ids of a text.
  /// @throws data_error  A piece has 2^32 bytes or more.
  void encode(std::string_view text, std::vector<std::int32_t>& out) const {
    workspace work;
    raw_.split(
        text, [&](std::string_view part) { encode_part(part, work, out); },
        [&](std::int32_t id) { out.push_back(id); });
  }

  /// @throws state_error  An id has no meaning.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) {
      const auto index = static_cast<std::size_t>(id);
      if (id < 0 || index >= tokens_.size() || tokens_[index].empty()) {
        detail::throw_unknown_token(id, vocabulary_size());
      }
      text += tokens_[index];
    }
    return text;
  }

  /// One more than the largest id.
  [[nodiscard]] std::uint64_t vocabulary_size() const noexcept { return tokens_.size(); }

  /// Of all added tokens, special or not.
  [[nodiscard]] std::optional<std::int32_t> special_token(std::string_view text) const {
    for (const added_token& each : added_) {
      if (each.text == text) return each.id;
    }
    return std::nullopt;
  }

 private:
  // Up to here the best merge is looked for from left to right.
  static constexpr std::size_t short_piece = 64;

  /// Memory of one call.
  struct workspace {
    detail::nfc_normalizer normalizer;
    std::string normalized;
    std::string prefixed;
    std::vector<std::int32_t> ids;
    std::vector<std::uint32_t> next;
    std::vector<std::uint32_t> previous;
    std::vector<std::uint64_t> heap;
  };

  void check_tokens() const {
    if (tokens_.size() > max_tokens) {
      detail::throw_invalid_option("tokens", std::to_string(tokens_.size()),
                                   "at most " + std::to_string(max_tokens));
    }
    std::vector<std::uint32_t> order;
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (!tokens_[id].empty()) order.push_back(static_cast<std::uint32_t>(id));
    }
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const int compared = tokens_[a].compare(tokens_[b]);
      return compared != 0 ? compared < 0 : a < b;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (tokens_[order[i - 1]] != tokens_[order[i]]) continue;
      detail::throw_invalid_option("tokens",
                                   "ids " + std::to_string(order[i - 1]) + " and " +
                                       std::to_string(order[i]) + " with the same bytes",
                                   "different tokens");
    }
  }

  void check_merges(const std::vector<byte_pair_merge>& merges) const {
    if (merges.size() >= detail::merge_table::no_rank) {
      detail::throw_invalid_option("merges", std::to_string(merges.size()), "fewer than 2^32 - 1");
    }
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const byte_pair_merge& merge = merges[rank];
      for (const std::int32_t id : {merge.left, merge.right, merge.merged}) {
        if (id >= 0 && static_cast<std::size_t>(id) < tokens_.size() &&
            !tokens_[static_cast<std::size_t>(id)].empty()) {
          continue;
        }
        detail::throw_invalid_option(
            "merges", "the id " + std::to_string(id) + " in merge " + std::to_string(rank),
            "ids of tokens");
      }
      const std::string& left = tokens_[static_cast<std::size_t>(merge.left)];
      const std::string& right = tokens_[static_cast<std::size_t>(merge.right)];
      const std::string& merged = tokens_[static_cast<std::size_t>(merge.merged)];
      if (merged.size() == left.size() + right.size() && merged.starts_with(left) &&
          merged.ends_with(right)) {
        continue;
      }
      detail::throw_invalid_option("merges",
                                   "token " + std::to_string(merge.merged) +
                                       " as the result of merge " + std::to_string(rank),
                                   "the bytes of tokens " + std::to_string(merge.left) + " and " +
                                       std::to_string(merge.right));
    }
  }

  void find_byte_tokens() {
    bytes_.fill(-1);
    for (std::size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].size() != 1) continue;
      bytes_[static_cast<unsigned char>(tokens_[id][0])] = static_cast<std::int32_t>(id);
    }
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
      if (bytes_[byte] >= 0) continue;
      detail::throw_invalid_option("tokens", "none for the byte " + std::to_string(byte),
                                   "a token for each of the 256 bytes");
    }
  }

  /// True where a piece of the token's bytes is encoded as that token.
  [[nodiscard]] bool is_whole(std::size_t id) const {
    if (tokens_[id].empty()) return false;
    if (options_.ignore_merges || tokens_[id].size() == 1) return true;
    workspace work;
    std::vector<std::int32_t> ids;
    merge_piece(tokens_[id], work, ids);
    return ids.size() == 1 && ids[0] == static_cast<std::int32_t>(id);
  }

  void take_decoded_only(std::vector<std::pair<std::int32_t, std::string>>& more) {
    for (auto& [id, text] : more) {
      if (id < 0 || static_cast<std::size_t>(id) >= max_tokens || !set_token(id, text)) {
        detail::throw_invalid_option("decoded_only", "the id " + std::to_string(id),
                                     "an id of its own below " + std::to_string(max_tokens));
      }
    }
  }

  /// False where the id is that of another token.
  bool set_token(std::int32_t id, const std::string& text) {
    const auto index = static_cast<std::size_t>(id);
    if (index >= tokens_.size()) tokens_.resize(index + 1);
    if (!tokens_[index].empty()) return tokens_[index] == text;
    tokens_[index] = text;
    return true;
  }

  void take_added(std::vector<added_token> added) {
    detail::check_added_tokens(added, max_tokens);
    std::vector<detail::added_pattern> raw;
    std::vector<detail::added_pattern> normalized;
    for (const added_token& each : added) {
      if (!set_token(each.id, each.text)) {
        detail::throw_invalid_option(
            "added", detail::quoted(each.text) + " with the id " + std::to_string(each.id),
            "an id that no other token has");
      }
      detail::added_pattern pattern{each, each.text};
      if (each.normalized && options_.normalization == text_normalization::nfc) {
        pattern.wanted = normalize_nfc(each.text);
      }
      (each.normalized ? normalized : raw).push_back(std::move(pattern));
    }
    raw_ = detail::added_token_splitter(std::move(raw));
    normalized_ = detail::added_token_splitter(std::move(normalized));
    added_ = std::move(added);
  }

  void encode_part(std::string_view text, workspace& work, std::vector<std::int32_t>& out) const {
    if (options_.normalization == text_normalization::nfc) {
      text = work.normalizer.normalize(text, work.normalized);
    }
    normalized_.split(
        text, [&](std::string_view part) { encode_ordinary(part, work, out); },
        [&](std::int32_t id) { out.push_back(id); });
  }

  void encode_ordinary(std::string_view text, workspace& work,
                       std::vector<std::int32_t>& out) const {
    if (options_.add_prefix_space && !text.starts_with(' ')) {
      work.prefixed.assign(1, ' ').append(text);
      text = work.prefixed;
    }
    for_each_piece(options_.split, text, [&](std::string_view piece) {
      if (piece.size() == 1) {
        out.push_back(bytes_[static_cast<unsigned char>(piece[0])]);
        return;
      }
      const std::int32_t id = whole_.find(piece, tokens_);
      if (id >= 0) {
        out.push_back(id);
      } else {
        merge_piece(piece, work, out);
      }
    });
  }

  void merge_piece(std::string_view piece, workspace& work, std::vector<std::int32_t>& out) const {
    if (piece.size() <= short_piece) {
      merge_short(piece, out);
    } else {
      merge_long(piece, work, out);
    }
  }

  void merge_short(std::string_view piece, std::vector<std::int32_t>& out) const {
    using merge = detail::merge_table::merge;
    std::array<std::int32_t, short_piece> ids;
    std::array<merge, short_piece> with_next;
    std::size_t count = piece.size();
    for (std::size_t i = 0; i < count; ++i) ids[i] = bytes_[static_cast<unsigned char>(piece[i])];
    for (std::size_t i = 0; i + 1 < count; ++i) with_next[i] = merges_.find(ids[i], ids[i + 1]);
    while (count > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < count; ++i) {
        if (with_next[i].rank < with_next[best].rank) best = i;
      }
      if (with_next[best].rank == detail::merge_table::no_rank) break;
      ids[best] = with_next[best].merged;
      --count;
      for (std::size_t i = best + 1; i < count; ++i) {
        ids[i] = ids[i + 1];
        with_next[i - 1] = with_next[i];
      }
      if (best + 1 < count) with_next[best] = merges_.find(ids[best], ids[best + 1]);
      if (best > 0) with_next[best - 1] = merges_.find(ids[best - 1], ids[best]);
    }
    out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  }

  /// The same with a heap of merges and a list of tokens; a merge that is no longer there when its
  /// turn comes is passed over.
  void merge_long(std::string_view piece, workspace& work, std::vector<std::int32_t>& out) const {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    if (piece.size() >= none) {
      detail::throw_data_error({}, "found a piece of text of " + std::to_string(piece.size()) +
                                       " bytes, expected fewer than 2^32 - 1");
    }
    const auto count = static_cast<std::uint32_t>(piece.size());
    work.ids.resize(count);
    work.next.resize(count);
    work.previous.resize(count);
    work.heap.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      work.ids[i] = bytes_[static_cast<unsigned char>(piece[i])];
      work.next[i] = i + 1 < count ? i + 1 : none;
      work.previous[i] = i - 1;
    }
    const auto later = std::greater<>();
    const auto entry_of = [&](std::uint32_t at) -> std::optional<std::uint64_t> {
      const auto merge = merges_.find(work.ids[at], work.ids[work.next[at]]);
      if (merge.rank == detail::merge_table::no_rank) return std::nullopt;
      return std::uint64_t{merge.rank} << 32 | at;
    };
    const auto push = [&](std::uint32_t at) {
      const auto entry = entry_of(at);
      if (!entry) return;
      work.heap.push_back(*entry);
      std::push_heap(work.heap.begin(), work.heap.end(), later);
    };
    for (std::uint32_t i = 0; i + 1 < count; ++i) {
      if (const auto entry = entry_of(i)) work.heap.push_back(*entry);
    }
    std::make_heap(work.heap.begin(), work.heap.end(), later);
    while (!work.heap.empty()) {
      const std::uint64_t entry = work.heap.front();
      std::pop_heap(work.heap.begin(), work.heap.end(), later);
      work.heap.pop_back();
      const auto at = static_cast<std::uint32_t>(entry);
      if (work.ids[at] < 0 || work.next[at] == none) continue;
      const std::uint32_t right = work.next[at];
      const auto merge = merges_.find(work.ids[at], work.ids[right]);
      if (merge.rank != entry >> 32) continue;
      work.ids[at] = merge.merged;
      work.ids[right] = -1;
      work.next[at] = work.next[right];
      if (work.next[at] != none) {
        work.previous[work.next[at]] = at;
        push(at);
      }
      if (work.previous[at] != none) push(work.previous[at]);
    }
    for (std::uint32_t at = 0; at != none; at = work.next[at]) out.push_back(work.ids[at]);
  }

  byte_pair_options options_;
  std::vector<std::string> tokens_;
  std::array<std::int32_t, 256> bytes_{};
  detail::merge_table merges_;
  detail::token_table whole_;
  std::vector<added_token> added_;
  detail::added_token_splitter raw_;
  detail::added_token_splitter normalized_;
};

static_assert(tokenizer<byte_pair_encoding>);

}  // namespace lanepack::inline LANEPACK_ABI
