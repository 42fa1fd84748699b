#include "learn/sparse/position.h"

#include "base/bytes.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint32_t kVersion = 2;
constexpr uint32_t kMaxThreads = 1024;

}  // namespace

std::string EncodePositions(const std::vector<Position>& positions) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(kVersion);
  writer.Put(static_cast<uint32_t>(positions.size()));
  for (const Position& position : positions) {
    writer.Put(position.epoch);
    writer.Put(position.example);
    writer.Put(position.trained);
  }
  return bytes;
}

Result<std::vector<Position>> DecodePositions(std::string_view bytes) {
  ByteReader reader(bytes);
  uint32_t version = 0;
  uint32_t threads = 0;
  if (!reader.Get(&version).ok() || version != kVersion || !reader.Get(&threads).ok() ||
      threads == 0 || threads > kMaxThreads || reader.remaining() != size_t{threads} * 24) {
    return DataLoss("the saved position of a worker is not of this kind of training");
  }
  std::vector<Position> positions(threads);
  for (Position& position : positions) {
    TRY(reader.Get(&position.epoch));
    TRY(reader.Get(&position.example));
    TRY(reader.Get(&position.trained));
  }
  return positions;
}

uint64_t TrainedBy(const std::vector<Position>& positions) {
  uint64_t trained = 0;
  for (const Position& position : positions) trained += position.trained;
  return trained;
}

}  // namespace shoal::learn::sparse
