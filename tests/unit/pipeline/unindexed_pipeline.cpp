#include <lanepack/pipeline/unindexed_pipeline.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/concatenated.hpp>
#include <lanepack/cost/quadratic.hpp>
#include <lanepack/loader/compose.hpp>
#include <lanepack/loader/planner.hpp>
#include <lanepack/pipeline/carrying_stages.hpp>
#include <lanepack/pipeline/stages.hpp>
#include <lanepack/tokenizer/byte_level.hpp>

#include "support/catch.hpp"
#include "support/documents.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::memory_documents;

namespace {

const tokenize bytes{byte_level_tokenizer()};
const split pairs({.tokens = 2});

plan_options options_for(const std::string& policy) {
  plan_options options;
  options.lanes = 2;
  options.records_per_pack = 2;
  options.rule = epoch_end::continue_epochs;
  options.steps = 4;
  options.policy = policy;
  options.lookahead_steps = 2;
  options.tuning = calendar_tuning{};
  return options;
}

std::string refusal(const any_source& source, const plan_options& options) {
  try {
    static_cast<void>(make_candidate_feed(source, {}, default_cost(), options));
    return "none";
  } catch (const invalid_option& failure) {
    REQUIRE_THAT(failure.what(), ContainsSubstring("open_count_index"));
    return failure.option();
  }
}

}  // namespace

TEST_CASE("unindexed pipeline: records are numbered by input and place", "[pipeline]") {
  const unindexed_pipeline source(memory_documents({"abc", "", "de"}), pipeline({bytes, pairs}));
  REQUIRE(source.size() == 3U << 16);
  REQUIRE_FALSE(source.traits().has_all_shapes);
  std::vector<std::vector<record_shape>> shapes(4);
  const std::vector<record_id> inputs{2, 0, 1, 0};
  source.unindexed()->expand(inputs, shapes);
  REQUIRE(shapes[0] == std::vector<record_shape>{{2, 1, 0}});
  REQUIRE(shapes[1] == std::vector<record_shape>{{2, 1, 0}, {1, 0, 0}});
  REQUIRE(shapes[2] == std::vector<record_shape>{{0, 0, 0}});
  REQUIRE(shapes[3] == shapes[1]);

  std::vector<std::int32_t> tokens(3);
  std::vector<record_read> reads{
      {.id = 1, .first_token = 0, .tokens = {&tokens[0], 1}, .loss_mask = {}},
      {.id = 2U << 16, .first_token = 0, .tokens = {&tokens[1], 2}, .loss_mask = {}}};
  source.read(reads);
  REQUIRE(tokens == std::vector<std::int32_t>{'c', 'd', 'e'});
  reads[0].id = 2;
  REQUIRE_THROWS_AS(source.read(reads), data_error);
  reads[0].id = 3U << 16;
  REQUIRE_THROWS_AS(source.read(reads), state_error);
  const record_id missing = 2;
  record_shape shape;
  REQUIRE_THROWS_AS(source.shapes({&missing, 1}, {&shape, 1}), state_error);
  REQUIRE(source.fingerprint() !=
          unindexed_pipeline(memory_documents({"abc", "", "de"}), pipeline({bytes})).fingerprint());
}

TEST_CASE("unindexed pipeline: what needs an index is refused and told so", "[pipeline]") {
  REQUIRE_THROWS_WITH(unindexed_pipeline(memory_documents({"a"}),
                                         pipeline({bytes, concatenate_and_cut({.tokens = 2})})),
                      ContainsSubstring("open_count_index"));
  const any_source source =
      unindexed_pipeline(memory_documents({"abcd", "efg"}), pipeline({bytes}));
  REQUIRE(refusal(source, options_for("window")) == "none");
  plan_options options = options_for("window");
  options.rule = epoch_end::finite;
  REQUIRE(refusal(source, options) == "rule");
  options = options_for("window");
  options.epochs = 2;
  REQUIRE(refusal(source, options) == "epochs");
  options = options_for("window");
  options.steps = std::nullopt;
  REQUIRE(refusal(source, options) == "steps");
  options = options_for("window");
  options.mixture.emplace();
  REQUIRE(refusal(source, options) == "mixture");
  REQUIRE(refusal(source, options_for("replicated")) == "policy");
  // `auto` takes what is possible: costs are known from a sample of the inputs.
  const auto feed = make_candidate_feed(source, {}, default_cost(), options_for("auto"));
  REQUIRE(choose_policy(options_for("auto"), *feed).policy == "calendar");
  REQUIRE(feed->costs()->records() == 2);
  // 3 and 2 loss tokens, 2.5 a record.
  REQUIRE(feed->expected_loss_tokens(4) == 10);
}

TEST_CASE("unindexed pipeline: limits are applied on the way", "[pipeline]") {
  const any_source source =
      unindexed_pipeline(memory_documents({"abcdefgh", "", "xy", "uvw"}), pipeline({bytes}));
  plan_options options = options_for("sequential");
  options.limits.capacity_tokens = 4;
  options.limits.empty = empty_policy::skip_and_count;
  REQUIRE_THROWS_WITH(planner(make_candidate_feed(source, {}, default_cost(), options),
                              make_policy(options, nullptr), std::vector<lane_index>{0, 1})
                          .next(),
                      ContainsSubstring("infeasible = skip_and_count"));
  options.limits.infeasible = infeasible_policy::skip_and_count;
  const auto feed = make_candidate_feed(source, {}, default_cost(), options);
  planner plan(feed, make_policy(options, *feed), std::vector<lane_index>{0, 1});
  while (const auto step = plan.next()) {
    for (const pack_plan& pack : step->packs) {
      for (const candidate& record : pack.records) {
        REQUIRE(record.tokens == (record.record.id == 2U << 16 ? 2 : 3));
      }
    }
  }
  REQUIRE(plan.statistics().emitted_records == 16);
  REQUIRE(plan.statistics().left_out_records > 0);
}

TEST_CASE("unindexed pipeline: stages that leave nothing end the run", "[pipeline]") {
  const any_source source =
      unindexed_pipeline(memory_documents({"a", "b"}),
                         pipeline({bytes, filter("none", [](const sample&) { return false; })}));
  const plan_options options = options_for("sequential");
  const auto feed = make_candidate_feed(source, {}, default_cost(), options);
  planner plan(feed, make_policy(options, *feed), std::vector<lane_index>{0});
  REQUIRE_THROWS_WITH(plan.next(), ContainsSubstring("expected stages that leave some"));
}
