#pragma once

// MDS datasets written from the format's description.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/scratch.hpp"

namespace lanepack_test {

struct mds_test_column {
  std::string name;
  std::string encoding;
  /// Bytes of every value; 0 where they vary.
  std::size_t size = 0;
};

/// The bytes of a shard; `samples[i][c]` is the encoded value of column c.
inline std::string mds_shard_bytes(const std::vector<mds_test_column>& columns,
                                   const std::vector<std::vector<std::string>>& samples,
                                   const std::string& config = "{}") {
  std::vector<std::string> bodies;
  for (const std::vector<std::string>& sample : samples) {
    std::string& body = bodies.emplace_back();
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].size == 0) body += little_endian(static_cast<std::uint32_t>(sample[c].size()));
    }
    for (const std::string& value : sample) body += value;
  }
  std::string bytes = little_endian(static_cast<std::uint32_t>(samples.size()));
  std::size_t at = 4 + 4 * (samples.size() + 1) + config.size();
  bytes += little_endian(static_cast<std::uint32_t>(at));
  for (const std::string& body : bodies) {
    at += body.size();
    bytes += little_endian(static_cast<std::uint32_t>(at));
  }
  bytes += config;
  for (const std::string& body : bodies) bytes += body;
  return bytes;
}

/// What an index says of one shard.
inline std::string mds_shard_json(const std::vector<mds_test_column>& columns,
                                  const std::string& basename, std::size_t samples,
                                  std::size_t bytes) {
  std::string names;
  std::string encodings;
  std::string sizes;
  for (const mds_test_column& column : columns) {
    const char* comma = names.empty() ? "" : ",";
    names += comma + ("\"" + column.name + "\"");
    encodings += comma + ("\"" + column.encoding + "\"");
    sizes += comma + (column.size == 0 ? std::string("null") : std::to_string(column.size));
  }
  return R"({"format":"mds","version":2,"compression":null,"hashes":[],"size_limit":67108864,)"
         R"("zip_data":null,"column_names":[)" +
         names + "],\"column_encodings\":[" + encodings + "],\"column_sizes\":[" + sizes +
         R"(],"raw_data":{"basename":")" + basename + R"(","bytes":)" + std::to_string(bytes) +
         R"(,"hashes":{}},"samples":)" + std::to_string(samples) + "}";
}

/// Writes shards and their index into the folder `path`.
inline void write_mds(const std::string& path, const std::vector<mds_test_column>& columns,
                      const std::vector<std::vector<std::vector<std::string>>>& shards) {
  std::string index;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string bytes = mds_shard_bytes(columns, shards[i]);
    const std::string name = "shard." + std::to_string(i) + ".mds";
    write_file(path + "/" + name, bytes);
    index +=
        (index.empty() ? "" : ",") + mds_shard_json(columns, name, shards[i].size(), bytes.size());
  }
  write_file(path + "/index.json", "{\"version\":2,\"shards\":[" + index + "]}");
}

}  // namespace lanepack_test
