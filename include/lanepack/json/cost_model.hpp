#pragma once

/// @file
/// Cost models in JSON: coefficients as this library saves them, and `read_cost_model` for them or
/// a model's `config.json`.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <lanepack/core/config.hpp>
#include <lanepack/core/error.hpp>
#include <lanepack/core/file.hpp>
#include <lanepack/cost/concept.hpp>
#include <lanepack/cost/model_description.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/cost/transformer.hpp>
#include <lanepack/json/model_config.hpp>
#include <lanepack/json/object.hpp>

namespace lanepack::inline LANEPACK_ABI {

/// What a cost model file says.
struct cost_model {
  any_estimator estimator = default_cost();
  /// What a micro-batch costs beside its records, in cost units.
  std::uint64_t per_micro_batch = 0;
  /// The model whose sizes the costs come from; absent where the file holds coefficients.
  std::optional<model_description> description;
};

namespace detail {

inline constexpr const char* cost_model_key = "lanepack_cost_model";

inline void allow_only(const json_object& object, std::initializer_list<const char*> keys) {
  for (const auto& item : object.value().items()) {
    bool known = false;
    for (const char* key : keys) known = known || item.key() == key;
    if (!known) object.fail(item.key().c_str(), "no such key in a cost model");
  }
}

[[nodiscard]] inline cost_coefficients read_coefficients(const json_object& top) {
  allow_only(top, {cost_model_key, "fraction_bits", "per_token", "per_pair", "window", "per_patch",
                   "per_micro_batch"});
  if (top.required({cost_model_key}) != 1) top.fail(cost_model_key, "version 1");
  cost_coefficients result;
  const std::uint64_t bits = top.required({"fraction_bits"});
  if (bits > 63) top.fail("fraction_bits", "0 to 63");
  result.fraction_bits = static_cast<std::uint32_t>(bits);
  result.per_token = top.required({"per_token"});
  result.per_pair = top.required({"per_pair"});
  if (const auto window = top.object("window")) {
    allow_only(*window, {"window_tokens", "per_pair"});
    result.window = window_coefficients{.window_tokens = window->required({"window_tokens"}, 1),
                                        .per_pair = window->required({"per_pair"})};
  }
  result.per_patch = top.number("per_patch").value_or(0);
  result.per_micro_batch = top.number("per_micro_batch").value_or(0);
  try {
    validate(result);
  } catch (const invalid_option& e) {
    throw_json_error(top.path(), e.what());
  }
  return result;
}

}  // namespace detail

/// Coefficients as JSON, the same bytes for the same coefficients.
[[nodiscard]] inline std::string cost_model_text(const cost_coefficients& coefficients) {
  std::string text = "{\n";
  const auto field = [&text](const std::string& indent, const char* key, std::uint64_t value,
                             const char* end) {
    text += indent + "\"" + key + "\": " + std::to_string(value) + end;
  };
  field("  ", detail::cost_model_key, 1, ",\n");
  field("  ", "fraction_bits", coefficients.fraction_bits, ",\n");
  field("  ", "per_token", coefficients.per_token, ",\n");
  field("  ", "per_pair", coefficients.per_pair, ",\n");
  if (coefficients.window) {
    text += "  \"window\": {\n";
    field("    ", "window_tokens", coefficients.window->window_tokens, ",\n");
    field("    ", "per_pair", coefficients.window->per_pair, "\n");
    text += "  },\n";
  }
  field("  ", "per_patch", coefficients.per_patch, ",\n");
  field("  ", "per_micro_batch", coefficients.per_micro_batch, "\n");
  return text + "}\n";
}

/// Writes coefficients to a file, atomically.
/// @throws invalid_option  A coefficient is out of range.
/// @throws data_error  The file cannot be written.
inline void save_cost_model(const std::string& path, const cost_coefficients& coefficients) {
  validate(coefficients);
  const std::string text = cost_model_text(coefficients);
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

/// Reads what `cost_model_text` writes.
/// @param path  Named in errors.
/// @throws data_error  It is not that: a key is missing, unknown or out of range.
[[nodiscard]] inline cost_coefficients parse_cost_coefficients(std::string_view text,
                                                               const std::string& path = {}) {
  const nlohmann::json document = detail::parse_json(text, path);
  return detail::read_coefficients(detail::json_object(document, path));
}

/// Reads a cost model from the text of one of three kinds of file, told apart by their keys:
/// coefficients (`lanepack_cost_model`), the plain form `{"linear": a, "quadratic": b}` for a L +
/// b L^2, and a Hugging Face `config.json`.
/// @param path  Named in errors.
/// @throws data_error  It is none of them; see `parse_model_config`.
[[nodiscard]] inline cost_model parse_cost_model(std::string_view text,
                                                 const std::string& path = {}) {
  const nlohmann::json document = detail::parse_json(text, path);
  const detail::json_object top(document, path);
  cost_model result;
  if (top.has(detail::cost_model_key)) {
    const transformer_cost cost(detail::read_coefficients(top));
    result.per_micro_batch = cost.micro_batch_cost();
    result.estimator = cost;
  } else if (top.has("linear") || top.has("quadratic")) {
    detail::allow_only(top, {"linear", "quadratic", "per_patch", "per_micro_batch"});
    result.per_micro_batch = top.number("per_micro_batch").value_or(0);
    result.estimator = quadratic_cost({.linear = top.number("linear").value_or(0),
                                       .quadratic = top.number("quadratic").value_or(0),
                                       .per_patch = top.number("per_patch").value_or(0)});
  } else {
    result.description = detail::describe_model(document, path);
    try {
      result.estimator = transformer_cost(*result.description);
    } catch (const invalid_option& e) {
      detail::throw_json_error(path, std::string("no costs follow from the sizes: ") + e.what());
    }
  }
  return result;
}

/// Reads a cost model from a file; see `parse_cost_model`.
/// @throws data_error  As `parse_cost_model`; also where the file cannot be read.
[[nodiscard]] inline cost_model read_cost_model(const std::string& path) {
  return parse_cost_model(detail::read_json_text(path), path);
}

}  // namespace lanepack::inline LANEPACK_ABI
