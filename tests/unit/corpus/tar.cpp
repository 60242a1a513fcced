#include <lanepack/corpus/tar.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/tar.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::pax_record;
using lanepack_test::scratch_dir;
using lanepack_test::tar_end;
using lanepack_test::tar_header;
using lanepack_test::tar_member_bytes;

namespace {

std::vector<tar_member> members_of(const std::string& bytes) {
  const scratch_dir scratch;
  lanepack_test::write_file(scratch.path("a.tar"), bytes);
  const input_file file(scratch.path("a.tar"));
  tar_reader reader(file);
  std::vector<tar_member> members;
  while (std::optional<tar_member> member = reader.next()) members.push_back(*member);
  return members;
}

std::string message_of(const std::string& bytes) {
  try {
    static_cast<void>(members_of(bytes));
  } catch (const data_error& failure) {
    const std::string text = failure.what();
    return text.substr(text.find("a.tar"));
  }
  return {};
}

}  // namespace

TEST_CASE("tar: members follow each other in blocks", "[corpus]") {
  const std::string bytes =
      tar_member_bytes("a.txt", "abc") + tar_member_bytes("d/", "", '5') +
      tar_member_bytes("empty", "") + tar_member_bytes("big", std::string(513, 'x')) +
      tar_member_bytes("link", "", '2') + tar_member_bytes("last", std::string(512, 'y'), '\0');
  const std::vector<tar_member> expected = {{"a.txt", 0, 512, 3},
                                            {"empty", 1536, 2048, 0},
                                            {"big", 2048, 2560, 513},
                                            {"last", 4096, 4608, 512}};
  REQUIRE(members_of(bytes + tar_end()) == expected);
  // One block of zeros, or more than two, end an archive too.
  REQUIRE(members_of(bytes + std::string(512, '\0')) == expected);
  REQUIRE(members_of(bytes + std::string(10240, '\0')) == expected);
  REQUIRE(members_of(tar_end()).empty());
}

TEST_CASE("tar: long names come in four ways", "[corpus]") {
  const std::string name = std::string(150, 'a') + "/" + std::string(90, 'b');
  std::string ustar = tar_header(std::string(90, 'b'), 0, '0', std::string(150, 'a'));
  REQUIRE(members_of(ustar + tar_end()).at(0).name == name);
  const std::string gnu = tar_member_bytes("././@LongLink", name + '\0', 'L');
  REQUIRE(members_of(gnu + tar_member_bytes(name.substr(0, 99), "x") + tar_end()).at(0).name ==
          name);
  const std::string pax =
      tar_member_bytes("PaxHeaders/x", pax_record("mtime", "1.5") + pax_record("path", name), 'x');
  const std::vector<tar_member> found =
      members_of(pax + tar_member_bytes("short", "x") + tar_member_bytes("other", "y") + tar_end());
  REQUIRE(found.at(0).name == name);
  // It holds for one member alone.
  REQUIRE(found.at(1).name == "other");
  // A name of 100 bytes has no zero behind it.
  REQUIRE(members_of(tar_header(std::string(100, 'n'), 0) + tar_end()).at(0).name ==
          std::string(100, 'n'));
}

TEST_CASE("tar: sizes come in octal, in binary and in pax headers", "[corpus]") {
  const auto with_size = [](const std::string& field) {
    std::string header = tar_header("a", 3);
    std::uint64_t sum = 0;
    header.replace(124, 12, field);
    header.replace(148, 8, 8, ' ');
    for (const char byte : header) sum += static_cast<unsigned char>(byte);
    return header.replace(148, 8, lanepack_test::octal(sum, 7) + " ");
  };
  const std::string rest = "abc" + std::string(509, '\0') + tar_end();
  REQUIRE(members_of(with_size("          3 ") + rest).at(0).bytes == 3);
  REQUIRE(members_of(with_size("\x80" + std::string(10, '\0') + "\x03") + rest).at(0).bytes == 3);
  REQUIRE(
      members_of(tar_member_bytes("p", pax_record("size", "3"), 'x') + tar_header("a", 0) + rest)
          .at(0)
          .bytes == 3);
  REQUIRE_THAT(message_of(with_size(std::string("00000000009") + '\0') + rest),
               ContainsSubstring("byte 134: tar archive: found byte 57 in a number"));
  REQUIRE_THAT(message_of(with_size(std::string(12, '\xff')) + rest),
               ContainsSubstring("byte 124: tar archive: found a number that is negative"));
  REQUIRE_THAT(message_of(with_size("\x80" + std::string(3, '\0') + std::string(8, '\xff')) + rest),
               ContainsSubstring("byte 124: tar archive: found a number"));
  REQUIRE_THAT(
      message_of(with_size("\x80" + std::string(3, '\0') + "\x7f" + std::string(7, '\xff')) + rest),
      ContainsSubstring("byte 0: tar archive: found a member of 9223372036854775807"));
}

TEST_CASE("tar: archives that are cut short, too long or damaged are errors with their byte",
          "[corpus]") {
  const std::string one = tar_member_bytes("a.txt", "abc");
  REQUIRE_THAT(message_of(""), ContainsSubstring("byte 0: tar archive: found the end of the file"));
  REQUIRE_THAT(message_of(one), ContainsSubstring("byte 1024: tar archive: found the end"));
  REQUIRE_THAT(message_of(one + std::string(511, '\0')), ContainsSubstring("byte 1024: "));
  REQUIRE_THAT(message_of(one.substr(0, 514)),
               ContainsSubstring("byte 0: tar archive: found a member of 3 bytes, expected at most "
                                 "the 2 that follow"));
  // The padding is missing.
  REQUIRE_THAT(message_of(one.substr(0, 515)),
               ContainsSubstring("byte 515: tar archive: found the end"));
  REQUIRE_THAT(message_of(one + tar_end() + one),
               ContainsSubstring("byte 2048: tar archive: found more behind the archive's end"));
  std::string damaged = one + tar_end();
  damaged[3] = 'T';
  REQUIRE_THAT(message_of(damaged), ContainsSubstring("byte 0: tar archive: found a header with "
                                                      "checksum "));
  REQUIRE_THAT(message_of(tar_member_bytes("n", "long\0", 'L') + tar_end()),
               ContainsSubstring("byte 1024: tar archive: found the archive's end, expected the "
                                 "member of a long name"));
  REQUIRE_THAT(message_of(tar_member_bytes("n", "x", 'S') + tar_end()),
               ContainsSubstring("found a sparse file"));
  REQUIRE_THAT(message_of(tar_header("n", (1 << 20) + 1, 'L') + std::string(2 << 20, 'x')),
               ContainsSubstring("found an extended header of 1048577 bytes"));
  for (const std::string record :
       {"path=x\n", "5 path=x\n", "99 path=x\n", "9 path=xy", "8 pathx\n", "0 \n", "11 size=-1\n",
        "10 size=x\n", "18446744073709551616 a=b\n"}) {
    CAPTURE(record);
    REQUIRE_THAT(message_of(tar_member_bytes("p", record, 'x') + one + tar_end()),
                 ContainsSubstring("pax header"));
  }
  REQUIRE_THAT(message_of(tar_member_bytes("p", pax_record("path", "x"), 'g') + one + tar_end()),
               ContainsSubstring("found a path for all members"));
  REQUIRE_THAT(
      message_of(tar_member_bytes("p", pax_record("GNU.sparse.major", "1"), 'x') + one + tar_end()),
      ContainsSubstring("found a sparse file"));
}
