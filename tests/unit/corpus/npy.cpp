#include <lanepack/corpus/npy.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::little_endian;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;
using namespace std::string_literals;

namespace {

std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string text = dict;
  const std::size_t start = version == 1 ? 10 : 12;
  while ((start + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string file = "\x93NUMPY"s + static_cast<char>(version) + '\0';
  file += version == 1 ? little_endian(static_cast<std::uint16_t>(text.size()))
                       : little_endian(static_cast<std::uint32_t>(text.size()));
  return file + text + data;
}

npy_header header_of(const std::string& contents) {
  const scratch_dir scratch;
  write_file(scratch.path("f.npy"), contents);
  return read_npy_header(input_file(scratch.path("f.npy")));
}

std::string message_of(const std::string& contents) {
  try {
    header_of(contents);
  } catch (const data_error& failure) {
    return failure.what();
  }
  return {};
}

const std::string good = "{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }";

}  // namespace

TEST_CASE("corpus: NumPy headers of all versions are read", "[corpus]") {
  for (const int version : {1, 2, 3}) {
    const npy_header header = header_of(npy(good, std::string(8, 'x'), version));
    REQUIRE(header.type == token_type::u32);
    REQUIRE(header.count == 2);
    REQUIRE(header.data_offset == 128);
  }
}

// numpy.save of numpy 1.24: np.array([3, 1, 70000], dtype) as bytes.
TEST_CASE("corpus: a header as NumPy writes it is read", "[corpus]") {
  const std::string contents =
      "\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"s +
      std::string(60, ' ') + "\n" + little_endian(std::int64_t{3}) +
      little_endian(std::int64_t{1}) + little_endian(std::int64_t{70000});
  const npy_header header = header_of(contents);
  REQUIRE(header.type == token_type::i64);
  REQUIRE(header.count == 3);
  REQUIRE(header.data_offset == 128);
}

TEST_CASE("corpus: the order and spelling of NumPy keys do not matter", "[corpus]") {
  for (const std::string& dict :
       {"{'shape': (2,), 'descr': '<u4', 'fortran_order': False}"s,
        "{\"fortran_order\":True,\"shape\":(2L,),\"descr\":\"<u4\"}"s,
        "{ 'descr' : '<u4' , 'fortran_order' : False , 'shape' : ( 2 , ) , }"s}) {
    CAPTURE(dict);
    REQUIRE(header_of(npy(dict, std::string(8, 'x'))).count == 2);
  }
}

TEST_CASE("corpus: every little-endian integer type of NumPy is known", "[corpus]") {
  const std::vector<std::pair<std::string, token_type>> types = {
      {"|u1", token_type::u8},  {"<u1", token_type::u8},  {"|i1", token_type::i8},
      {"<u2", token_type::u16}, {"<i2", token_type::i16}, {"<u4", token_type::u32},
      {"<i4", token_type::i32}, {"<u8", token_type::u64}, {"<i8", token_type::i64}};
  for (const auto& [name, type] : types) {
    CAPTURE(name);
    const std::string dict = "{'descr': '" + name + "', 'fortran_order': False, 'shape': (3,)}";
    REQUIRE(header_of(npy(dict, std::string(3 * token_bytes(type), 'x'))).type == type);
  }
}

TEST_CASE("corpus: NumPy arrays of another kind are refused by name", "[corpus]") {
  const auto with = [](const std::string& descr, const std::string& shape) {
    return message_of(npy(
        "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}", "12345678"));
  };
  REQUIRE_THAT(with("'>u4'", "(2,)"),
               ContainsSubstring("byte 20") && ContainsSubstring("found the type '>u4'"));
  REQUIRE_THAT(with("'|O'", "(1,)"), ContainsSubstring("found the type '|O'"));
  REQUIRE_THAT(with("'<f4'", "(2,)"), ContainsSubstring("found the type '<f4'"));
  REQUIRE_THAT(with("'|u2'", "(4,)"), ContainsSubstring("found the type '|u2'"));
  REQUIRE_THAT(with("[('a', '<u4')]", "(2,)"), ContainsSubstring("structured type"));
  REQUIRE_THAT(with("'<u4'", "(1, 2)"),
               ContainsSubstring("found the shape (1, 2)") && ContainsSubstring("one dimension"));
  REQUIRE_THAT(with("'<u4'", "()"), ContainsSubstring("found the shape ()"));
  REQUIRE_THAT(with("'<u4'", "(2)"), ContainsSubstring("found the shape (2)"));
}

TEST_CASE("corpus: damaged NumPy headers are refused with path and offset", "[corpus]") {
  REQUIRE_THAT(message_of("PK\x03\x04 something else"),
               ContainsSubstring("f.npy, byte 0: ") && ContainsSubstring("no NumPy magic"));
  REQUIRE_THAT(message_of("\x93NUMPY"), ContainsSubstring("f.npy, byte 0: "));
  REQUIRE_THAT(message_of(""), ContainsSubstring("f.npy, byte 0: "));
  REQUIRE_THAT(message_of("\x93NUMPY\x04\0\x10\0"s + std::string(16, ' ')),
               ContainsSubstring("byte 6: found version 4.0"));
  REQUIRE_THAT(message_of("\x93NUMPY\x01\0\xff\xff{}"s),
               ContainsSubstring("byte 8: ") && ContainsSubstring("65535 bytes"));
  REQUIRE_THAT(message_of("\x93NUMPY\x02\0\xff\xff"s), ContainsSubstring("byte 8: "));
  REQUIRE_THAT(message_of(npy("", "")), ContainsSubstring("expected '{'"));
  REQUIRE_THAT(message_of(npy("{'descr': '<u4'}", "")), ContainsSubstring("expected the keys"));
  REQUIRE_THAT(message_of(npy("{'descr' '<u4'}", "")), ContainsSubstring("expected ':'"));
  REQUIRE_THAT(message_of(npy("{'descr': '<u4' 'shape': (1,)}", "")),
               ContainsSubstring("expected ','"));
  REQUIRE_THAT(message_of(npy("{'descr': '<u4', 'descr': '<u4'}", "")),
               ContainsSubstring("found the key 'descr'"));
  REQUIRE_THAT(message_of(npy("{'what': 1}", "")), ContainsSubstring("found the key 'what'"));
  REQUIRE_THAT(message_of(npy("{'fortran_order': Maybe}", "")), ContainsSubstring("True or False"));
  REQUIRE_THAT(message_of(npy("{'descr", "")), ContainsSubstring("without an end"));
  REQUIRE_THAT(message_of(npy(good + "x", "12345678")), ContainsSubstring("found more text"));
}

TEST_CASE("corpus: a NumPy file is as long as its header says", "[corpus]") {
  REQUIRE_THAT(message_of(npy(good, "1234567")),
               ContainsSubstring("byte 135: found a file of 135 bytes, expected 136 for 2 numbers "
                                 "of type u32"));
  REQUIRE_THAT(message_of(npy(good, "123456789")),
               ContainsSubstring("byte 136: found a file of 137 bytes, expected 136"));
  REQUIRE_THAT(message_of(npy("{'descr': '<u8', 'fortran_order': False, "
                              "'shape': (99999999999999999999999,)}",
                              "")),
               ContainsSubstring("expected 18446744073709551615"));
}
