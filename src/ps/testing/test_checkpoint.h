// Sums over the content of a checkpoint, for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "ps/checkpoint/checkpoint_dir.h"
#include "ps/checkpoint/checkpoint_file.h"

namespace shoal::ps {

// Visits a checkpoint and adds its rows and progress up.
class CheckpointSum final : public CheckpointVisitor {
 public:
  Status OnTable(const TableSpec&) override { return Status::Ok(); }
  Status OnRows(const TableSpec& spec, size_t floats, std::span<const Key> keys,
                std::span<const float> rows) override {
    for (size_t i = 0; i < keys.size(); ++i) {
      auto& [values_of, state_of] = by_table[spec.name][keys[i]];
      values_of = state_of = 0;
      for (size_t d = 0; d < spec.dim; ++d) values_of += rows[i * floats + d];
      for (size_t d = spec.dim; d < floats; ++d) state_of += rows[i * floats + d];
    }
    return Status::Ok();
  }
  Status OnProgress(int worker, std::string_view bytes) override {
    by_worker[worker] = std::stod(std::string(bytes));
    return Status::Ok();
  }
  Status OnBlob(std::string_view, uint64_t, uint64_t, std::string_view) override {
    return Status::Ok();
  }
  void AddUp() {
    for (const auto& [name, rows] : by_table) {
      for (const auto& [key, row] : rows) values += row.first, state += row.second;
    }
    for (const auto& [worker, pushed] : by_worker) progress += pushed;
  }
  // A later file of a chain replaces the content of earlier ones.
  std::map<std::string, std::map<Key, std::pair<double, double>>> by_table;
  std::map<int, double> by_worker;
  double values = 0;
  double state = 0;
  double progress = 0;
  bool chained = false;
};

inline CheckpointSum SumCheckpoint(const std::filesystem::path& root, int64_t id) {
  CheckpointSum sum;
  const auto manifest = ReadManifest(root, id);
  EXPECT_TRUE(manifest.ok()) << manifest.status().ToString();
  if (!manifest.ok()) return sum;
  const Status read = ReadAll(root, *manifest, &sum);
  EXPECT_TRUE(read.ok()) << read.ToString();
  sum.AddUp();
  for (const auto& file : manifest->files) sum.chained = sum.chained || file.base >= 0;
  return sum;
}

}  // namespace shoal::ps
