#pragma once

/// @file
/// Saved states of runs: JSON for people, CBOR for machines, the same document in both.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/json/object.hpp>
#include <lanepack/loader/run_state.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// How a state is written.
enum class state_format : std::uint8_t {
  /// Indented text.
  json,
  /// RFC 8949: about 10 bytes a record held, two fifths of the text.
  cbor,
};

namespace detail {

inline constexpr const char* run_state_key = "lanepack_run_state";
inline constexpr std::uint64_t run_state_version = 1;

/// Sees a document go by and stops it where it is nested deeper than a state ever is: the parser of
/// CBOR calls itself for every level.
class nesting_check {
 public:
  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(std::int64_t /*value*/) { return true; }
  bool number_unsigned(std::uint64_t /*value*/) { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) { return true; }
  bool string(std::string& /*value*/) { return true; }
  bool binary(nlohmann::json::binary_t& /*value*/) { return true; }
  bool key(std::string& /*value*/) { return true; }
  bool start_object(std::size_t /*elements*/) { return ++depth_ <= most; }
  bool end_object() { return --depth_, true; }
  bool start_array(std::size_t /*elements*/) { return ++depth_ <= most; }
  bool end_array() { return --depth_, true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    position_ = position;
    what_ = error.what();
    return false;
  }

  /// What is wrong with the document, and where.
  [[nodiscard]] std::size_t position() const noexcept { return position_; }
  [[nodiscard]] const std::string& what() const noexcept { return what_; }

 private:
  static constexpr int most = 8;
  int depth_ = 0;
  std::size_t position_ = 0;
  std::string what_ = "found arrays or objects nested more than " + std::to_string(most) + " deep";
};

/// Parses a whole CBOR document.
/// @throws data_error  It is malformed; with the byte offset.
[[nodiscard]] inline nlohmann::json parse_cbor(std::string_view bytes, const std::string& path) {
  nesting_check check;
  if (!nlohmann::json::sax_parse(bytes.begin(), bytes.end(), &check,
                                 nlohmann::json::input_format_t::cbor)) {
    const std::uint64_t offset = check.position() == 0 ? 0 : check.position() - 1;
    throw_data_error({.path = path, .byte_offset = offset, .record = {}, .line = {}},
                     "malformed CBOR: " + check.what());
  }
  return nlohmann::json::from_cbor(bytes.begin(), bytes.end());
}

[[nodiscard]] inline nlohmann::json document_of(const run_state& state) {
  nlohmann::json run = nlohmann::json::array();
  for (const run_property& property : state.run) run.push_back({property.name, property.value});
  nlohmann::json lanes = nlohmann::json::array();
  for (const lane_fragment& fragment : state.fragments) {
    nlohmann::json arrivals = nlohmann::json::array();
    nlohmann::json admitted = nlohmann::json::array();
    for (const held_record& record : fragment.held) {
      arrivals.push_back(record.arrival);
      admitted.push_back(record.admitted);
    }
    lanes.push_back({{"lane", fragment.lane},
                     {"admitted", fragment.admitted},
                     {"policy", fragment.policy},
                     {"held_arrivals", std::move(arrivals)},
                     {"held_admitted", std::move(admitted)}});
  }
  return {{run_state_key, run_state_version},
          {"next_step", state.next_step},
          {"planned_until", state.planned_until},
          {"fragments_step", state.fragments_step},
          {"fragments_wanted", state.fragments_wanted},
          {"run", std::move(run)},
          {"lanes", std::move(lanes)}};
}

/// The value of a key that must be there, as numbers.
[[nodiscard]] inline std::vector<std::uint64_t> required_numbers(const json_object& object,
                                                                 const char* key) {
  std::optional<std::vector<std::uint64_t>> found = object.numbers(key);
  if (!found) object.fail(key, "an array of integers of at least 0");
  return std::move(*found);
}

[[nodiscard]] inline std::uint32_t required_u32(const json_object& object, const char* key) {
  const std::uint64_t value = object.required({key});
  if (value > std::numeric_limits<std::uint32_t>::max()) object.fail(key, "at most 4294967295");
  return static_cast<std::uint32_t>(value);
}

[[nodiscard]] inline const nlohmann::json& required_array(const json_object& object,
                                                          const char* key) {
  const nlohmann::json* found = object.find(key);
  if (found == nullptr || !found->is_array()) object.fail(key, "an array");
  return *found;
}

[[nodiscard]] inline lane_fragment fragment_of(const json_object& object) {
  lane_fragment fragment;
  fragment.lane = required_u32(object, "lane");
  fragment.admitted = object.required({"admitted"});
  fragment.policy = required_numbers(object, "policy");
  const std::vector<std::uint64_t> arrivals = required_numbers(object, "held_arrivals");
  const std::vector<std::uint64_t> admitted = required_numbers(object, "held_admitted");
  if (arrivals.size() != admitted.size()) {
    throw_json_error(object.path(), "lane " + std::to_string(fragment.lane) + ": found " +
                                        std::to_string(admitted.size()) +
                                        " numbers in \"held_admitted\", expected " +
                                        std::to_string(arrivals.size()) +
                                        " as in \"held_arrivals\"");
  }
  fragment.held.reserve(arrivals.size());
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    if (i > 0 && arrivals[i] <= arrivals[i - 1]) {
      throw_json_error(object.path(), "lane " + std::to_string(fragment.lane) + ": found arrival " +
                                          std::to_string(arrivals[i]) + " after " +
                                          std::to_string(arrivals[i - 1]) +
                                          " in \"held_arrivals\", expected a later one");
    }
    fragment.held.push_back({.arrival = arrivals[i], .admitted = admitted[i]});
  }
  return fragment;
}

/// Throws unless the texts of a property are UTF-8, which CBOR does not see to.
inline void check_text(const nlohmann::json& property, const json_object& top) {
  try {
    static_cast<void>(property.dump());
  } catch (const nlohmann::json::exception&) {
    top.fail("run", "an array of [name, value] in UTF-8");
  }
}

[[nodiscard]] inline run_state state_of(const nlohmann::json& document, const std::string& path) {
  const json_object top(document, path);
  if (!top.has(run_state_key)) {
    throw_json_error(path, std::string("found no key \"") + run_state_key +
                               "\", expected the saved state of a run");
  }
  if (top.required({run_state_key}) != run_state_version) {
    top.fail(run_state_key, "version " + std::to_string(run_state_version));
  }
  run_state state;
  state.next_step = top.required({"next_step"});
  state.planned_until = top.required({"planned_until"});
  state.fragments_step = top.required({"fragments_step"});
  state.fragments_wanted = required_u32(top, "fragments_wanted");
  for (const nlohmann::json& property : required_array(top, "run")) {
    if (!property.is_array() || property.size() != 2 || !property[0].is_string() ||
        !property[1].is_string()) {
      top.fail("run", "an array of [name, value]");
    }
    check_text(property, top);
    state.run.push_back({property[0].get<std::string>(), property[1].get<std::string>()});
  }
  for (const nlohmann::json& lane : required_array(top, "lanes")) {
    lane_fragment fragment = fragment_of(json_object(lane, path, "lanes."));
    if (!state.fragments.empty() && fragment.lane <= state.fragments.back().lane) {
      throw_json_error(path, "found lane " + std::to_string(fragment.lane) + " after lane " +
                                 std::to_string(state.fragments.back().lane) +
                                 ", expected ascending lanes");
    }
    state.fragments.push_back(std::move(fragment));
  }
  return state;
}

}  // namespace detail

/// A state in bytes, the same for the same state.
/// @complexity  O(records held).
[[nodiscard]] inline std::string run_state_bytes(const run_state& state,
                                                 state_format format = state_format::cbor) {
  const nlohmann::json document = detail::document_of(state);
  if (format == state_format::json) {
    return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  std::string bytes;
  nlohmann::json::to_cbor(document, bytes);
  return bytes;
}

/// Reads what `run_state_bytes` makes, in either format.
/// @param path  Named in errors.
/// @throws data_error  It is not that: malformed, of another version, or a key is missing or has a
///         value that cannot be.
[[nodiscard]] inline run_state parse_run_state(std::string_view bytes,
                                               const std::string& path = {}) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') {
    return detail::state_of(detail::parse_json(bytes, path), path);
  }
  return detail::state_of(detail::parse_cbor(bytes, path), path);
}

/// Writes a state to a file, atomically: a reader finds the old state or the new one.
/// @throws data_error  The file cannot be written.
inline void save_run_state(const std::string& path, const run_state& state,
                           state_format format = state_format::cbor) {
  const std::string bytes = run_state_bytes(state, format);
  write_file_atomically(path, std::as_bytes(std::span(bytes)));
}

/// Reads a state from a file, in either format.
/// @throws data_error  As `parse_run_state`; also where the file cannot be read.
[[nodiscard]] inline run_state read_run_state(const std::string& path) {
  return parse_run_state(detail::read_json_text(path), path);
}

}  // namespace lanepack::inline LANEPACK_ABI
