#include "data/parquet/parquet_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "data/formats/csv_cells.h"
#include "data/parquet/thrift_reader.h"

namespace shoal::data {
namespace {

constexpr uint64_t kTail = 8;  // length of the footer, "PAR1"
constexpr uint64_t kMaxFooter = 256u << 20;
constexpr uint64_t kFirstRead = 64u << 10;  // most footers are shorter
constexpr size_t kMaxParquetDepth = 64;

class LocalRanges final : public ByteRanges {
 public:
  LocalRanges(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Status Read(uint64_t offset, char* to, size_t size) override {
    while (size > 0) {
      const ssize_t got = ::pread(fd_.get(), to, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read data file {}", path_));
      if (got == 0)
        return DataLoss(fmt::format("data file {} has shrunk while it was used", path_));
      to += got;
      offset += static_cast<uint64_t>(got);
      size -= static_cast<size_t>(got);
    }
    return Status::Ok();
  }

 private:
  UniqueFd fd_;
  std::string path_;
};

class ObjectRanges final : public ByteRanges {
 public:
  explicit ObjectRanges(std::shared_ptr<const Object> object) : object_(std::move(object)) {}
  Status Read(uint64_t offset, char* to, size_t size) override {
    while (size > 0) {
      TRY_ASSIGN(const size_t got, object_->ReadAt(offset, to, size));
      if (got == 0) return DataLoss(object_->info().uri + " has shrunk while it was used");
      to += got;
      offset += got;
      size -= got;
    }
    return Status::Ok();
  }

 private:
  const std::shared_ptr<const Object> object_;
};

// A node of the schema, in depth-first order.
struct SchemaNode {
  int64_t type = -1;
  int64_t width = 0;
  int64_t repetition = 0;  // 0 required, 1 optional, 2 repeated
  std::string name;
  int64_t children = 0;
  int64_t converted = -1;
  int64_t scale = 0;
  int64_t logical = 0;  // the number of the field of LogicalType; 0: none
  bool is_signed = true;
};

enum Logical {
  kListType = 3,
  kMapType = 2,
  kDecimalType = 5,
  kIntegerType = 10,
  kFloat16Type = 15
};
enum Converted {
  kMapConverted = 1,
  kListConverted = 3,
  kDecimalConverted = 5,
  kUint8 = 11,
  kUint64 = 14
};

Result<bool> TakeInteger(ThriftReader* in, int64_t* to) {
  TRY_ASSIGN(*to, in->Integer());
  return true;
}

Status ReadLogical(ThriftReader* in, SchemaNode* node) {
  return in->Struct([&](int64_t number, uint8_t type) -> Result<bool> {
    node->logical = number;
    if (type != ThriftReader::kStruct) return false;
    TRY(in->Struct([&](int64_t field, uint8_t kind) -> Result<bool> {
      if (number == kDecimalType && field == 1 && kind == ThriftReader::kI32)
        return TakeInteger(in, &node->scale);
      if (number == kIntegerType && field == 2) node->is_signed = kind != ThriftReader::kFalse;
      return false;
    }));
    return true;
  });
}

Status ReadNode(ThriftReader* in, SchemaNode* node) {
  return in->Struct([&](int64_t number, uint8_t type) -> Result<bool> {
    if (number == 4 && type == ThriftReader::kBinary) {
      TRY_ASSIGN(const std::string_view name, in->Binary());
      node->name = name;
      return true;
    }
    if (number == 10 && type == ThriftReader::kStruct) {
      TRY(ReadLogical(in, node));
      return true;
    }
    if (type != ThriftReader::kI32) return false;
    switch (number) {
      case 1:
        return TakeInteger(in, &node->type);
      case 2:
        return TakeInteger(in, &node->width);
      case 3:
        return TakeInteger(in, &node->repetition);
      case 5:
        return TakeInteger(in, &node->children);
      case 6:
        return TakeInteger(in, &node->converted);
      case 7:
        return TakeInteger(in, &node->scale);
      default:
        return false;
    }
  });
}

// Makes columns of the nodes.
class SchemaWalk {
 public:
  SchemaWalk(const std::vector<SchemaNode>& nodes, std::vector<ParquetColumn>* columns)
      : nodes_(nodes), columns_(*columns) {}

  Status Run() {
    if (nodes_.empty()) return DataLoss("its schema is empty");
    TRY(Children(nodes_[0].children, {}, 0));
    return next_ == nodes_.size() ? Status::Ok() : DataLoss("its schema has too many nodes");
  }

 private:
  // What the nodes above a column say.
  struct Above {
    std::string path;
    int definitions = 0;
    int repetitions = 0;
    int list_definition = 0;
    bool in_list = false;  // the parent is the list itself: its repeated child has no name
    bool element = false;  // the parent is the repeated child of a list
    bool left_out = false;
  };

  Status Children(int64_t count, const Above& above, size_t depth) {
    if (depth > kMaxParquetDepth) return DataLoss("its schema is nested too deeply");
    if (count < 0) return DataLoss("its schema has a wrong number of columns");
    for (int64_t i = 0; i < count; ++i) {
      if (next_ == nodes_.size()) return DataLoss("its schema lacks nodes");
      TRY(Node(nodes_[next_++], count, above, depth));
    }
    return Status::Ok();
  }

  Status Node(const SchemaNode& node, int64_t siblings, const Above& above, size_t depth) {
    if (node.repetition < 0 || node.repetition > 2) return DataLoss("its schema is wrong");
    Above here = above;
    const bool nameless = above.in_list || (above.element && siblings == 1);
    if (!nameless) here.path += (above.path.empty() ? "" : ".") + node.name;
    here.definitions += node.repetition != 0;
    here.in_list = here.element = false;
    // Several values below one element of a list, or a list in a list.
    if (above.repetitions > 0 && !nameless) here.left_out = true;
    if (node.repetition == 2) {
      here.left_out = here.left_out || above.repetitions > 0;
      ++here.repetitions;
      here.list_definition = here.definitions;
      here.element = above.in_list;
    }
    const bool list = node.logical == kListType || node.converted == kListConverted;
    const bool map = node.logical == kMapType || node.converted == kMapConverted;
    here.left_out = here.left_out || map || (list && above.repetitions > 0);
    if (node.type < 0 || node.children > 0) {
      here.in_list = list && node.children == 1;
      return Children(node.children, here, depth + 1);
    }
    return Leaf(node, here);
  }

  Status Leaf(const SchemaNode& node, const Above& here) {
    if (node.type > 7) return DataLoss("a column has an unknown type");
    if (columns_.size() == kMaxCsvColumns)
      return InvalidArgument(fmt::format("it has more than {} columns", kMaxCsvColumns));
    if (node.width < 0 || node.width > INT32_MAX) return DataLoss("a column has a wrong width");
    ParquetColumn column;
    column.name = here.path;
    column.type = static_cast<ParquetType>(node.type);
    column.width = static_cast<size_t>(node.width);
    if (column.type == ParquetType::kFixedBytes && (node.width == 0 || node.width > 1 << 20))
      return DataLoss("a column has a wrong width");
    column.scale = static_cast<int>(std::clamp<int64_t>(node.scale, -400, 400));
    const bool integers = column.type == ParquetType::kInt32 || column.type == ParquetType::kInt64;
    if (node.logical == kDecimalType || node.converted == kDecimalConverted) {
      column.meaning = ParquetMeaning::kDecimal;
    } else if (integers &&
               (!node.is_signed || (node.converted >= kUint8 && node.converted <= kUint64))) {
      column.meaning = ParquetMeaning::kUnsigned;
    } else if (node.logical == kFloat16Type && column.type == ParquetType::kFixedBytes &&
               column.width == 2) {
      column.meaning = ParquetMeaning::kFloat16;
    }
    column.definitions = here.definitions;
    column.repetitions = here.repetitions;
    column.list_definition = here.list_definition;
    column.left_out = here.left_out || here.repetitions > 1;
    columns_.push_back(std::move(column));
    return Status::Ok();
  }

  const std::vector<SchemaNode>& nodes_;
  std::vector<ParquetColumn>& columns_;
  size_t next_ = 1;
};

// Only the fields that are ordered by the column's type count, not the older ones of signed bytes.
Status ReadBounds(ThriftReader* in, ParquetBounds* bounds, bool* whole) {
  bool least = false;
  bool most = false;
  const auto field = [&](int64_t number, uint8_t type) -> Result<bool> {
    if (number == 3 && type == ThriftReader::kI64) return TakeInteger(in, &bounds->nulls);
    if (type != ThriftReader::kBinary || (number != 5 && number != 6)) return false;
    TRY_ASSIGN(const std::string_view value, in->Binary());
    (number == 5 ? bounds->most : bounds->least) = value;
    (number == 5 ? most : least) = true;
    return true;
  };
  TRY(in->Struct(field));
  *whole = least && most;
  return Status::Ok();
}

struct ChunkPlaces {
  int64_t codec = 0, values = -1, bytes = -1, data = -1, dictionary = -1;
  bool elsewhere = false;
  bool encrypted = false;
  bool with_bounds = false;
  std::shared_ptr<const ParquetBounds> bounds;
};

Result<bool> ReadChunkField(ThriftReader* in, int64_t field, uint8_t kind, ChunkPlaces* chunk) {
  if (chunk->with_bounds && field == 12 && kind == ThriftReader::kStruct) {
    ParquetBounds bounds;
    bool whole = false;
    TRY(ReadBounds(in, &bounds, &whole));
    if (whole) chunk->bounds = std::make_shared<const ParquetBounds>(std::move(bounds));
    return true;
  }
  if (kind != ThriftReader::kI32 && kind != ThriftReader::kI64) return false;
  switch (field) {
    case 4:
      return TakeInteger(in, &chunk->codec);
    case 5:
      return TakeInteger(in, &chunk->values);
    case 7:
      return TakeInteger(in, &chunk->bytes);
    case 9:
      return TakeInteger(in, &chunk->data);
    case 11:
      return TakeInteger(in, &chunk->dictionary);
    default:
      return false;
  }
}

Status ReadChunk(ThriftReader* in, ChunkPlaces* chunk) {
  return in->Struct([&](int64_t number, uint8_t type) -> Result<bool> {
    chunk->elsewhere = chunk->elsewhere || number == 1;
    chunk->encrypted = chunk->encrypted || number == 8;
    if (number != 3 || type != ThriftReader::kStruct) return false;
    TRY(in->Struct(
        [&](int64_t field, uint8_t kind) { return ReadChunkField(in, field, kind, chunk); }));
    return true;
  });
}

Status AddChunk(const ChunkPlaces& places, uint64_t end, ParquetRowGroup* group) {
  if (places.encrypted) return InvalidArgument("its columns are encrypted");
  if (places.elsewhere) return InvalidArgument("its columns are in other files");
  const bool dictionary = places.dictionary > 0 && places.dictionary < places.data;
  const int64_t begin = dictionary ? places.dictionary : places.data;
  const bool whole = begin >= 0 && places.bytes >= 0 && places.values >= 0 &&
                     static_cast<uint64_t>(begin) <= end &&
                     static_cast<uint64_t>(places.bytes) <= end - static_cast<uint64_t>(begin);
  if (!whole) return DataLoss("the place of a column's values is outside the file");
  group->chunks.push_back({static_cast<uint64_t>(begin), static_cast<uint64_t>(places.bytes),
                           static_cast<uint64_t>(places.values),
                           static_cast<int>(std::clamp<int64_t>(places.codec, -1, 100)),
                           places.bounds});
  return Status::Ok();
}

Status ReadGroup(ThriftReader* in, uint64_t end, bool with_bounds, ParquetRowGroup* group) {
  int64_t rows = -1;
  const auto chunk = [&]() -> Status {
    ChunkPlaces places;
    places.with_bounds = with_bounds;
    TRY(ReadChunk(in, &places));
    return AddChunk(places, end, group);
  };
  const auto field = [&](int64_t number, uint8_t type) -> Result<bool> {
    if (number == 3 && type == ThriftReader::kI64) return TakeInteger(in, &rows);
    if (number != 1 || type != ThriftReader::kList) return false;
    TRY(in->StructList(chunk));
    return true;
  };
  TRY(in->Struct(field));
  if (rows < 0) return DataLoss("a row group has no number of rows");
  group->rows = static_cast<uint64_t>(rows);
  group->begin = end;
  for (const ParquetChunk& one : group->chunks) group->begin = std::min(group->begin, one.begin);
  return Status::Ok();
}

// `end`: of the data in the file.
Status ReadMetadata(std::string_view bytes, uint64_t end, bool with_bounds, ParquetFooter* footer) {
  ThriftReader in(bytes);
  std::vector<SchemaNode> nodes;
  const auto field = [&](int64_t number, uint8_t type) -> Result<bool> {
    if (number == 8) return InvalidArgument("it is encrypted");
    if (type != ThriftReader::kList || (number != 2 && number != 4)) return false;
    TRY(in.StructList([&]() -> Status {
      if (number == 2) return ReadNode(&in, &nodes.emplace_back());
      return ReadGroup(&in, end, with_bounds, &footer->groups.emplace_back());
    }));
    return true;
  };
  TRY(in.Struct(field));
  TRY(SchemaWalk(nodes, &footer->columns).Run());
  for (const ParquetRowGroup& group : footer->groups) {
    if (group.chunks.size() != footer->columns.size())
      return DataLoss(fmt::format("a row group has {} columns, expected {}", group.chunks.size(),
                                  footer->columns.size()));
    footer->rows += group.rows;
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<ByteRanges>> ByteRanges::Open(const SourceFile& file) {
  if (file.object != nullptr)
    return std::unique_ptr<ByteRanges>(std::make_unique<ObjectRanges>(file.object));
  TRY_ASSIGN(UniqueFd fd, OpenFile(file.path, O_RDONLY | O_NONBLOCK));
  return std::unique_ptr<ByteRanges>(
      std::make_unique<LocalRanges>(std::move(fd), file.path.string()));
}

Result<ParquetFooter> ReadParquetFooter(const SourceFile& file, ByteRanges* bytes,
                                        bool with_bounds) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument(fmt::format("data file {}: {}", file.path.string(), why));
  };
  const uint64_t size = file.stored_bytes;
  if (size < kTail + 4) return refuse("it is no Parquet file: it is too short");
  std::string tail(static_cast<size_t>(std::min(size, kFirstRead)), '\0');
  TRY(bytes->Read(size - tail.size(), tail.data(), tail.size()));
  if (tail.ends_with("PARE")) return refuse("its footer is encrypted");
  if (!tail.ends_with("PAR1"))
    return refuse("it is no Parquet file, or it is cut off: it does not end with PAR1");
  uint32_t length = 0;
  std::memcpy(&length, tail.data() + tail.size() - kTail, sizeof length);
  if (length > size - kTail - 4 || length > kMaxFooter)
    return refuse(fmt::format("its footer of {} bytes does not fit into the file", length));
  const uint64_t end = size - kTail - length;
  if (length + kTail > tail.size()) {
    tail.resize(length + kTail);
    TRY(bytes->Read(end, tail.data(), tail.size()));
  }
  ParquetFooter footer;
  const std::string_view metadata =
      std::string_view(tail).substr(tail.size() - kTail - length, length);
  if (const Status status = ReadMetadata(metadata, end, with_bounds, &footer); !status.ok())
    return refuse("its footer is not readable: " + status.message());
  return footer;
}

}  // namespace shoal::data
