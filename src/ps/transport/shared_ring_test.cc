// The rings of one host's connections: bytes come through in order around their end, sleep and
// knocks are not lost, and a hostile other side is noticed rather than believed.
#include "ps/transport/shared_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

namespace shoal::ps {
namespace {

struct Pair {
  SharedRings rings = SharedRings::Create(kMinRingBytes).value();
  RingControl* control = rings.control(SharedRings::kToServer);
  RingWriter writer{rings, SharedRings::kToServer};
  RingReader reader{rings, SharedRings::kToServer};

  size_t Write(size_t n, char first) {
    n = std::min(n, writer.Room(n));
    for (size_t i = 0; i < n; ++i) writer.At()[i] = static_cast<char>(first + static_cast<char>(i));
    writer.Advance(n);
    return n;
  }
};

TEST(SharedRing, WhatLiesAroundTheEndIsInOnePiece) {
  Pair pair;
  char next = 0, expected = 0;
  for (int turn = 0; turn < 50; ++turn) {
    const size_t wrote = pair.Write(100'001, next);
    ASSERT_EQ(wrote, 100'001u);
    next = static_cast<char>(next + static_cast<char>(wrote));
    EXPECT_FALSE(pair.writer.Publish());
    ASSERT_TRUE(pair.reader.CheckForData());
    for (const char byte : pair.reader.view()) ASSERT_EQ(byte, expected++);
    pair.reader.Consume(wrote);
    EXPECT_FALSE(pair.reader.Release());
    EXPECT_FALSE(pair.reader.CheckForData());
  }
}

TEST(SharedRing, AFullOneTakesNoMoreAndTheReaderKnocksWhenHalfIsFree) {
  Pair pair;
  EXPECT_EQ(pair.Write(2 * kMinRingBytes, 0), kMinRingBytes);
  pair.writer.Publish();
  EXPECT_EQ(pair.writer.Room(1), 0u);
  EXPECT_FALSE(pair.writer.AwaitRoom());
  ASSERT_TRUE(pair.reader.CheckForData());
  pair.reader.Consume(1000);
  EXPECT_FALSE(pair.reader.Release());
  pair.reader.Consume(kMinRingBytes / 2);
  EXPECT_TRUE(pair.reader.Release());
  EXPECT_TRUE(pair.writer.AwaitRoom());
  EXPECT_EQ(pair.writer.Room(kMinRingBytes), kMinRingBytes / 2 + 1000);
}

TEST(SharedRing, OnlyASleeperIsKnockedAt) {
  Pair pair;
  EXPECT_TRUE(pair.reader.Sleep());
  pair.Write(8, 0);
  EXPECT_TRUE(pair.writer.Publish());
  pair.Write(8, 0);
  EXPECT_FALSE(pair.writer.Publish());  // it has been knocked at
  EXPECT_FALSE(pair.reader.Sleep());    // something came
  ASSERT_TRUE(pair.reader.CheckForData());
  pair.reader.Consume(16);
  EXPECT_TRUE(pair.reader.Sleep());
}

TEST(SharedRing, ImpossibleIndicesBreakIt) {
  for (const uint64_t head : {kMinRingBytes + 1, uint64_t{1} << 63, UINT64_MAX}) {
    Pair pair;
    pair.control->head = head;
    EXPECT_TRUE(pair.reader.CheckForData());
    EXPECT_TRUE(pair.reader.broken());
    EXPECT_TRUE(pair.reader.view().empty());
  }
  {
    Pair pair;
    pair.Write(100, 0);
    pair.writer.Publish();
    ASSERT_TRUE(pair.reader.CheckForData());
    pair.control->head = 50;  // back
    EXPECT_TRUE(pair.reader.CheckForData());
    EXPECT_TRUE(pair.reader.broken());
  }
  for (const uint64_t tail : {uint64_t{101}, UINT64_MAX}) {
    Pair pair;
    pair.Write(100, 0);
    pair.writer.Publish();
    pair.control->tail = tail;  // more than was shown
    EXPECT_EQ(pair.writer.Room(kMinRingBytes), 0u);
    EXPECT_TRUE(pair.writer.broken());
  }
}

TEST(SharedRing, OnlySealedMemoryOfTheRightSizeIsMapped) {
  const SharedRings made = SharedRings::Create().value();
  EXPECT_NE(::ftruncate(made.fd(), 0), 0);
  EXPECT_TRUE(SharedRings::Open(UniqueFd(::dup(made.fd()))).ok());
  UniqueFd open(::memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 4096 + 2 * kRingBytes), 0);
  EXPECT_FALSE(SharedRings::Open(UniqueFd(::dup(open.get()))).ok());  // not sealed
  UniqueFd small(::memfd_create("test", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(small.get(), 4096), 0);
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_FALSE(SharedRings::Open(std::move(small)).ok());
  for (const size_t rings : {kMinRingBytes / 2, kMinRingBytes + 4096, 2 * kMaxRingBytes}) {
    UniqueFd odd(::memfd_create("test", MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(odd.get(), static_cast<off_t>(4096 + 2 * rings)), 0);
    ASSERT_EQ(::fcntl(odd.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    EXPECT_FALSE(SharedRings::Open(std::move(odd)).ok()) << rings;
  }
  EXPECT_FALSE(SharedRings::Open(UniqueFd()).ok());
}

TEST(SharedRing, TwoThreadsAgree) {
  Pair pair;
  constexpr size_t kTotal = 4u << 20;
  std::thread writes([&] {
    for (size_t at = 0; at < kTotal;) {
      const size_t n = pair.Write(std::min<size_t>(kTotal - at, 7000), static_cast<char>(at));
      pair.writer.Publish();
      at += n;
      if (n == 0) std::this_thread::yield();
    }
  });
  size_t wrong = 0;
  for (size_t at = 0; at < kTotal;) {
    if (!pair.reader.CheckForData()) {
      std::this_thread::yield();
      continue;
    }
    for (const char byte : pair.reader.view()) wrong += byte != static_cast<char>(at++);
    pair.reader.Consume(pair.reader.view().size());
    pair.reader.Release();
  }
  writes.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace shoal::ps
