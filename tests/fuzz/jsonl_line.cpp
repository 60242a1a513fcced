// Lines of JSON Lines against nlohmann/json: the same lines are accepted, with the same tokens.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/json/token_line.hpp>

#include "fuzz/fuzz.hpp"

namespace {

using json = nlohmann::json;
using lanepack::target_key;
using lanepack_test::fuzz_check;

/// What nlohmann/json sees: the values of the keys at the top, how often each occurs, and how it
/// ended.
struct oracle : nlohmann::json_sax<json> {
  struct field {
    int count = 0;
    bool is_null = false;
    bool is_array = false;
    /// False for anything else than integers of 32 bits.
    bool is_good = true;
    std::vector<std::int64_t> values;
  };

  std::map<std::string, field> fields;
  field* current = nullptr;
  int depth = 0;
  bool is_object = false;
  bool undecided = false;

  bool scalar(bool null, std::optional<std::int64_t> number) {
    if (depth == 1 && current != nullptr) {
      current->is_null = null;
      current = nullptr;
    } else if (current != nullptr && current->is_array) {
      if (depth == 2 && number && *number >= -2147483647 && *number <= 2147483647) {
        current->values.push_back(*number);
      } else {
        current->is_good = false;
      }
    }
    return true;
  }
  bool null() override { return scalar(true, {}); }
  bool boolean(bool) override { return scalar(false, {}); }
  bool number_integer(std::int64_t value) override { return scalar(false, value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > 2147483647) return scalar(false, {});
    return scalar(false, static_cast<std::int64_t>(value));
  }
  bool number_float(double, const std::string&) override { return scalar(false, {}); }
  bool string(std::string&) override { return scalar(false, {}); }
  bool binary(binary_t&) override { return scalar(false, {}); }
  bool start_object(std::size_t) override {
    if (depth == 0) is_object = true;
    if (depth == 1) current = nullptr;
    if (depth > 1 && current != nullptr) current->is_good = false;
    ++depth;
    return true;
  }
  bool end_object() override {
    --depth;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth == 1 && current != nullptr) current->is_array = true;
    if (depth > 1 && current != nullptr) current->is_good = false;
    ++depth;
    return true;
  }
  bool end_array() override {
    if (--depth == 1) current = nullptr;
    return true;
  }
  bool key(std::string& name) override {
    if (depth != 1) return true;
    current = nullptr;
    if (name != "input_ids" && name != "tokens" && name != "labels" && name != "loss_mask") {
      return true;
    }
    field& found = fields[name];
    // A repeated key is refused, whatever its value.
    if (found.count++ == 0) current = &found;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    // A number beyond doubles and a lone surrogate are JSON, but it does not read on after them.
    undecided =
        e.id == 406 || std::string_view(e.what()).find("surrogate") != std::string_view::npos;
    return false;
  }
};

struct expected_line {
  std::vector<std::int64_t> tokens;
  std::vector<std::uint8_t> mask;
};

/// What the documentation says of a line, or nullopt where it has to be refused.
std::optional<expected_line> expect(const oracle& seen, target_key targets) {
  const auto find = [&](const char* name) -> const oracle::field* {
    const auto found = seen.fields.find(name);
    return found == seen.fields.end() ? nullptr : &found->second;
  };
  const oracle::field* ids = find("input_ids");
  const oracle::field* other = find("tokens");
  const bool automatic = targets == target_key::automatic;
  const oracle::field* labels =
      automatic || targets == target_key::labels ? find("labels") : nullptr;
  const oracle::field* mask =
      automatic || targets == target_key::loss_mask ? find("loss_mask") : nullptr;
  for (const oracle::field* one : {ids, other, labels, mask}) {
    if (one != nullptr && one->count > 1) return std::nullopt;
  }
  if (!seen.is_object) return std::nullopt;
  const oracle::field* tokens = ids == nullptr || (ids->is_null && other != nullptr) ? other : ids;
  if (tokens == nullptr || !tokens->is_array || !tokens->is_good) return std::nullopt;
  if (tokens == ids && other != nullptr && other->is_array && other->is_good) return std::nullopt;
  for (const std::int64_t id : tokens->values) {
    if (id < 0) return std::nullopt;
  }
  if (labels != nullptr && labels->is_null) labels = nullptr;
  if (mask != nullptr && mask->is_null) mask = nullptr;
  if (labels != nullptr && mask != nullptr) return std::nullopt;
  expected_line line;
  line.tokens = tokens->values;
  line.mask.assign(line.tokens.size(), 1);
  if (labels == nullptr && mask == nullptr) {
    if (targets == target_key::labels || targets == target_key::loss_mask) return std::nullopt;
    return line;
  }
  const oracle::field& marks = labels != nullptr ? *labels : *mask;
  if (!marks.is_array || !marks.is_good || marks.values.size() != line.tokens.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < line.tokens.size(); ++i) {
    const std::int64_t mark = marks.values[i];
    if (labels != nullptr ? mark != -100 && mark != line.tokens[i] : mark != 0 && mark != 1) {
      return std::nullopt;
    }
    line.mask[i] = labels != nullptr ? mark != -100 : mark == 1;
  }
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto targets = static_cast<target_key>(data[0] & 3);
  const std::string_view line(reinterpret_cast<const char*>(data) + 1, size - 1);

  static lanepack::token_line_parser kept;
  kept = lanepack::token_line_parser({.token_key = {}, .targets = targets});
  // A copy of the exact size, so that a sanitizer sees a read past the end.
  const std::vector<char> exact(line.begin(), line.end());
  const bool good = kept.parse({exact.data(), exact.size()});
  if (!good) {
    fuzz_check(kept.fault().offset <= line.size(), "the fault lies in the line");
    fuzz_check(!kept.fault().what.empty(), "the fault has a text");
  }

  // It takes a NUL for the end of the text and passes over a byte order mark.
  if (line.find('\0') != std::string_view::npos) return 0;
  if (line.starts_with("\xef\xbb\xbf")) {
    fuzz_check(!good, "a byte order mark is not part of a line");
    return 0;
  }
  oracle seen;
  const bool is_json = json::sax_parse(line, &seen);
  if (seen.undecided) return 0;
  const std::optional<expected_line> wanted = is_json ? expect(seen, targets) : std::nullopt;
  fuzz_check(good == wanted.has_value(), "the same lines are accepted");
  if (!good) {
    const bool malformed = std::string_view(kept.fault().what).starts_with("malformed JSON");
    // Of a line with two faults either may be reported.
    fuzz_check(!malformed || !is_json, "only what is not JSON is called malformed");
    return 0;
  }
  fuzz_check(kept.tokens().size() == wanted->tokens.size(), "as many tokens");
  std::vector<std::uint8_t> mask(kept.tokens().size());
  kept.copy_loss_mask(0, mask);
  std::uint64_t loss_tokens = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    fuzz_check(kept.tokens()[i] == wanted->tokens[i], "the same tokens");
    fuzz_check(mask[i] == wanted->mask[i], "the same marks");
    loss_tokens += i != 0 && mask[i] != 0 ? 1 : 0;
  }
  fuzz_check(kept.loss_tokens() == loss_tokens, "as many loss tokens");
  return 0;
}
