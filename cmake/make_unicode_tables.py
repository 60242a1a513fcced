#!/usr/bin/env python3
"""Makes the Unicode tables of include/lanepack/tokenizer/ out of Python's own.

  pip install unicodedata2==16.0.0
  python3 cmake/make_unicode_tables.py include/lanepack/tokenizer
  clang-format -i include/lanepack/tokenizer/*_tables.hpp

Tokenizers are defined by what the reference implementation (the package `tokenizers`, seen with 0.23) does.
Its regular expressions know the classes of Unicode 16, its normalization the compositions and combining
classes of Unicode 9: characters that are newer have none of either.
"""

import sys

import unicodedata2 as unicode

WANTED = "16.0.0"
SPACES = [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
# Order of `unicode_class`.
OTHER, SPACE, NUMBER_SYMBOL, NUMBER, MARK, UPPER, LOWER, LETTER = range(8)

# Characters added after Unicode 9 that compose or have a combining class.
NEWER_THAN_9 = """
7fd 897-89f 8ca-8d3 9fe c3c d3b-d3c eba 1715 1abf-1ace 1df6-1dfa a82c 105c9 105e4 10d24-10d27 10d69-10d6d
10eab-10eac 10efd-10eff 10f46-10f50 10f82-10f85 11070 1133b 11383 11385 1138e 11391 113c5 113c7-113c8 113ce-113d0
1145e 11839-1183a 11938 1193d-1193e 11943 119e0 11a34 11a47 11a99 11d42 11d44-11d45 11d97 11f41-11f42 16121-16128
1612f 16d68-16d6a 16ff0-16ff1 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef
"""


def newer():
    out = set()
    for part in NEWER_THAN_9.split():
        ends = [int(end, 16) for end in part.split("-")]
        out.update(range(ends[0], ends[-1] + 1))
    return out


def class_of(code):
    if code in SPACES:
        return SPACE
    category = unicode.category(chr(code))
    return {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": LETTER, "Lo": LETTER, "No": NUMBER_SYMBOL}.get(
        category, {"N": NUMBER, "M": MARK}.get(category[0], OTHER))


def runs(function):
    """(first, value) of every run of equal values."""
    last = 0
    for code in range(0x110000):
        value = 0 if 0xD800 <= code < 0xE000 else function(code)
        if value != last:
            yield code, value
            last = value


def write(path, about, arrays):
    with open(path, "w", encoding="ascii") as file:
        file.write("#pragma once\n\n/// @file\n/// %s Made by cmake/make_unicode_tables.py.\n\n"
                   "#include <cstdint>\n\n#include <lanepack/core/config.hpp>\n\n"
                   "namespace lanepack::inline LANEPACK_ABI::detail {\n\n" % about)
        for comment, kind, name, values in arrays:
            file.write("/// %s\ninline constexpr %s %s[] = {\n" % (comment, kind, name))
            file.write(", ".join("0x%x" % value for value in values))
            file.write("};\n\n")
        file.write("}  // namespace lanepack::inline LANEPACK_ABI::detail\n")


def main():
    if unicode.unidata_version != WANTED:
        sys.exit("unicodedata2 is of Unicode %s, expected %s" % (unicode.unidata_version, WANTED))
    folder = sys.argv[1]
    write(folder + "/unicode_tables.hpp", "Classes of code points, Unicode %s." % WANTED,
          [("First code point << 3 | `unicode_class` of every run of code points of one class.", "std::uint32_t",
            "unicode_class_runs", [code << 3 | value for code, value in runs(class_of)])])

    left_out = newer()
    decompositions = []
    for code in range(0x110000):
        parts = unicode.decomposition(chr(code))
        if not parts or parts.startswith("<") or code in left_out:
            continue
        parts = [int(part, 16) for part in parts.split()]
        decomposed = "".join(map(chr, parts))
        composes = len(parts) == 2 and unicode.normalize("NFC", decomposed) == chr(code)
        if len(parts) == 1:
            parts.append(0)
        decompositions.append(code << 43 | parts[0] << 22 | parts[1] << 1 | composes)
    classes = [code << 8 | value for code, value in
               runs(lambda code: 0 if code in left_out else unicode.combining(chr(code)))]
    write(folder + "/normalization_tables.hpp", "Canonical decompositions and combining classes, Unicode 9.",
          [("Code point << 43 | first part << 22 | second part, 0 for none, << 1 | whether the parts compose.",
            "std::uint64_t", "canonical_decompositions", decompositions),
           ("First code point << 8 | canonical combining class of every run of code points of one class.",
            "std::uint32_t", "combining_class_runs", classes)])


if __name__ == "__main__":
    main()
