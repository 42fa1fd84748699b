#include "ps/checkpoint/checkpoint_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/fault_injection.h"
#include "ps/storage/row_layout.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr size_t kHeadBytes = 24;      // of the file: magic, version, zero, checkpoint
constexpr size_t kHeadRestBytes = 16;  // version 2: base, its checksum, that of all before
constexpr size_t kRecordHeadBytes = 16;
constexpr size_t kBlobRecord = 1u << 20;

size_t SavedFloats(const TableSpec& spec) {
  return RowLayout::Of(spec.dim, spec.optimizer).saved_floats();
}

// Bytes one after the other, from a file or from memory.
class Source {
 public:
  virtual ~Source() = default;
  // Exactly `size` bytes, or OutOfRange at the end.
  virtual Status Read(char* to, size_t size) = 0;
  virtual Status ExpectEnd() = 0;
};

Status TooLong() { return DataLoss("bytes follow its last record"); }

class FileSource final : public Source {
 public:
  FileSource(UniqueFd fd, uint32_t* crc) : fd_(std::move(fd)), crc_(crc) {}
  Status Read(char* to, size_t size) override {
    char* const first = to;
    const size_t wanted = size;
    TRY(FaultPoint("ps.checkpoint.read"));
    while (size > 0) {
      const ssize_t got = ::read(fd_.get(), to, size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "read");
      if (got == 0) return OutOfRange("the file ends early");
      to += got;
      size -= static_cast<size_t>(got);
    }
    if (crc_ != nullptr) *crc_ = Crc32c(first, wanted, *crc_);
    return Status::Ok();
  }
  Status ExpectEnd() override {
    char more = 0;
    ssize_t got = -1;
    do {
      got = ::read(fd_.get(), &more, 1);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return ErrnoStatus(errno, "read");
    return got == 0 ? Status::Ok() : TooLong();
  }

 private:
  UniqueFd fd_;
  uint32_t* const crc_;  // of what was read; or null
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}
  Status Read(char* to, size_t size) override {
    if (size > rest_.size()) return OutOfRange("the file ends early");
    std::copy_n(rest_.data(), size, to);
    rest_.remove_prefix(size);
    return Status::Ok();
  }
  Status ExpectEnd() override { return rest_.empty() ? Status::Ok() : TooLong(); }

 private:
  std::string_view rest_;
};

class Reader {
 public:
  Reader(Source* source, CheckpointVisitor* visitor) : source_(source), visitor_(visitor) {}

  Status Run(int64_t checkpoint) {
    CheckpointHead head;
    TRY(Head(&head));
    if (head.checkpoint != checkpoint) {
      return DataLoss(
          fmt::format("it is of checkpoint {}, expected {}", head.checkpoint, checkpoint));
    }
    based_ = head.base >= 0;
    TRY(visitor_->OnHead(head));
    for (bool end = false; !end; ++records_) {
      TRY(OneRecord(&end).With(fmt::format("record {}", records_)));
    }
    return source_->ExpectEnd();
  }

 private:
  Status Head(CheckpointHead* head) {
    char bytes[kHeadBytes + kHeadRestBytes];
    TRY(source_->Read(bytes, kHeadBytes));
    ByteReader reader(std::string_view(bytes, kHeadBytes));
    std::string_view magic;
    uint32_t version = 0, zero = 0;
    TRY(reader.GetRaw(sizeof kCheckpointMagic, &magic));
    TRY(reader.Get(&version));
    TRY(reader.Get(&zero));
    TRY(reader.Get(&head->checkpoint));
    if (magic != std::string_view(kCheckpointMagic, sizeof kCheckpointMagic)) {
      return DataLoss("this is no checkpoint: its first bytes are wrong");
    }
    if (version < 1 || zero != 0) return DataLoss(fmt::format("it has version {}", version));
    if (version == 1) return Status::Ok();
    TRY(source_->Read(bytes + kHeadBytes, kHeadRestBytes));
    ByteReader rest(std::string_view(bytes + kHeadBytes, kHeadRestBytes));
    uint32_t crc = 0;
    TRY(rest.Get(&head->base));
    TRY(rest.Get(&head->base_crc));
    TRY(rest.Get(&crc));
    if (crc != Crc32c(bytes, sizeof bytes - sizeof crc)) {
      return DataLoss("its head does not match its checksum");
    }
    // The head and its checksum are the same in all versions, so this is no damaged byte.
    if (version > kCheckpointVersion) {
      return Unimplemented(fmt::format(
          "it has version {}, this program reads 1 to {}: start a newer one, or move the "
          "checkpoint away",
          version, kCheckpointVersion));
    }
    if (head->base < -1 || head->base >= head->checkpoint) {
      return DataLoss(fmt::format("it continues checkpoint {}, expected one before {}", head->base,
                                  head->checkpoint));
    }
    return Status::Ok();
  }

  Status OneRecord(bool* end) {
    char head[kRecordHeadBytes];
    TRY(source_->Read(head, sizeof head));
    ByteReader reader(std::string_view(head, sizeof head));
    uint32_t type = 0, size = 0, crc = 0, head_crc = 0;
    TRY(reader.Get(&type));
    TRY(reader.Get(&size));
    TRY(reader.Get(&crc));
    TRY(reader.Get(&head_crc));
    if (head_crc != Crc32c(head, 12)) return DataLoss("its head does not match its checksum");
    if (size > kMaxRecord) return DataLoss(fmt::format("it claims {} bytes", size));
    payload_.resize(size);
    TRY(source_->Read(payload_.data(), size));
    if (crc != Crc32c(payload_.data(), size)) return DataLoss("it does not match its checksum");
    ByteReader body(std::string_view(payload_.data(), size));
    switch (static_cast<RecordType>(type)) {
      case RecordType::kTable:
        return Table(&body);
      case RecordType::kRows:
        return Rows(&body);
      case RecordType::kProgress:
        return Progress(&body);
      case RecordType::kBlob:
        return Blob(&body);
      case RecordType::kBlobNames:
        return BlobNames(&body);
      case RecordType::kEnd:
        *end = true;
        return End(&body);
    }
    return DataLoss(fmt::format("its type {} is unknown", type));
  }

  Status Table(ByteReader* body) {
    TableSpec spec;
    TRY(DecodeSpec(body, &spec));
    const uint32_t id = TableIdOf(spec.name);
    tables_[id] = spec;
    return visitor_->OnTable(spec);
  }

  Status Rows(ByteReader* body) {
    uint32_t table = 0, n = 0, floats = 0, zero = 0;
    TRY(body->Get(&table));
    TRY(body->Get(&n));
    TRY(body->Get(&floats));
    TRY(body->Get(&zero));
    const auto found = tables_.find(table);
    if (found == tables_.end()) return DataLoss("its table was not described before");
    const uint64_t bytes = uint64_t{n} * (sizeof(Key) + uint64_t{floats} * sizeof(float));
    if (floats != SavedFloats(found->second) || bytes != body->remaining()) {
      return DataLoss(fmt::format("{} rows of {} floats do not fit it", n, floats));
    }
    std::string_view raw;
    keys_.resize(n);
    rows_.resize(size_t{n} * floats);
    TRY(body->GetRaw(n * sizeof(Key), &raw));
    std::memcpy(keys_.data(), raw.data(), raw.size());
    TRY(body->GetRaw(rows_.size() * sizeof(float), &raw));
    std::memcpy(rows_.data(), raw.data(), raw.size());
    for (const Key key : keys_) {
      if (found->second.key_space == KeySpace::kDense && key >= found->second.rows) {
        return DataLoss(fmt::format("key {} is beyond its table", key));
      }
    }
    return visitor_->OnRows(found->second, floats, keys_, rows_);
  }

  Status Progress(ByteReader* body) {
    int32_t worker = 0;
    std::string_view bytes;
    TRY(body->Get(&worker));
    TRY(body->GetString(&bytes, kMaxProgressBytes));
    if (worker < 0) return DataLoss("its worker is negative");
    return visitor_->OnProgress(worker, bytes);
  }

  Status Blob(ByteReader* body) {
    std::string_view name, bytes;
    uint64_t total = 0, offset = 0;
    TRY(body->GetString(&name, kMaxNameBytes));
    TRY(body->Get(&total));
    TRY(body->Get(&offset));
    TRY(body->GetString(&bytes, kMaxRecord));
    if (offset > total || bytes.size() > total - offset) {
      return DataLoss("its piece of a blob lies beyond the blob");
    }
    return visitor_->OnBlob(name, total, offset, bytes);
  }

  Status BlobNames(ByteReader* body) {
    if (!based_) return DataLoss("it names blobs of a base, and there is none");
    std::set<std::string, std::less<>> names;
    while (body->remaining() > 0) {
      std::string_view name;
      TRY(body->GetString(&name, kMaxNameBytes));
      names.emplace(name);
    }
    return visitor_->OnBlobNames(names);
  }

  Status End(ByteReader* body) {
    uint64_t records = 0;
    TRY(body->Get(&records));
    if (records != records_) {
      return DataLoss(fmt::format("the file had {} records, {} are there", records, records_));
    }
    return Status::Ok();
  }

  Source* const source_;
  CheckpointVisitor* const visitor_;
  std::map<uint32_t, TableSpec> tables_;
  std::vector<char> payload_;
  std::vector<Key> keys_;
  std::vector<float> rows_;
  uint64_t records_ = 0;
  bool based_ = false;
};

Status ReadFrom(Source* source, int64_t checkpoint, CheckpointVisitor* visitor) {
  Status status = Reader(source, visitor).Run(checkpoint);
  // Bytes that end inside a field mean a damaged file, whatever the decoder called it.
  if (status.code() == Code::kOutOfRange || status.code() == Code::kInvalidArgument) {
    return DataLoss(status.message());
  }
  return status;
}

}  // namespace

Result<CheckpointWriter> CheckpointWriter::Create(const std::filesystem::path& path,
                                                  const CheckpointHead& head) {
  TRY_ASSIGN(auto file, AtomicFile::Create(path, 0600));
  CheckpointWriter writer(std::move(file));
  std::string bytes(kCheckpointMagic, sizeof kCheckpointMagic);
  ByteWriter fields(&bytes);
  fields.Put(kCheckpointVersion);
  fields.Put(uint32_t{0});
  fields.Put(head.checkpoint);
  fields.Put(head.base);
  fields.Put(head.base_crc);
  fields.Put(Crc32c(bytes.data(), bytes.size()));
  TRY(writer.Write(bytes));
  return writer;
}

Status CheckpointWriter::Write(std::string_view bytes) {
  TRY(FaultPoint("ps.checkpoint.write"));
  bytes_ += bytes.size();
  crc_ = Crc32c(bytes.data(), bytes.size(), crc_);
  return file_.Write(bytes);
}

Status CheckpointWriter::Record(RecordType type, std::string_view head, std::string_view body) {
  const size_t size = head.size() + body.size();
  SHOAL_CHECK(size <= kMaxRecord);
  std::string record;
  record.reserve(kRecordHeadBytes + head.size());
  ByteWriter writer(&record);
  writer.Put(type);
  writer.Put(static_cast<uint32_t>(size));
  writer.Put(Crc32c(body.data(), body.size(), Crc32c(head.data(), head.size())));
  writer.Put(Crc32c(record.data(), record.size()));
  writer.PutRaw(head.data(), head.size());
  ++records_;
  TRY(Write(record));
  return body.empty() ? Status::Ok() : Write(body);
}

Status CheckpointWriter::Table(const TableSpec& spec) {
  std::string bytes;
  EncodeSpec(spec, &bytes);
  return Record(RecordType::kTable, bytes, {});
}

Status CheckpointWriter::Rows(uint32_t table, size_t floats, std::span<const Key> keys,
                              std::span<const float> rows) {
  std::string head;
  ByteWriter writer(&head);
  writer.Put(table);
  writer.Put(static_cast<uint32_t>(keys.size()));
  writer.Put(static_cast<uint32_t>(floats));
  writer.Put(uint32_t{0});
  writer.PutRaw(keys.data(), keys.size_bytes());
  return Record(RecordType::kRows, head,
                {reinterpret_cast<const char*>(rows.data()), rows.size_bytes()});
}

Status CheckpointWriter::Progress(int worker, std::string_view bytes) {
  std::string head;
  ByteWriter writer(&head);
  writer.Put(static_cast<int32_t>(worker));
  writer.PutString(bytes);
  return Record(RecordType::kProgress, head, {});
}

Status CheckpointWriter::Blob(std::string_view name, std::string_view content) {
  size_t offset = 0;
  do {
    const std::string_view piece = content.substr(offset, kBlobRecord);
    std::string head;
    ByteWriter writer(&head);
    writer.PutString(name);
    writer.Put(uint64_t{content.size()});
    writer.Put(uint64_t{offset});
    writer.Put(static_cast<uint32_t>(piece.size()));
    TRY(Record(RecordType::kBlob, head, piece));
    offset += piece.size();
  } while (offset < content.size());
  return Status::Ok();
}

Status CheckpointWriter::BlobNames(const std::vector<std::string>& names) {
  std::string bytes;
  ByteWriter writer(&bytes);
  for (const std::string& name : names) writer.PutString(name);
  if (bytes.size() > kMaxRecord) {
    return ResourceExhausted(fmt::format(
        "the names of {} blobs: a checkpoint takes {} bytes of them", names.size(), kMaxRecord));
  }
  return Record(RecordType::kBlobNames, bytes, {});
}

Status CheckpointWriter::Commit() {
  std::string head;
  ByteWriter(&head).Put(records_);
  TRY(Record(RecordType::kEnd, head, {}));
  return file_.Commit();
}

Status ReadCheckpoint(const std::filesystem::path& path, int64_t checkpoint,
                      CheckpointVisitor* visitor, uint32_t* crc) {
  TRY_ASSIGN(auto fd, OpenFile(path, O_RDONLY));
  if (crc != nullptr) *crc = 0;
  FileSource source(std::move(fd), crc);
  return ReadFrom(&source, checkpoint, visitor).With(path.string());
}

Status ReadCheckpointBytes(std::string_view bytes, int64_t checkpoint, CheckpointVisitor* visitor) {
  MemorySource source(bytes);
  return ReadFrom(&source, checkpoint, visitor);
}

}  // namespace shoal::ps
