#include <lanepack/core/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::read_file;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;

namespace {

std::string read_text(const input_file& file, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  file.read_at(offset, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const data_error& failure) {
    return failure.what();
  }
  return {};
}

constexpr std::array<file_access, 2> accesses = {file_access::positioned, file_access::mapped};

}  // namespace

TEST_CASE("core: a file is read at any offset", "[core]") {
  const scratch_dir scratch;
  write_file(scratch.path("f"), "0123456789");
  for (const file_access access : accesses) {
    const input_file file(scratch.path("f"), access);
    REQUIRE(file.size() == 10);
    REQUIRE(file.access() == access);
    REQUIRE(file.path() == scratch.path("f"));
    REQUIRE(read_text(file, 0, 10) == "0123456789");
    REQUIRE(read_text(file, 7, 3) == "789");
    REQUIRE(read_text(file, 10, 0).empty());
    file.check_unchanged();
  }
  write_file(scratch.path("empty"), "");
  const input_file empty(scratch.path("empty"), file_access::mapped);
  REQUIRE(empty.size() == 0);
  REQUIRE(read_text(empty, 0, 0).empty());
}

TEST_CASE("core: moving a file keeps it open", "[core]") {
  const scratch_dir scratch;
  write_file(scratch.path("a"), "aaaa");
  write_file(scratch.path("b"), "bbbb");
  for (const file_access access : accesses) {
    input_file first(scratch.path("a"), access);
    input_file second(std::move(first));
    REQUIRE(read_text(second, 1, 2) == "aa");
    second = input_file(scratch.path("b"), access);
    REQUIRE(read_text(second, 1, 2) == "bb");
  }
}

TEST_CASE("core: a FIFO is refused without waiting for its writer", "[core]") {
  const scratch_dir scratch;
  REQUIRE(::mkfifo(scratch.path("fifo").c_str(), 0600) == 0);
  for (const file_access access : accesses) {
    REQUIRE_THAT(message_of([&] { input_file file(scratch.path("fifo"), access); }),
                 ContainsSubstring("fifo: cannot read the file: found a FIFO, expected a regular "
                                   "file"));
  }
}

#if defined(__linux__)
TEST_CASE("core: a file whose size the system does not know is refused", "[core]") {
  REQUIRE_THAT(message_of([&] { input_file file("/proc/self/status"); }),
               ContainsSubstring("/proc/self/status, byte 0: found content in a file of 0 bytes"));
}
#endif

TEST_CASE("core: files that cannot be opened are named", "[core]") {
  const scratch_dir scratch;
  const std::string missing = scratch.path("missing");
  REQUIRE_THAT(message_of([&] { input_file file(missing); }), ContainsSubstring(missing));
  REQUIRE_THAT(message_of([&] { input_file file(missing); }),
               ContainsSubstring("No such file or directory"));
  REQUIRE_THAT(message_of([&] { input_file file(scratch.path()); }),
               ContainsSubstring("found a directory, expected a regular file"));
  REQUIRE_THAT(message_of([&] { input_file file("/dev/null"); }),
               ContainsSubstring("/dev/null: cannot read the file: found a device, expected a "
                                 "regular file"));
  if (::geteuid() != 0) {
    write_file(scratch.path("secret"), "x");
    ::chmod(scratch.path("secret").c_str(), 0);
    REQUIRE_THAT(message_of([&] { input_file file(scratch.path("secret")); }),
                 ContainsSubstring("Permission denied"));
  }
}

TEST_CASE("core: a read outside the file names path, offset and size", "[core]") {
  const scratch_dir scratch;
  write_file(scratch.path("f"), "0123456789");
  for (const file_access access : accesses) {
    const input_file file(scratch.path("f"), access);
    const std::string message = message_of([&] { read_text(file, 8, 3); });
    REQUIRE_THAT(message, ContainsSubstring(scratch.path("f") + ", byte 8: "));
    REQUIRE_THAT(message, ContainsSubstring("found a file of 10 bytes, expected 3 bytes"));
    REQUIRE_THROWS_AS(read_text(file, ~std::uint64_t{0}, 2), data_error);
    REQUIRE_THROWS_AS(read_text(file, 11, 0), data_error);
  }
}

TEST_CASE("core: ranges are read as single reads would", "[core]") {
  const scratch_dir scratch;
  lanepack_test::for_each_seed(60, [&](std::uint64_t seed, lanepack_test::gen& random) {
    CAPTURE(seed);
    std::string contents(random.between(1, 600'000), '\0');
    for (char& c : contents) c = static_cast<char>(random.bits());
    write_file(scratch.path("f"), contents);
    const file_access access = random.one_in(2) ? file_access::mapped : file_access::positioned;
    const input_file file(scratch.path("f"), access);
    std::vector<file_range> ranges;
    std::vector<std::string> found;
    std::uint64_t offset = 0;
    while (offset < contents.size()) {
      if (random.one_in(3)) offset += random.heavy_tailed(15);
      if (offset >= contents.size()) break;
      const std::uint64_t size = std::min<std::uint64_t>(
          random.one_in(6) ? 0 : random.heavy_tailed(16), contents.size() - offset);
      ranges.push_back({offset, {}});
      found.emplace_back(size, '\0');
      offset += size + (size == 0 ? 1 : 0);
    }
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ranges[i].out = std::as_writable_bytes(std::span(found[i].data(), found[i].size()));
    }
    std::vector<int> handed_over(ranges.size());
    file.read_ranges(ranges, [&](std::size_t first, std::size_t last) {
      REQUIRE(first < last);
      for (std::size_t i = first; i < last; ++i) {
        ++handed_over[i];
        REQUIRE(found[i] == contents.substr(ranges[i].offset, found[i].size()));
      }
    });
    for (const int times : handed_over) REQUIRE(times == 1);
  });
}

TEST_CASE("core: a range outside the file is an error also among joined ones", "[core]") {
  const scratch_dir scratch;
  write_file(scratch.path("f"), "0123456789");
  std::array<std::byte, 8> a;
  std::array<std::byte, 3> b;
  const std::array<file_range, 2> ranges = {{{0, a}, {8, b}}};
  for (const file_access access : accesses) {
    const input_file file(scratch.path("f"), access);
    const std::string message =
        message_of([&] { file.read_ranges(ranges, [](std::size_t, std::size_t) {}); });
    REQUIRE_THAT(message, ContainsSubstring(", byte 8: "));
  }
}

TEST_CASE("core: what the page cache does not hold is read all the same", "[core]") {
  const scratch_dir scratch;
  std::string contents(3 << 20, '\0');
  for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<char>(i * 7 >> 3);
  write_file(scratch.path("f"), contents);
  const input_file file(scratch.path("f"));
  const int fd = ::open(scratch.path("f").c_str(), O_RDONLY);
  REQUIRE(::fsync(fd) == 0);
  REQUIRE(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
  ::close(fd);
  std::vector<std::string> found(24, std::string(5000, '\0'));
  std::vector<file_range> ranges;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ranges.push_back(
        {i * 130'000, std::as_writable_bytes(std::span(found[i].data(), found[i].size()))});
  }
  std::size_t handed_over = 0;
  file.read_ranges(ranges,
                   [&](std::size_t first, std::size_t last) { handed_over += last - first; });
  REQUIRE(handed_over == found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i] == contents.substr(i * 130'000, 5000));
  }
}

TEST_CASE("core: a file cut short while open is an error and not a signal", "[core]") {
  const scratch_dir scratch;
  write_file(scratch.path("f"), std::string(10'000, 'x'));
  const input_file file(scratch.path("f"));
  std::filesystem::resize_file(scratch.path("f"), 6000);
  REQUIRE(read_text(file, 0, 6000) == std::string(6000, 'x'));
  const std::string message = message_of([&] { read_text(file, 5000, 2000); });
  REQUIRE_THAT(message, ContainsSubstring(scratch.path("f") + ", byte 6000: "));
  REQUIRE_THAT(message, ContainsSubstring("expected 10000 bytes"));
  REQUIRE_THAT(message_of([&] { file.check_unchanged(); }),
               ContainsSubstring("byte 6000: found a file of 6000 bytes, expected 10000"));

  std::array<std::byte, 100> a;
  std::array<std::byte, 2000> b;
  const std::array<file_range, 2> ranges = {{{4900, a}, {5000, b}}};
  REQUIRE_THAT(message_of([&] { file.read_ranges(ranges, [](std::size_t, std::size_t) {}); }),
               ContainsSubstring(", byte 6000: "));
}

TEST_CASE("core: a file written or replaced while open is noticed", "[core]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("f");
  write_file(path, "0123456789");
  {
    const input_file file(path);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write_file(path, "9876543210");
    REQUIRE_THAT(message_of([&] { file.check_unchanged(); }), ContainsSubstring("was written"));
  }
  {
    const input_file file(path);
    write_file(scratch.path("g"), "0123456789");
    std::filesystem::rename(scratch.path("g"), path);
    REQUIRE_THAT(message_of([&] { file.check_unchanged(); }),
                 ContainsSubstring("deleted or replaced"));
  }
  {
    const input_file file(path);
    write_file(path, "longer than before");
    REQUIRE_THAT(message_of([&] { file.check_unchanged(); }),
                 ContainsSubstring("byte 10: found a file of 18 bytes, expected 10"));
  }
}

TEST_CASE("core: files are identified without being opened", "[core]") {
  const scratch_dir scratch;
  write_file(scratch.path("f"), "0123456789");
  const auto identity = identify_file(scratch.path("f"));
  REQUIRE(identity.has_value());
  REQUIRE(identity->size == 10);
  REQUIRE(*identity == input_file(scratch.path("f")).identity());
  REQUIRE_FALSE(identify_file(scratch.path("missing")).has_value());
  REQUIRE_FALSE(identify_file(scratch.path()).has_value());
}

TEST_CASE("core: offsets beyond 4 GiB reach the right bytes", "[core]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("sparse");
  constexpr std::uint64_t far = 5'000'000'007;
  write_file(path, "start");
  const int fd = ::open(path.c_str(), O_WRONLY);
  REQUIRE(fd >= 0);
  REQUIRE(::pwrite(fd, "there", 5, static_cast<::off_t>(far)) == 5);
  ::close(fd);
  for (const file_access access : accesses) {
    const input_file file(path, access);
    REQUIRE(file.size() == far + 5);
    REQUIRE(read_text(file, far, 5) == "there");
    // The same offset modulo 2^32 holds something else.
    REQUIRE(read_text(file, far % (std::uint64_t{1} << 32), 5) == std::string(5, '\0'));
  }
}

TEST_CASE("core: an output file appears when it is complete", "[core]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("out");
  write_file(path, "old");
  {
    output_file file(path);
    file.append(bytes_of("new contents"));
    REQUIRE(file.size() == 12);
    REQUIRE(read_file(path) == "old");
    file.overwrite(0, bytes_of("NEW"));
    std::array<std::byte, 4> back;
    file.read_back(2, back);
    REQUIRE(std::string(reinterpret_cast<const char*>(back.data()), 4) == "W co");
    file.append(bytes_of("!"));
    file.commit();
  }
  REQUIRE(read_file(path) == "NEW contents!");
  REQUIRE(scratch.entries() == 1);
}

TEST_CASE("core: an output file that is not committed leaves nothing behind", "[core]") {
  const scratch_dir scratch;
  {
    output_file file(scratch.path("out"));
    file.append(bytes_of(std::string(1 << 20, 'x')));
    output_file moved(std::move(file));
    REQUIRE(scratch.entries() == 1);
  }
  REQUIRE(scratch.entries() == 0);
}

TEST_CASE("core: large and small appends keep their order", "[core]") {
  const scratch_dir scratch;
  std::string expected;
  output_file file(scratch.path("out"));
  for (const std::size_t size : {3U, 300'000U, 5U, 262'143U, 1U, 262'144U, 0U, 7U}) {
    const std::string part(size, static_cast<char>('a' + expected.size() % 26));
    file.append(bytes_of(part));
    expected += part;
    REQUIRE(file.size() == expected.size());
  }
  file.commit();
  REQUIRE(read_file(scratch.path("out")) == expected);
}

TEST_CASE("core: a file that cannot be written is named", "[core]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("no/such/directory/out");
  REQUIRE_THAT(message_of([&] { write_file_atomically(path, {}); }), ContainsSubstring(path));
  // A directory that gets in the way makes the last step fail.
  {
    output_file file(scratch.path("taken"));
    std::filesystem::create_directory(scratch.path("taken"));
    REQUIRE_THAT(message_of([&] { file.commit(); }), ContainsSubstring("cannot rename the file"));
  }
  REQUIRE(scratch.entries() == 1);
}

TEST_CASE("core: what is no regular file is not replaced by one", "[core]") {
  const scratch_dir scratch;
  std::filesystem::create_directory(scratch.path("directory"));
  REQUIRE(::mkfifo(scratch.path("fifo").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/null", scratch.path("device"));
  for (const auto& [name, kind] :
       {std::pair("directory", "a directory"), {"fifo", "a FIFO"}, {"device", "a device"}}) {
    REQUIRE_THAT(message_of([&, path = scratch.path(name)] { write_file_atomically(path, {}); }),
                 ContainsSubstring(std::string("cannot create the file: found ") + kind +
                                   ", expected a regular file or nothing"));
  }
  REQUIRE(scratch.entries() == 3);
  REQUIRE(std::filesystem::is_symlink(scratch.path("device")));
  REQUIRE(std::filesystem::is_fifo(scratch.path("fifo")));
  // A link to a file gives way to one.
  write_file_atomically(scratch.path("file"), {});
  std::filesystem::create_symlink("file", scratch.path("link"));
  write_file_atomically(scratch.path("link"), bytes_of("new"));
  REQUIRE(read_file(scratch.path("link")) == "new");
}

TEST_CASE("core: whole files are read up to a limit", "[core]") {
  const scratch_dir scratch;
  write_file_atomically(scratch.path("f"), bytes_of("0123456789"));
  REQUIRE(read_whole_file(scratch.path("f"), 10).size() == 10);
  REQUIRE_THAT(message_of([&] { static_cast<void>(read_whole_file(scratch.path("f"), 9)); }),
               ContainsSubstring("found a file of 10 bytes, expected at most 9"));
}
