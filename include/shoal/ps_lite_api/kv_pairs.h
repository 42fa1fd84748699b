// The messages between workers and servers of shoal/ps_lite_compat.h.
#pragma once

#include <memory>
#include <utility>

#include <shoal/ps_lite_api/simple_app.h>

namespace ps {

// Keys ascend and are unique. Values lie one after the other: lens[i] of key i, or, where lens is
// empty, vals.size() / keys.size() of each.
template <typename Val>
struct KVPairs {
  SArray<Key> keys;
  SArray<Val> vals;
  SArray<int> lens;
  int priority = 0;
};

struct KVMeta {
  int cmd;
  bool push;
  bool pull;
  int sender;
  int timestamp;
  int customer_id;
};

namespace lite_kv {

template <typename V>
::shoal::ps::lite::Bytes BytesOf(const SArray<V>& array) {
  return {std::const_pointer_cast<void>(std::static_pointer_cast<const void>(array.ptr())),
          array.data(), array.size() * sizeof(V)};
}
template <typename V>
SArray<V> ArrayOf(const ::shoal::ps::lite::Bytes& bytes) {
  CHECK_EQ(bytes.size % sizeof(V), 0u) << "keys or values of another type than here";
  SArray<V> array;
  const std::shared_ptr<V> memory(bytes.owner, static_cast<V*>(bytes.owner.get()));
  array.reset(memory.get(), bytes.size / sizeof(V), [memory](V*) {});
  return array;
}
template <typename Val>
void AddParts(const KVPairs<Val>& pairs, ::shoal::ps::lite::Message* message) {
  if (pairs.keys.empty()) return;
  message->parts = {BytesOf(pairs.keys), BytesOf(pairs.vals)};
  if (!pairs.lens.empty()) message->parts.push_back(BytesOf(pairs.lens));
}
template <typename Val>
KVPairs<Val> PairsOf(const ::shoal::ps::lite::Message& message) {
  KVPairs<Val> pairs;
  if (message.parts.size() < 2) return pairs;
  pairs.keys = ArrayOf<Key>(message.parts[0]);
  pairs.vals = ArrayOf<Val>(message.parts[1]);
  if (message.parts.size() > 2) pairs.lens = ArrayOf<int>(message.parts[2]);
  return pairs;
}

}  // namespace lite_kv

}  // namespace ps
