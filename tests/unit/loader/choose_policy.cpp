#include <lanepack/loader/choose_policy.hpp>

#include <string>

#include <lanepack/corpus/summarize.hpp>
#include <lanepack/loader/compose.hpp>

#include "support/catch.hpp"
#include "support/corpora.hpp"
#include "support/gen.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;

lanepack::plan_options auto_options(std::uint32_t lanes) {
  lanepack::plan_options options;
  options.lanes = lanes;
  options.records_per_pack = 16;
  options.policy = "auto";
  return options;
}

}  // namespace

TEST_CASE("loader: auto chooses by what is known and says why", "[loader]") {
  using lanepack::choose_policy;
  lanepack::plan_options options = auto_options(4096);
  REQUIRE(choose_policy(options, true, true).policy == "replicated");
  REQUIRE_THAT(choose_policy(options, true, true).reason, ContainsSubstring("1048576"));
  REQUIRE(choose_policy(options, false, true).policy == "calendar");
  REQUIRE_THAT(choose_policy(options, false, true).reason, ContainsSubstring("not known"));
  REQUIRE(choose_policy(options, false, false).policy == "window");
  REQUIRE_THAT(choose_policy(options, false, false).reason, ContainsSubstring("histogram"));

  // A larger pack later in the run makes the window too large.
  options.pack_size_changes = {{100, 17}};
  REQUIRE(choose_policy(options, true, true).policy == "calendar");
  REQUIRE_THAT(choose_policy(options, true, true).reason, ContainsSubstring("1114112"));

  options.policy = "sequential";
  REQUIRE(choose_policy(options, true, true).policy == "sequential");
  REQUIRE(choose_policy(options, true, true).reason.empty());
}

TEST_CASE("loader: auto is made from a feed", "[loader]") {
  lanepack_test::gen gen(1);
  const lanepack::any_source source =
      lanepack_test::corpus_of(lanepack_test::random_lengths(gen, 500, 6));
  const lanepack::plan_options options = auto_options(4);
  const auto feed = lanepack::make_candidate_feed(source, lanepack::summarize(source),
                                                  lanepack::default_cost(), options);
  REQUIRE(lanepack::make_policy(options, *feed).name() == "replicated");
  REQUIRE(lanepack::make_policy(options, nullptr).name() == "window");
}

TEST_CASE("loader: replicated is bounded by the records of a step", "[loader]") {
  lanepack::plan_options options = auto_options(1 << 20);
  lanepack::validate(options);
  options.policy = "replicated";
  REQUIRE_THROWS_MATCHES(
      lanepack::validate(options), lanepack::invalid_option,
      Catch::Matchers::Message("lanes: found 1048576, expected at most 524288 for the policy "
                               "replicated, whose steps hold 8388608 records at most; lane-local "
                               "policies have no such bound"));
  options.policy = "automatic";
  try {
    lanepack::validate(options);
    FAIL("no exception");
  } catch (const lanepack::invalid_option& error) {
    REQUIRE_THAT(std::string(error.what()), ContainsSubstring("replicated, auto"));
  }
}
