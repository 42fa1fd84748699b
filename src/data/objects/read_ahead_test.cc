#include "data/objects/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace shoal::data {
namespace {

class FakeObject final : public Object {
 public:
  explicit FakeObject(std::string bytes) : bytes_(std::move(bytes)) {
    info_ = {"fake", bytes_.size(), "1", ""};
  }
  const ObjectInfo& info() const override { return info_; }
  Result<size_t> ReadAt(uint64_t offset, char* to, size_t size) const override {
    const int now = ++reading;
    int most = most_reading;
    while (now > most && !most_reading.compare_exchange_weak(most, now)) {
    }
    fetched += size;
    const Status fails = offset >= fails_at ? DataLoss("it fails there") : Status::Ok();
    if (fails.ok()) std::memcpy(to, bytes_.data() + offset, size);
    --reading;
    if (!fails.ok()) return fails;
    return size;
  }

  uint64_t fails_at = UINT64_MAX;
  mutable std::atomic<int> reading{0};
  mutable std::atomic<int> most_reading{0};
  mutable std::atomic<uint64_t> fetched{0};

 private:
  const std::string bytes_;
  ObjectInfo info_;
};

std::string SomeBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  return bytes;
}

std::string ReadRest(ReadAhead* stream) {
  std::string all;
  for (;;) {
    char block[777];
    const auto got = stream->Read(block, sizeof block);
    EXPECT_TRUE(got.ok()) << got.status().message();
    if (got.value_or(0) == 0) return all;
    all.append(block, *got);
  }
}

constexpr ReadAheadOptions kSmall = {.first_block = 16, .block = 1000, .blocks = 3};

TEST(ReadAhead, GivesAllBytesInOrder) {
  for (const size_t size : {0u, 1u, 15u, 16u, 17u, 100'000u}) {
    const auto object = std::make_shared<FakeObject>(SomeBytes(size));
    ReadAhead stream(object, size, kSmall);
    EXPECT_EQ(ReadRest(&stream), SomeBytes(size)) << size;
    EXPECT_LE(object->most_reading, 4);
    EXPECT_EQ(object->fetched, size);
  }
}

TEST(ReadAhead, ReadsOneShortRangeAtFirst) {
  const auto object = std::make_shared<FakeObject>(SomeBytes(100'000));
  {
    ReadAhead stream(object, 100'000, kSmall);
    char some[8];
    EXPECT_EQ(stream.Read(some, 8).value(), 8u);
    EXPECT_EQ(stream.Read(some, 8).value(), 8u);
  }
  EXPECT_EQ(object->fetched, 16u);
}

TEST(ReadAhead, HoldsABoundedNumberOfRanges) {
  const auto object = std::make_shared<FakeObject>(SomeBytes(100'000));
  {
    ReadAhead stream(object, 100'000, kSmall);
    char some[8];
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(stream.Read(some, 8).ok());
  }
  EXPECT_LE(object->fetched, 80u + 3 * 1000);
}

TEST(ReadAhead, JumpsBothWays) {
  const std::string bytes = SomeBytes(50'000);
  const auto object = std::make_shared<FakeObject>(bytes);
  ReadAhead stream(object, bytes.size(), kSmall);
  for (const uint64_t at : {40'000u, 10u, 12u, 20'000u, 20'500u, 19'999u, 50'000u, 0u, 49'999u}) {
    stream.Jump(at);
    char some[700];
    const size_t want = std::min<size_t>(700, bytes.size() - at);
    size_t have = 0;
    while (have < want) {
      const auto got = stream.Read(some + have, want - have);
      ASSERT_TRUE(got.ok());
      ASSERT_GT(*got, 0u);
      have += *got;
    }
    EXPECT_EQ(std::string(some, have), bytes.substr(at, want)) << at;
  }
  stream.Jump(90'000);
  char some[1];
  EXPECT_EQ(stream.Read(some, 1).value(), 0u);
}

TEST(ReadAhead, AnErrorComesAtItsPlaceAndStays) {
  const auto object = std::make_shared<FakeObject>(SomeBytes(10'000));
  object->fails_at = 5'000;
  ReadAhead stream(object, 10'000, kSmall);
  uint64_t read = 0;
  Status error;
  while (error.ok()) {
    char block[100];
    const auto got = stream.Read(block, sizeof block);
    error = got.status();
    read += got.value_or(0);
  }
  EXPECT_EQ(error.message(), "it fails there");
  EXPECT_GE(read, 4'000u);
  char block[1];
  EXPECT_FALSE(stream.Read(block, 1).ok());
}

}  // namespace
}  // namespace shoal::data
