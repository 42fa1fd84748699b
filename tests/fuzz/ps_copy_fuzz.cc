// What a primary tells its backup: entries of any content, in order. The backup must take or refuse
// each, and go on; and whatever it took it must be able to serve. And the same as what a server
// tells another one that it gives a shard to: what is served there already must stay as it is.
//
// Input: u16 length and that many bytes of each entry; the headers of rows are put right.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "ps/lane/replica_entry.h"
#include "ps/server/server_core.h"

namespace {

using namespace shoal;      // NOLINT: a program of one function
using namespace shoal::ps;  // NOLINT

class Nobody final : public ServerConnection {
 public:
  void Reply(const FrameHeader&, std::string_view) override {}
  void CloseAfterFlush(const Status&) override {}
  void FlushReplies() override {}
};

std::shared_ptr<ServerCore> MakeBackup() {
  ServerOptions options;
  options.token = "fuzz";
  options.servers = options.initial_servers = 2;
  options.shards = 4;
  options.max_blob_bytes = options.max_blobs_bytes = 1 << 16;
  auto core = ServerCore::MakeBackup(options);
  TableSpec spec;
  spec.name = "t";
  spec.rows = 100;
  spec.dim = 4;
  TableSpec sparse = spec;
  sparse.name = "s";
  sparse.key_space = KeySpace::kSparse;
  Lane::Guard guard(core->lane(0));
  if (!core->lane(0).CreateTable(spec).ok() || !core->lane(0).CreateTable(sparse).ok()) {
    std::abort();
  }
  return core;
}

// Whoever knows the token may fill the memory with tables; that is not looked for here.
bool MakesATable(std::string_view entry) {
  uint32_t kind = 0, type = 0;
  if (entry.size() < 36) return false;
  std::memcpy(&kind, entry.data(), sizeof kind);
  std::memcpy(&type, entry.data() + 32, sizeof type);
  return kind == static_cast<uint32_t>(EntryKind::kControl) &&
         (type & 0xff) == static_cast<uint32_t>(FrameType::kCreateTable);
}

void PutRight(std::string* entry) {
  uint32_t kind = 0;
  FrameHeader head;
  if (entry->size() < 16 + sizeof head) return;
  std::memcpy(&kind, entry->data(), sizeof kind);
  if (kind != static_cast<uint32_t>(EntryKind::kRows)) return;
  std::memcpy(&head, entry->data() + 16, sizeof head);
  head.magic = kFrameMagic;
  head.version = kFrameVersion;
  head.payload = static_cast<uint32_t>(entry->size() - 16 - sizeof head);
  SealHeader(&head);
  std::memcpy(entry->data() + 16, &head, sizeof head);
}

}  // namespace

// The first entry is a map of shards as well.
void Move(std::string_view rest) {
  ServerOptions options;
  options.token = "fuzz";
  options.servers = options.initial_servers = 2;
  options.shards = 4;
  const auto core = ServerCore::Make(options).value();
  const auto peer = std::make_shared<Nobody>();
  TableSpec spec;
  spec.name = "t";
  spec.rows = 100;
  spec.dim = 4;
  Hello hello;
  hello.kind = HelloKind::kMove;
  hello.session = 1;
  hello.server = 0;
  hello.from = 1;
  if (!core->Join(hello, peer).ok()) std::abort();
  Lane::Guard guard(core->lane(0));
  Lane& lane = core->lane(0);
  if (!lane.CreateTable(spec).ok()) std::abort();
  bool first = true;
  while (rest.size() > 2) {
    uint16_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    const std::string_view entry = rest.substr(0, length);
    rest.remove_prefix(entry.size());
    FrameHeader head;
    head.type = FrameType::kReplicate;
    const bool served = lane.state(0) == ShardState::kHere;
    if (!core->Control(hello, peer, head, entry).ok()) std::abort();
    if (served && lane.state(0) != ShardState::kHere) std::abort();
    if (first) {
      head.type = FrameType::kShards;
      if (!core->Control(hello, peer, head, entry).ok()) std::abort();
    }
    first = false;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Move({reinterpret_cast<const char*>(data), size});
  const auto core = MakeBackup();
  const auto peer = std::make_shared<Nobody>();
  Hello hello;
  hello.kind = HelloKind::kCopy;
  hello.session = 1;
  hello.server = 0;
  hello.from = 1;
  if (!core->Join(hello, peer).ok()) std::abort();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  FrameHeader head;
  head.type = FrameType::kReplicate;
  for (uint64_t position = 1; rest.size() > 2;) {
    uint16_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    std::string entry(rest.substr(0, length));
    rest.remove_prefix(entry.size());
    PutRight(&entry);
    if (MakesATable(entry)) continue;
    head.id = position;
    Lane::Guard guard(core->lane(0));
    if (core->Control(hello, peer, head, entry).ok()) ++position;
    if (core->lane(0).copied != position - 1) std::abort();
  }
  core->TakeOver();
  hello.kind = HelloKind::kClient;
  hello.client = 0;
  const auto joined = core->Join(hello, peer);
  const Counters counters = core->counters();
  return static_cast<int>(counters.requests * 0);
}
