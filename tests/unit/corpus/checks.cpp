#include <lanepack/corpus/checks.hpp>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace lanepack;

TEST_CASE("corpus: the first token of a record is not predicted", "[corpus]") {
  STATIC_REQUIRE(detail::unmasked_loss_tokens(0) == 0);
  STATIC_REQUIRE(detail::unmasked_loss_tokens(1) == 0);
  STATIC_REQUIRE(detail::unmasked_loss_tokens(10) == 9);
  STATIC_REQUIRE(detail::unmasked_shape(10) == record_shape{10, 9, 0});
}

TEST_CASE("corpus: ids and ranges are checked against the corpus", "[corpus]") {
  detail::check_record(4, 5);
  REQUIRE_THROWS_AS(detail::check_record(5, 5), state_error);
  REQUIRE_THROWS_AS(detail::check_record(0, 0), state_error);
  std::array<std::int32_t, 3> tokens;
  std::array<std::uint8_t, 3> mask;
  detail::check_read({0, 2, tokens, mask}, 5);
  detail::check_read({0, 5, {}, {}}, 5);
  REQUIRE_THROWS_AS(detail::check_read({0, 3, tokens, {}}, 5), state_error);
  REQUIRE_THROWS_AS(detail::check_read({0, 6, {}, {}}, 5), state_error);
  REQUIRE_THROWS_AS(detail::check_read({0, 0, {}, mask}, 5), state_error);
}

TEST_CASE("corpus: a lazy digest is made once, or never where it is known", "[corpus]") {
  int made = 0;
  const auto make = [&] {
    ++made;
    return digest128{3, 4};
  };
  const detail::lazy_digest unknown;
  REQUIRE(unknown.value(make) == digest128{3, 4});
  REQUIRE(unknown.value(make) == digest128{3, 4});
  REQUIRE(made == 1);
  const detail::lazy_digest known(digest128{1, 2});
  REQUIRE(known.value(make) == digest128{1, 2});
  REQUIRE(made == 1);
  const detail::lazy_digest none{std::optional<digest128>()};
  REQUIRE_THROWS_AS(none.value([]() -> digest128 { throw std::runtime_error("no"); }),
                    std::runtime_error);
  REQUIRE(none.value(make) == digest128{3, 4});
}

TEST_CASE("corpus: progress is told one call at a time", "[corpus]") {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> calls;
  const progress_callback callback = [&](std::uint64_t done, std::uint64_t total) {
    calls.emplace_back(done, total);
  };
  detail::chunk_progress progress(callback, 4000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) progress.advance(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  progress.finish();
  for (std::size_t i = 1; i < calls.size(); ++i) REQUIRE(calls[i].first >= calls[i - 1].first);
  REQUIRE(calls.back() == std::pair<std::uint64_t, std::uint64_t>{4000, 4000});
  const progress_callback nobody;
  detail::chunk_progress silent(nobody, 1);
  silent.advance(1);
  silent.finish();
}
