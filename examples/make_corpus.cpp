// Makes a Megatron-LM corpus out of the text files of a folder, to try things out on: a token a
// byte.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <lanepack/core/file.hpp>
#include <lanepack/corpus/megatron.hpp>

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 12> text_extensions{
    ".c", ".cmake", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".md", ".py", ".sh", ".tex", ".txt"};

/// Text files below a folder, hidden and build folders left out, in the order of their paths. Links
/// that lead nowhere are passed over.
std::vector<fs::path> text_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(folder);
       entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    std::error_code nowhere;
    if (entry->is_directory(nowhere) && (name.starts_with(".") || name.starts_with("build"))) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(nowhere) &&
               std::ranges::find(text_extensions, entry->path().extension().string()) !=
                   text_extensions.end()) {
      files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::vector<std::string_view> records_of(std::string_view text, bool by_paragraph) {
  std::vector<std::string_view> records;
  while (!text.empty()) {
    const std::size_t end =
        by_paragraph ? std::min(text.find("\n\n"), text.size() - 1) + 1 : text.size();
    records.push_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  }
  return records;
}

void make_corpus(const std::string& folder, const std::string& out, bool by_paragraph) {
  lanepack::megatron_writer writer(out, {.type = lanepack::token_type::u16});
  std::vector<std::int32_t> tokens;
  for (const fs::path& path : text_files(folder)) {
    const std::vector<std::byte> bytes = lanepack::read_whole_file(path.string());
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const std::string_view record : records_of(text, by_paragraph)) {
      tokens.clear();
      for (const char c : record) tokens.push_back(static_cast<unsigned char>(c));
      writer.add_document(tokens);
    }
  }
  writer.finish();
  std::printf("%s.bin and .idx: %llu records, %llu tokens\n", out.c_str(),
              static_cast<unsigned long long>(writer.sequences()),
              static_cast<unsigned long long>(writer.tokens()));
}

}  // namespace

int main(int argc, char** argv) {
  const bool by_paragraph = argc == 4 && std::strcmp(argv[3], "--paragraphs") == 0;
  if (argc != 3 && !by_paragraph) {
    std::fprintf(
        stderr,
        "usage: %s FOLDER OUT [--paragraphs]\n"
        "Writes OUT.bin and OUT.idx, one record a text file (or paragraph) below FOLDER.\n",
        argv[0]);
    return 2;
  }
  try {
    make_corpus(argv[1], argv[2], by_paragraph);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
