#include <lanepack/corpus/text_documents.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/gen.hpp"
#include "support/scratch.hpp"

using namespace lanepack;
using Catch::Matchers::ContainsSubstring;
using lanepack_test::scratch_dir;
using lanepack_test::write_file;
using texts = std::vector<std::string>;

namespace {

texts all_of(const text_documents& source) {
  std::vector<record_id> ids;
  // Not in the order of the file.
  for (record_id id = source.size(); id-- > 0;) ids.push_back(id);
  texts read(ids.size());
  std::vector<std::uint64_t> sizes(ids.size());
  source.read(ids, read);
  source.sizes(ids, sizes);
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(sizes[i] == read[i].size());
  return texts(read.rbegin(), read.rend());
}

texts documents_of(const std::string& text, text_unit unit, std::uint64_t chunk_bytes = 1 << 22) {
  const scratch_dir scratch;
  write_file(scratch.path("t"), text);
  text_documents_options options;
  options.unit = unit;
  options.threads = 2;
  options.chunk_bytes = chunk_bytes;
  return all_of(text_documents(scratch.path("t"), options));
}

std::string failure_of(auto&& action) {
  try {
    action();
  } catch (const error& failure) {
    return failure.what();
  }
  return {};
}

/// What the documentation says of a text, a line at a time.
texts expected_documents(std::string text, text_unit unit) {
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  texts found;
  std::string open;
  const auto close = [&] {
    if (open.ends_with('\n')) open.pop_back();
    if (open.ends_with('\r')) open.pop_back();
    if (open.find_first_not_of(" \t\r\n") != std::string::npos) found.push_back(open);
    open.clear();
  };
  for (const std::string& line : lines) {
    const bool is_empty = line == "\n" || line == "\r\n";
    if (!is_empty) open += line;
    if (is_empty || unit == text_unit::line) close();
  }
  close();
  return found;
}

}  // namespace

TEST_CASE("text_documents: files, paragraphs and lines", "[text_documents]") {
  const std::string text = "\xef\xbb\xbf\none\r\ntwo \r\n\r\n \n\n\nthree";
  CHECK(documents_of(text, text_unit::file) == texts{text.substr(3)});
  CHECK(documents_of(text, text_unit::paragraph) == texts{"one\r\ntwo ", "three"});
  CHECK(documents_of(text, text_unit::line) == texts{"one", "two ", "three"});
  CHECK(documents_of("", text_unit::file) == texts{""});
  CHECK(documents_of("", text_unit::line).empty());
  CHECK(documents_of("\n \r\n", text_unit::paragraph).empty());
}

TEST_CASE("text_documents: ranges may be cut anywhere", "[text_documents]") {
  lanepack_test::for_each_seed(200, [](std::uint64_t seed, lanepack_test::gen& gen) {
    CAPTURE(seed);
    std::string text = gen.one_in(4) ? "\xef\xbb\xbf" : "";
    const std::string letters = "\n\n\n\r\ra ";
    for (std::uint64_t i = gen.between(0, 40); i > 0; --i) text += gen.pick(letters);
    CAPTURE(text);
    for (const text_unit unit : {text_unit::paragraph, text_unit::line}) {
      for (const unsigned chunk : {1U, 2U, 3U, 1000U}) {
        CHECK(documents_of(text, unit, chunk) == expected_documents(text, unit));
      }
    }
  });
}

TEST_CASE("text_documents: where documents are is kept", "[text_documents]") {
  const scratch_dir scratch;
  std::filesystem::create_directories(scratch.path("docs"));
  write_file(scratch.path("docs/a.txt"), "\xef\xbb\xbfone\n\n two\r\nthree");
  write_file(scratch.path("docs/b.txt"), "");
  write_file(scratch.path("docs/c.txt"), "\nfour\n");
  const text_documents_options lines{.unit = text_unit::line};
  const text_documents first(scratch.path("docs"), lines);
  const auto kept = [&] {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path())) {
      const std::string name = entry.path().string();
      if (name.ends_with(".lanepack-index")) names.push_back(name);
    }
    return names;
  };
  REQUIRE(kept().size() == 1);
  // Another opening does not look at the files again: it is not told of their bytes.
  const auto opens = [&](const std::string& path, text_documents_options options) {
    bool looked = false;
    options.progress = [&](std::uint64_t, std::uint64_t) { looked = true; };
    const text_documents found(path, options);
    CHECK(all_of(found) == texts{"one", " two", "three", "four"});
    CHECK(found.fingerprint() == first.fingerprint());
    return looked;
  };
  CHECK_FALSE(opens(scratch.path("docs"), lines));
  CHECK(opens(scratch.path("docs"), {.unit = text_unit::line, .cache_index = false}));
  CHECK(kept().size() == 1);
  // One that is damaged or of other files is made again.
  const std::string path = kept().front();
  std::string bytes = lanepack_test::read_file(path);
  for (const std::size_t at : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write_file(path, damaged);
    CHECK(opens(scratch.path("docs"), lines));
    CHECK(lanepack_test::read_file(path) == bytes);
  }
  write_file(scratch.path("docs/c.txt"), "\nfour\n");
  CHECK(opens(scratch.path("docs"), lines));
  CHECK_FALSE(opens(scratch.path("docs"), lines));
  // A name of one's own, and a place where nothing can be written.
  CHECK(opens(scratch.path("docs"), {.unit = text_unit::line, .index_path = scratch.path("own")}));
  CHECK_FALSE(
      opens(scratch.path("docs"), {.unit = text_unit::line, .index_path = scratch.path("own")}));
  CHECK(opens(scratch.path("docs"),
              {.unit = text_unit::line, .index_path = scratch.path("nowhere/own")}));
  // Of a file it is beside the file, and no document of the folder.
  const text_documents file(scratch.path("docs/a.txt"), lines);
  CHECK(kept().size() == 2);
  CHECK_FALSE(opens(scratch.path("docs"), lines));
}

TEST_CASE("text_documents: a folder is read in the order of paths", "[text_documents]") {
  const scratch_dir scratch;
  std::filesystem::create_directories(scratch.path("b/c"));
  std::filesystem::create_directories(scratch.path(".hidden"));
  write_file(scratch.path("b/c/2.txt"), "two\nlines\n");
  write_file(scratch.path("a.txt"), "first");
  write_file(scratch.path("b/empty.txt"), "");
  write_file(scratch.path("z.md"), "last");
  write_file(scratch.path(".hidden/x.txt"), "x");
  REQUIRE(::mkfifo(scratch.path("fifo.txt").c_str(), 0600) == 0);
  REQUIRE(::symlink("..", scratch.path("b/up").c_str()) == 0);
  REQUIRE(::symlink("nowhere", scratch.path("b/gone.txt").c_str()) == 0);
  CHECK(all_of(text_documents(scratch.path())) == texts{"first", "two\nlines\n", "", "last"});
  const text_documents lines(scratch.path() + "/", {.unit = text_unit::line, .endings = {".txt"}});
  CHECK(all_of(lines) == texts{"first", "two", "lines"});
  CHECK_THAT(lines.describe(), ContainsSubstring("3 documents in 3 files"));
  const data_location place = lines.where(2);
  CHECK(place.path == scratch.path("b/c/2.txt"));
  CHECK(place.line == 2);
  CHECK(place.byte_offset == 4);
  CHECK(place.record == 2);
  // Paths do not count, sizes do.
  const text_documents other(
      {scratch.path("a.txt"), scratch.path("b/c/2.txt"), scratch.path("b/empty.txt")},
      {.unit = text_unit::line});
  CHECK(all_of(other) == all_of(lines));
  CHECK(other.fingerprint() == lines.fingerprint());
  CHECK(other.fingerprint() != text_documents(scratch.path()).fingerprint());
}

TEST_CASE("text_documents: what cannot be read is refused", "[text_documents]") {
  const scratch_dir scratch;
  const std::string path = scratch.path("t");
  CHECK_THAT(failure_of([&] { text_documents{path}; }), ContainsSubstring("cannot open the file"));
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THAT(failure_of([&] { text_documents{path}; }), ContainsSubstring("found a FIFO"));
  std::filesystem::create_directory(scratch.path("empty"));
  CHECK_THAT(failure_of([&] {
               text_documents(scratch.path("empty"), {.endings = {".a", ".b"}});
             }),
             ContainsSubstring("ends with .a or .b"));
  // A file without an end takes neither time nor memory.
  const std::string endless = scratch.path("endless");
  write_file(endless, "a\n");
  REQUIRE(::truncate(endless.c_str(), off_t{1} << 40) == 0);
  CHECK_THAT(failure_of([&] {
               text_documents(endless,
                              {.unit = text_unit::line, .max_document_bytes = 1000, .threads = 2});
             }),
             ContainsSubstring("endless, byte 2: found a document of more than 1000 bytes"));
  CHECK_THAT(failure_of([&] { text_documents{endless}; }),
             ContainsSubstring("found a document of more than 1073741824 bytes"));
  for (const text_unit unit : {text_unit::line, text_unit::paragraph}) {
    write_file(scratch.path("s"), "ab\n\nabcd\n\na");
    CHECK(text_documents(scratch.path("s"), {.unit = unit, .max_document_bytes = 4}).size() == 3);
    CHECK_THAT(failure_of([&] {
                 text_documents(scratch.path("s"), {.unit = unit, .max_document_bytes = 3});
               }),
               ContainsSubstring("byte 4: found a document of more than 3 bytes"));
  }
  CHECK_THAT(failure_of([&] { text_documents(endless, {.threads = 0}); }),
             ContainsSubstring("threads"));
  CHECK_THAT(failure_of([&] { text_documents(endless, {.chunk_bytes = 0}); }),
             ContainsSubstring("chunk_bytes"));
  CHECK_THAT(failure_of([&] { text_documents(endless, {.max_document_bytes = 0}); }),
             ContainsSubstring("max_document_bytes"));
}

TEST_CASE("text_documents: a file that changes is noticed", "[text_documents]") {
  const scratch_dir scratch;
  write_file(scratch.path("t"), "one\ntwo\n");
  const text_documents source(scratch.path("t"), {.unit = text_unit::line});
  const std::vector<record_id> ids = {1};
  texts out(1);
  source.read(ids, out);
  CHECK(out[0] == "two");
  write_file(scratch.path("t"), "one\ntwo and more\n");
  CHECK_THROWS_AS(source.read(ids, out), file_changed);
  CHECK_THROWS_AS(source.where(1), file_changed);
  const std::vector<record_id> beyond = {2};
  CHECK_THROWS_AS(source.read(beyond, out), state_error);
}
