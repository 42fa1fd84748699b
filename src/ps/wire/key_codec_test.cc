// Keys on the wire: what comes out is what went in, whatever was sent before; bytes from strangers.
#include "ps/wire/key_codec.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace shoal::ps {
namespace {

RC_GTEST_PROP(KeyCodec, AscendingKeysComeBack, (std::vector<Key> keys)) {
  for (Key& key : keys) key >>= *rc::gen::inRange(0, 64);
  std::sort(keys.begin(), keys.end());
  std::string bytes;
  EncodeAscending(keys, &bytes);
  std::vector<Key> back;
  RC_ASSERT(DecodeAscending(bytes, keys.size(), &back).ok());
  RC_ASSERT(back == keys);
  RC_ASSERT(DecodeAscending(bytes + std::string(7, '\0'), keys.size(), &back).ok());
  RC_ASSERT(!DecodeAscending(bytes + std::string(8, '\0'), keys.size(), &back).ok());
  RC_ASSERT(!DecodeAscending(bytes + "x", keys.size(), &back).ok());
  if (!keys.empty()) RC_ASSERT(!DecodeAscending(bytes, keys.size() + 9, &back).ok());
}

RC_GTEST_PROP(KeyCodec, AnyBytesAreReadOrRefused, (const std::string& bytes)) {
  std::vector<Key> keys;
  const size_t n = *rc::gen::inRange<size_t>(0, 20);
  if (DecodeAscending(bytes, n, &keys).ok()) RC_ASSERT(std::is_sorted(keys.begin(), keys.end()));
}

TEST(KeyCodec, DoesNotWrapAround) {
  std::string bytes;
  EncodeAscending(std::vector<Key>{UINT64_MAX}, &bytes);
  EXPECT_EQ(bytes.size(), 10u);
  std::vector<Key> keys;
  EXPECT_TRUE(DecodeAscending(bytes, 1, &keys).ok());
  EXPECT_FALSE(DecodeAscending(bytes + "\x01", 2, &keys).ok());
  bytes[9] = 2;
  EXPECT_FALSE(DecodeAscending(bytes, 1, &keys).ok());
}

// The two ends of a connection, without what is between them.
struct Wire2 {
  KeyEncoder sender;
  KeyCache memory;
  size_t bytes = 0;
  FrameHeader head;

  // What the server sees.
  std::vector<Key> Send(const std::vector<Key>& keys) {
    RowChunk part;
    part.keys = keys.data();
    part.n = keys.size();
    part.dim = 1;
    head = {};
    head.type = FrameType::kPull;
    head.rows = static_cast<uint32_t>(keys.size());
    head.dim = 1;
    std::string area;
    sender.Write(part, &head, &area);
    EXPECT_EQ(area.size(), KeyAreaOf(head));
    head.payload = static_cast<uint32_t>(area.size());
    SealHeader(&head);
    FrameHeader back;
    const Status read =
        ReadHeader({reinterpret_cast<const char*>(&head), sizeof head}, kMaxPayload, &back);
    EXPECT_TRUE(read.ok()) << read.message();
    bytes += area.size();
    std::vector<Key> got;
    if (head.key_bytes == kKeysAreRemembered) {
      const auto* kept = memory.Find(head.key_slot, head.argument);
      EXPECT_NE(kept, nullptr);
      return kept == nullptr ? got : *kept;
    }
    if (head.key_bytes == kKeysAreDeltas) {
      EXPECT_TRUE(DecodeAscending(area, keys.size(), &got).ok());
    } else {
      for (size_t i = 0; i < keys.size(); ++i) {
        Key key = 0;
        std::memcpy(&key, area.data() + i * head.key_bytes, head.key_bytes);
        got.push_back(key);
      }
    }
    if (head.key_slot != 0) {
      EXPECT_TRUE(memory.Keep(head.key_slot, head.argument, got).ok());
    }
    return got;
  }
};

TEST(KeyEncoder, TheServerAlwaysSeesWhatWasMeant) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    Wire2 wire;
    std::vector<std::vector<Key>> lists(100);
    for (auto& list : lists) {
      list.resize(1 + random() % (round % 4 == 0 ? 3000 : 50));
      for (Key& key : list) key = random() >> (random() % 30);
      if (random() % 2 == 0) std::sort(list.begin(), list.end());
      if (random() % 8 == 0) list[0] = UINT64_MAX;
    }
    for (int i = 0; i < 1000; ++i) {
      // Some come often, some seldom; now and then the connection is a new one.
      const auto& list = lists[random() % (random() % 2 == 0 ? 5 : lists.size())];
      ASSERT_EQ(wire.Send(list), list);
      if (random() % 200 == 0) {
        wire.sender.Clear();
        wire.memory.Clear();
      }
    }
  }
}

TEST(KeyEncoder, AListThatRepeatsIsSentOnce) {
  Wire2 wire;
  std::vector<Key> list(1000);
  std::mt19937 random(4);
  for (Key& key : list) key = random();
  wire.Send(list);
  EXPECT_EQ(wire.bytes, 4000u);
  for (int i = 0; i < 10; ++i) wire.Send(list);
  EXPECT_EQ(wire.bytes, 4000u);
  EXPECT_EQ(wire.head.key_bytes, kKeysAreRemembered);
  // Many lists that never come again neither drive it out for good nor fill the memory.
  for (int i = 0; i < 500; ++i) {
    auto other = list;
    other[0] = static_cast<Key>(i);
    wire.Send(other);
  }
  EXPECT_EQ(wire.head.key_slot, 0u) << "after many in vain, none is kept at first sight";
  wire.Send(list);
  wire.Send(list);
  wire.Send(list);
  EXPECT_EQ(wire.head.key_bytes, kKeysAreRemembered);
}

TEST(KeyEncoder, SortedKeysCostLittle) {
  Wire2 wire;
  std::vector<Key> list(1000);
  std::mt19937 random(4);
  for (Key& key : list) key = random() % 70'000;
  std::sort(list.begin(), list.end());
  wire.Send(list);
  EXPECT_LT(wire.bytes, 1500u);
}

// docs/formats/ps-wire.md.
TEST(KeyCodec, TheDigestOfTheDocsIsRight) {
  EXPECT_EQ(KeyDigest(std::vector<Key>{1, 2, 3, 7, 9, 30, 31, 99}), 0xcd135b9103f3a0a3ull);
}

TEST(KeyCache, IsBoundedAndChecksDigests) {
  KeyCache memory;
  const std::vector<Key> list = {1, 2, 3};
  EXPECT_EQ(memory.Find(1, KeyDigest(list)), nullptr);
  EXPECT_FALSE(memory.Keep(1, KeyDigest(list) + 1, list).ok());
  EXPECT_FALSE(memory.Keep(0, KeyDigest(list), list).ok());
  EXPECT_FALSE(memory.Keep(kKeySlots + 1, KeyDigest(list), list).ok());
  ASSERT_TRUE(memory.Keep(1, KeyDigest(list), list).ok());
  EXPECT_NE(memory.Find(1, KeyDigest(list)), nullptr);
  EXPECT_EQ(memory.Find(1, KeyDigest(list) + 1), nullptr);
  EXPECT_EQ(memory.Find(2, KeyDigest(list)), nullptr);
  EXPECT_EQ(memory.Find(255, KeyDigest(list)), nullptr);
  const std::vector<Key> huge(kMaxRememberedKeys);
  EXPECT_FALSE(memory.Keep(2, KeyDigest(huge), huge).ok());
  EXPECT_TRUE(memory.Keep(1, KeyDigest(huge), huge).ok()) << "in the place of another";
}

}  // namespace
}  // namespace shoal::ps
