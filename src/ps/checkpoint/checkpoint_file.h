// One server's part of a checkpoint as a file of checksummed records (docs/formats/checkpoint.md).
//
// A file is whole, or it holds only what changed since an earlier one of the same server, its base.
// Written by the server's checkpoint thread (server_file_writer.cc), read at restore. What is read
// may be truncated, corrupted or forged: every record is bounded and checked before it is believed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "ps/types.h"

namespace shoal::ps {

inline constexpr char kCheckpointMagic[8] = {'S', 'H', 'O', 'A', 'L', 'P', 'S', 'C'};
inline constexpr uint32_t kCheckpointVersion = 2;  // 1, without bases, is read too
inline constexpr uint32_t kMaxRecord = 64u << 20;

enum class RecordType : uint32_t {
  kTable = 1,      // spec
  kRows = 2,       // rows of one table
  kProgress = 3,   // one worker's
  kBlob = 4,       // one piece of one blob
  kEnd = 5,        // how many records came before
  kBlobNames = 6,  // of all blobs that there are; only where there is a base
};

struct CheckpointHead {
  int64_t checkpoint = -1;
  int64_t base = -1;      // the checkpoint that it continues; -1: it is whole
  uint32_t base_crc = 0;  // of all bytes of this server's file in that one
};

class CheckpointWriter {
 public:
  static Result<CheckpointWriter> Create(const std::filesystem::path& path,
                                         const CheckpointHead& head);

  Status Table(const TableSpec& spec);
  // rows: keys.size() times `floats` floats.
  Status Rows(uint32_t table, size_t floats, std::span<const Key> keys,
              std::span<const float> rows);
  Status Progress(int worker, std::string_view bytes);
  Status Blob(std::string_view name, std::string_view content);
  Status BlobNames(const std::vector<std::string>& names);
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

// Receives the content of a file, piece by piece. Views are valid during the call. An error stops
// the reading.
class CheckpointVisitor {
 public:
  virtual ~CheckpointVisitor() = default;
  // Before all else. A file with a base comes after that base, and what it holds replaces it.
  virtual Status OnHead(const CheckpointHead&) { return Status::Ok(); }
  virtual Status OnTable(const TableSpec& spec) = 0;
  // rows: keys.size() times `floats`: RowLayout::saved_floats of the table.
  virtual Status OnRows(const TableSpec& spec, size_t floats, std::span<const Key> keys,
                        std::span<const float> rows) = 0;
  virtual Status OnProgress(int worker, std::string_view bytes) = 0;
  // Pieces of a blob come in order; the last one has offset + bytes.size() == total.
  virtual Status OnBlob(std::string_view name, uint64_t total, uint64_t offset,
                        std::string_view bytes) = 0;
  // Blobs of the base that are not among these are gone.
  virtual Status OnBlobNames(const std::set<std::string, std::less<>>&) { return Status::Ok(); }
};

// Reads all of it. DataLoss says where a checksum, bound or the end is wrong. The visitor has then
// seen the records before. *crc, unless null, becomes that of all bytes of the file.
Status ReadCheckpoint(const std::filesystem::path& path, int64_t checkpoint,
                      CheckpointVisitor* visitor, uint32_t* crc = nullptr);
// The same over bytes in memory; for tests and the fuzzer.
Status ReadCheckpointBytes(std::string_view bytes, int64_t checkpoint, CheckpointVisitor* visitor);

}  // namespace shoal::ps
