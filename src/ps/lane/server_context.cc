#include "ps/lane/server_context.h"

#include <fmt/format.h>

#include "base/id.h"
#include "base/mutex.h"
#include "ps/storage/memory_limit.h"

namespace shoal::ps {
namespace {

uint64_t NewInstance() {
  const uint64_t seed = RandomSeed();
  return seed == 0 ? 1 : seed;
}

}  // namespace

ServerContext::ServerContext(ServerOptions options_in)
    : options(std::move(options_in)),
      // Which lane of another server owns a shard does not matter here.
      partition(options.shards, std::vector<uint32_t>(static_cast<size_t>(options.initial_servers),
                                                      static_cast<uint32_t>(options.threads))),
      instance(NewInstance()) {
  const uint64_t memory = MemoryLimit();
  for (int index = 0; index < options.threads; ++index) {
    lanes.push_back(std::make_unique<Lane>(
        &partition, Owner{static_cast<uint16_t>(options.index), static_cast<uint16_t>(index)},
        options.functions.get()));
    lanes.back()->LimitMemory(memory / static_cast<uint64_t>(options.threads));
    if (!options.checkpoint_dir.empty()) lanes.back()->TrackChanges();
  }
}

void ServerContext::Stop() {
  {
    const MutexLock lock(stop_mu_);
    stopped = true;
  }
  stop_cv_.notify_all();
}

bool ServerContext::WaitForStop(Duration time) {
  MutexLock lock(stop_mu_);
  return stop_cv_.wait_for(lock, time, [this] { return stopped.load(); });
}

Status ServerContext::StoppedStatus() const {
  return Unavailable(fmt::format("server {} stopped", options.index));
}

}  // namespace shoal::ps
