// One server's part of a checkpoint as a file of checksummed records (docs/formats/checkpoint.md).
//
// Written by the server's checkpoint thread (server_checkpoint.cc), read at restore. What is read
// may be truncated, corrupted or forged: every record is bounded and checked before it is believed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "ps/types.h"

namespace shoal::ps {

inline constexpr char kCheckpointMagic[8] = {'S', 'H', 'O', 'A', 'L', 'P', 'S', 'C'};
inline constexpr uint32_t kCheckpointVersion = 1;
inline constexpr uint32_t kMaxRecord = 64u << 20;

enum class RecordType : uint32_t {
  kTable = 1,     // spec
  kRows = 2,      // rows of one table
  kProgress = 3,  // one worker's
  kBlob = 4,      // one piece of one blob
  kEnd = 5,       // how many records came before
};

class CheckpointWriter {
 public:
  static Result<CheckpointWriter> Create(const std::filesystem::path& path, int64_t checkpoint);

  Status Table(const TableSpec& spec);
  // rows: keys.size() times `floats` floats.
  Status Rows(uint32_t table, size_t floats, std::span<const Key> keys,
              std::span<const float> rows);
  Status Progress(int worker, std::string_view bytes);
  Status Blob(std::string_view name, std::string_view content);
  // Ends the file, makes it durable and visible. Nothing is visible if not called.
  Status Commit();
  uint64_t bytes() const { return bytes_; }
  // Of all bytes of the file.
  uint32_t crc() const { return crc_; }

 private:
  explicit CheckpointWriter(AtomicFile file) : file_(std::move(file)) {}
  Status Record(RecordType type, std::string_view head, std::string_view body);
  Status Write(std::string_view bytes);

  AtomicFile file_;
  uint64_t bytes_ = 0;
  uint32_t crc_ = 0;
  uint64_t records_ = 0;
};

// What a file holds, piece by piece. Views are valid during the call. An error stops the reading.
class CheckpointVisitor {
 public:
  virtual ~CheckpointVisitor() = default;
  virtual Status OnTable(const TableSpec& spec) = 0;
  // rows: keys.size() times `floats`: RowLayout::saved_floats of the table.
  virtual Status OnRows(const TableSpec& spec, size_t floats, std::span<const Key> keys,
                        std::span<const float> rows) = 0;
  virtual Status OnProgress(int worker, std::string_view bytes) = 0;
  // Pieces of a blob come in order; the last one has offset + bytes.size() == total.
  virtual Status OnBlob(std::string_view name, uint64_t total, uint64_t offset,
                        std::string_view bytes) = 0;
};

// Reads all of it. DataLoss says where a checksum, bound or the end is wrong. The visitor has then
// seen the records before.
Status ReadCheckpoint(const std::filesystem::path& path, int64_t checkpoint,
                      CheckpointVisitor* visitor);
// The same over bytes in memory; for tests and the fuzzer.
Status ReadCheckpointBytes(std::string_view bytes, int64_t checkpoint, CheckpointVisitor* visitor);

}  // namespace shoal::ps
