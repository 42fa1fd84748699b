// Keys as they travel: raw, as differences where they ascend, or as the digest of a list that this
// connection has carried before (docs/formats/ps-wire.md).
//
// KeyEncoder is the client's end, one a channel; KeyCache the server's, one a session. The sender
// alone decides what the memory remembers, and both begin empty with every connection, so a digest
// that the memory does not know means that one of them is wrong: the server then closes the
// connection, and the client sends everything unanswered again over a new one, keys and all.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ps/transport/transport.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

// Never 0.
uint64_t KeyDigest(std::span<const Key> keys);

// Appends the first key and then the differences, each in groups of 7 bits, low ones first, the
// eighth bit saying that more come. Keys must ascend (equal ones are fine).
void EncodeAscending(std::span<const Key> keys, std::string* out);
// Reads exactly n keys; what is left must be less than 8 zero bytes of padding.
Status DecodeAscending(std::string_view bytes, size_t n, std::vector<Key>* keys);

// The most keys that a connection remembers, in all lists together.
inline constexpr size_t kMaxRememberedKeys = 1u << 17;  // 1 MiB

class KeyCache {
 public:
  // The list that a frame means by its slot and digest, or null.
  const std::vector<Key>* Find(uint8_t slot, uint64_t digest) const;
  // InvalidArgument if the digest is not theirs; ResourceExhausted beyond kMaxRememberedKeys.
  Status Keep(uint8_t slot, uint64_t digest, std::span<const Key> keys);
  void Clear();

 private:
  struct Slot {
    uint64_t digest = 0;
    std::vector<Key> keys;
  };
  std::vector<Slot> slots_;  // none until the first is kept
  size_t keys_ = 0;
};

class KeyEncoder {
 public:
  // Writes the keys of `part` behind what is in *out, padded to 8, and says in *head how to read
  // them. The frame must be sent, and in this order. O(n); no allocation once warm.
  void Write(const RowChunk& part, FrameHeader* head, std::string* out);
  // A new connection.
  void Clear();

 private:
  struct Slot {
    uint64_t digest = 0;
    uint64_t used = 0;  // when
    std::vector<Key> keys;
  };
  // The slot that has this list, or 0.
  uint8_t Find(uint64_t digest, std::span<const Key> keys);
  // Whether a list that is met for the first time is worth remembering; and where.
  bool WorthKeeping(uint64_t digest);
  uint8_t Keep(uint64_t digest, std::span<const Key> keys);

  static constexpr size_t kSeen = 256;
  static constexpr uint32_t kPatience = 64;  // lists kept in vain

  std::vector<Key> keys_;  // of the present part
  std::array<Slot, kKeySlots> slots_;
  std::array<uint64_t, kSeen> seen_{};  // digests, by their low bits
  uint64_t now_ = 0;
  size_t kept_keys_ = 0;
  uint32_t in_vain_ = 0;
};

}  // namespace shoal::ps
