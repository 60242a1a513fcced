#pragma once

// Tar archives written from the format's description.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace lanepack_test {

/// `value` in octal digits and a zero byte, `width` bytes in all.
inline std::string octal(std::uint64_t value, int width) {
  std::string text(static_cast<std::size_t>(width), '\0');
  std::snprintf(text.data(), text.size(), "%0*llo", width - 1,
                static_cast<unsigned long long>(value));
  return text;
}

/// A header block with its checksum.
inline std::string tar_header(const std::string& name, std::uint64_t size, char type = '0',
                              const std::string& prefix = {}) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 8, octal(0644, 8));
  header.replace(108, 8, octal(0, 8));
  header.replace(116, 8, octal(0, 8));
  header.replace(124, 12, octal(size, 12));
  header.replace(136, 12, octal(1, 12));
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  header.replace(345, prefix.size(), prefix);
  header.replace(148, 8, 8, ' ');
  std::uint64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  header.replace(148, 8, octal(sum, 7) + " ");
  return header;
}

/// A member: header, contents, zeros up to a whole block.
inline std::string tar_member_bytes(const std::string& name, const std::string& contents,
                                    char type = '0') {
  std::string bytes = tar_header(name, contents.size(), type) + contents;
  bytes.resize((bytes.size() + 511) / 512 * 512);
  return bytes;
}

/// What ends an archive.
inline std::string tar_end() {
  return std::string(1024, '\0');
}

/// A record of a pax header: its length counts itself.
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  std::size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

/// A NumPy array in one dimension, as NumPy writes it.
inline std::string npy_bytes(const std::string& type, const std::string& shape,
                             const std::string& data) {
  std::string text = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  const auto size = static_cast<char>(text.size());
  return std::string("\x93NUMPY\x01\0", 8) + size + std::string(1, '\0') + text + data;
}

}  // namespace lanepack_test
