#include "ps/client/shard_router.h"

namespace shoal::ps {

void ShardRouter::Begin(uint32_t shards, const std::vector<uint32_t>& lanes) {
  const MutexLock lock(mu_);
  partition_ = Partition(shards, lanes);
  ShardMap map(partition_);
  if (known_.shards() == shards) map.Merge(known_);
  known_ = map;
}

Status ShardRouter::Learn(std::string_view bytes, bool* news) {
  ShardMap theirs;
  TRY(DecodeShards(bytes, partition_.shards(), &theirs));
  const MutexLock lock(mu_);
  *news = known_.Merge(theirs) || *news;
  return Status::Ok();
}

ShardMap ShardRouter::Known() {
  const MutexLock lock(mu_);
  return known_;
}

bool ShardRouter::OwnsShards(int server) {
  const MutexLock lock(mu_);
  return OwnersOf(known_).contains(server);
}

void ShardRouter::NoteTable(uint32_t table, KeySpace space) {
  const MutexLock lock(mu_);
  key_spaces_[table] = space;
}

int ShardRouter::ServerOf(KeySpace space, Key key) {
  const MutexLock lock(mu_);
  return known_.At(partition_.ShardOf(space, key)).owner.server;
}

size_t ShardRouter::ChannelOfRow(uint32_t table, Key key) {
  const MutexLock lock(mu_);
  return routes_[partition_.ShardOf(key_spaces_[table], key)];
}

}  // namespace shoal::ps
