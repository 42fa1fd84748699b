#include "ps/wire/key_codec.h"

#include <algorithm>
#include <cstring>

#include "ps/storage/initializer.h"

namespace shoal::ps {
namespace {

constexpr size_t kMaxVarint = 10;
// Shorter lists are not worth a slot.
constexpr size_t kFewKeys = 8;

}  // namespace

uint64_t KeyDigest(std::span<const Key> keys) {
  // Four sums that do not wait for each other; every key is mixed with its place.
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;
  std::array<uint64_t, 4> sums = {1, 2, 3, 4};
  for (size_t i = 0; i < keys.size(); ++i) {
    uint64_t& sum = sums[i % 4];
    sum = (sum ^ keys[i]) * kOdd;
    sum ^= sum >> 32;
  }
  uint64_t digest = keys.size();
  for (const uint64_t sum : sums) digest = Mix(digest + sum);
  return digest == 0 ? 1 : digest;
}

void EncodeAscending(std::span<const Key> keys, std::string* out) {
  const size_t before = out->size();
  out->resize(before + keys.size() * kMaxVarint);
  char* const begin = out->data() + before;
  char* to = begin;
  Key last = 0;
  for (const Key key : keys) {
    uint64_t delta = key - last;
    last = key;
    for (; delta >= 0x80; delta >>= 7) *to++ = static_cast<char>(delta | 0x80);
    *to++ = static_cast<char>(delta);
  }
  out->resize(before + static_cast<size_t>(to - begin));
}

Status DecodeAscending(std::string_view bytes, size_t n, std::vector<Key>* keys) {
  keys->resize(n);
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  Key last = 0;
  for (size_t i = 0; i < n; ++i) {
    uint64_t delta = 0;
    for (uint32_t shift = 0;; shift += 7) {
      if (at == end) return InvalidArgument("coded keys end early");
      const auto byte = static_cast<uint8_t>(*at++);
      // The tenth byte has room for one bit.
      if (shift == 63 && byte > 1) return InvalidArgument("a coded key exceeds 64 bits");
      delta |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    if (delta > UINT64_MAX - last) return InvalidArgument("coded keys exceed 64 bits");
    last += delta;
    (*keys)[i] = last;
  }
  if (end - at >= 8 || std::any_of(at, end, [](char byte) { return byte != 0; })) {
    return InvalidArgument("bytes behind the coded keys");
  }
  return Status::Ok();
}

const std::vector<Key>* KeyCache::Find(uint8_t slot, uint64_t digest) const {
  if (slot == 0 || slot > slots_.size() || slots_[slot - 1u].digest != digest) return nullptr;
  return &slots_[slot - 1u].keys;
}

Status KeyCache::Keep(uint8_t slot, uint64_t digest, std::span<const Key> keys) {
  if (slot == 0 || slot > kKeySlots || digest != KeyDigest(keys)) {
    return InvalidArgument("a list of keys does not match its digest");
  }
  if (slots_.empty()) slots_.resize(kKeySlots);
  Slot& to = slots_[slot - 1u];
  if (keys_ - to.keys.size() + keys.size() > kMaxRememberedKeys) {
    return ResourceExhausted("more keys to remember than a connection may");
  }
  keys_ += keys.size() - to.keys.size();
  to.keys.assign(keys.begin(), keys.end());
  to.digest = digest;
  return Status::Ok();
}

void KeyCache::Clear() {
  std::vector<Slot>().swap(slots_);
  keys_ = 0;
}

uint8_t KeyEncoder::Find(uint64_t digest, std::span<const Key> keys) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.digest != digest ||
        !std::equal(keys.begin(), keys.end(), slot.keys.begin(), slot.keys.end())) {
      continue;
    }
    slot.used = ++now_;
    return static_cast<uint8_t>(i + 1);
  }
  return 0;
}

// At first every list is; after many that never came again, only those that come a second time.
bool KeyEncoder::WorthKeeping(uint64_t digest) {
  uint64_t& seen = seen_[digest % kSeen];
  const bool again = seen == digest;
  seen = digest;
  return again || in_vain_ < kPatience;
}

uint8_t KeyEncoder::Keep(uint64_t digest, std::span<const Key> keys) {
  const auto oldest = std::min_element(
      slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.used < b.used; });
  if (kept_keys_ - oldest->keys.size() + keys.size() > kMaxRememberedKeys) return 0;
  kept_keys_ += keys.size() - oldest->keys.size();
  oldest->keys.assign(keys.begin(), keys.end());
  oldest->digest = digest;
  oldest->used = ++now_;
  ++in_vain_;
  return static_cast<uint8_t>(oldest - slots_.begin() + 1);
}

void KeyEncoder::Clear() {
  for (Slot& slot : slots_) slot.digest = slot.used = 0;
  for (Slot& slot : slots_) slot.keys.clear();
  kept_keys_ = 0;
  in_vain_ = 0;
  seen_.fill(0);
}

void KeyEncoder::Write(const RowChunk& part, FrameHeader* head, std::string* out) {
  head->key_slot = 0;
  head->argument = 0;
  head->key_area = 0;
  keys_.resize(part.n);
  Key any = 0;
  bool ascends = part.n <= kMaxCodedKeys;
  Key last = 0;
  for (size_t i = 0; i < part.n; ++i) {
    const Key key = part.keys[part.At(i)];
    keys_[i] = key;
    any |= key;
    ascends &= key >= last;
    last = key;
  }
  if (part.n >= kFewKeys && part.n <= kMaxRememberedKeys / kKeySlots) {
    const uint64_t digest = KeyDigest(keys_);
    head->key_slot = Find(digest, keys_);
    if (head->key_slot != 0) {
      in_vain_ = 0;
      head->argument = digest;
      head->key_bytes = kKeysAreRemembered;
      return;
    }
    if (WorthKeeping(digest)) head->key_slot = Keep(digest, keys_);
    head->argument = head->key_slot != 0 ? digest : 0;
  }
  const size_t before = out->size();
  if (ascends) {
    head->key_bytes = kKeysAreDeltas;
    EncodeAscending(keys_, out);
    out->resize(before + PaddedTo8(out->size() - before));
    head->key_area = static_cast<uint32_t>(out->size() - before);
    return;
  }
  head->key_bytes = any <= UINT32_MAX ? 4 : 8;
  out->resize(before + KeyArea(part.n, head->key_bytes));
  char* to = out->data() + before;
  if (head->key_bytes == 8) {
    std::memcpy(to, keys_.data(), part.n * sizeof(Key));
    return;
  }
  for (const Key key : keys_) {
    const auto narrow = static_cast<uint32_t>(key);
    std::memcpy(to, &narrow, sizeof narrow);
    to += sizeof narrow;
  }
}

}  // namespace shoal::ps
