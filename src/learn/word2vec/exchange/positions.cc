#include "learn/word2vec/exchange/positions.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/mutex.h"

namespace shoal::learn::word2vec {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxThreads = 4096;

}  // namespace

std::string EncodePositions(const std::vector<Position>& positions) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(kVersion);
  writer.Put(static_cast<uint32_t>(positions.size()));
  for (const Position& position : positions) {
    writer.Put(position.epoch);
    writer.Put(position.item);
    writer.Put(position.random);
    writer.Put(position.words);
  }
  return bytes;
}

Result<std::vector<Position>> DecodePositions(std::string_view bytes) {
  ByteReader reader(bytes);
  uint32_t version = 0;
  uint32_t threads = 0;
  if (!reader.Get(&version).ok() || !reader.Get(&threads).ok() || version != kVersion ||
      threads == 0 || threads > kMaxThreads || reader.remaining() != threads * sizeof(uint64_t) * 4)
    return DataLoss(
        fmt::format("the saved position of a worker is malformed ({} bytes)", bytes.size()));
  std::vector<Position> positions(threads);
  for (Position& position : positions) {
    TRY(reader.Get(&position.epoch));
    TRY(reader.Get(&position.item));
    TRY(reader.Get(&position.random));
    TRY(reader.Get(&position.words));
  }
  return positions;
}

Positions::Positions(std::vector<Position> at)
    : now_(std::move(at)), sweeps_(now_.size()), pending_(now_), needed_(now_.size(), 1) {}

std::optional<std::vector<Position>> Positions::Update(size_t thread, const Position& at,
                                                       uint64_t sweeps) {
  const MutexLock lock(mu_);
  now_[thread] = at;
  sweeps_[thread] = sweeps;
  for (size_t i = 0; i < now_.size(); ++i) {
    if (sweeps_[i] < needed_[i]) return std::nullopt;
  }
  std::optional<std::vector<Position>> safe(std::move(pending_));
  pending_ = now_;
  // A single thread has just begun a sweep; several threads are in the middle of one, which does
  // not count.
  const uint64_t more = now_.size() == 1 ? 1 : 2;
  for (size_t i = 0; i < now_.size(); ++i) needed_[i] = sweeps_[i] + more;
  return safe;
}

std::vector<Position> Positions::current() const {
  const MutexLock lock(mu_);
  return now_;
}

}  // namespace shoal::learn::word2vec
