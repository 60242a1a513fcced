#include <lanepack/packer/policy.hpp>

#include <vector>

#include "support/catch.hpp"

namespace {

using lanepack::candidate;
using lanepack::pack_list;
using lanepack::policy_scope;
using lanepack::policy_state;
using lanepack::step_window;

/// Delivers every step's records one call later: the smallest policy with memory.
struct delaying_policy {
  std::vector<candidate> waiting;
  std::uint64_t calls = 0;

  std::string name() const { return "delaying"; }
  policy_scope scope() const { return policy_scope::all_lanes; }
  std::uint32_t window_steps() const { return 3; }
  std::uint32_t buffered_steps() const { return 1; }
  void form(const step_window&, std::span<const candidate> arrivals, pack_list& out) {
    ++calls;
    for (const candidate& record : waiting) out.add(record);
    out.close();
    waiting.assign(arrivals.begin(), arrivals.end());
  }
  std::span<const candidate> held() const { return waiting; }
  policy_state save() const { return {{calls}}; }
  void restore(const policy_state& state, std::span<const candidate> records) {
    calls = state.words.at(0);
    waiting.assign(records.begin(), records.end());
  }
};

struct without_held : delaying_policy {
  void held() const {}
};
struct with_signed_steps : delaying_policy {
  int window_steps() const { return 3; }
};
struct without_save {
  std::string name() const { return "near miss"; }
  std::uint32_t window_steps() const { return 1; }
  std::uint32_t buffered_steps() const { return 0; }
  void form(const step_window&, std::span<const candidate>, pack_list&) {}
  std::span<const candidate> held() const { return {}; }
};

}  // namespace

TEST_CASE("packer: the policy concept accepts a minimal model and refuses near misses",
          "[packer]") {
  STATIC_REQUIRE(lanepack::lookahead_policy<delaying_policy>);
  STATIC_REQUIRE(lanepack::lookahead_policy<lanepack::any_policy>);
  STATIC_REQUIRE_FALSE(lanepack::lookahead_policy<without_held>);
  STATIC_REQUIRE_FALSE(lanepack::lookahead_policy<with_signed_steps>);
  STATIC_REQUIRE_FALSE(lanepack::lookahead_policy<without_save>);
}

TEST_CASE("packer: any_policy passes every call on", "[packer]") {
  lanepack::any_policy policy = delaying_policy{};
  REQUIRE(policy.name() == "delaying");
  REQUIRE(policy.scope() == policy_scope::all_lanes);
  REQUIRE(policy.window_steps() == 3);
  REQUIRE(policy.buffered_steps() == 1);

  std::vector<candidate> arrivals(2);
  arrivals[1].arrival = 1;
  pack_list out;
  policy.form({}, arrivals, out);
  REQUIRE(out.size() == 1);
  REQUIRE(out[0].empty());
  REQUIRE(policy.held().size() == 2);
  REQUIRE(policy.save().words == std::vector<std::uint64_t>{1});

  policy.restore({{7}}, std::span(arrivals).first(1));
  REQUIRE(policy.held().size() == 1);
  REQUIRE(policy.save().words == std::vector<std::uint64_t>{7});
}

TEST_CASE("packer: copies of an any_policy are independent", "[packer]") {
  lanepack::any_policy first = delaying_policy{};
  const std::vector<candidate> arrivals(3);
  pack_list out;
  first.form({}, arrivals, out);

  lanepack::any_policy second = first;
  first.form({}, {}, out);
  REQUIRE(first.held().empty());
  REQUIRE(second.held().size() == 3);
  second = first;
  REQUIRE(second.held().empty());

  lanepack::any_policy moved = std::move(second);
  REQUIRE(moved.save().words == std::vector<std::uint64_t>{2});
}
