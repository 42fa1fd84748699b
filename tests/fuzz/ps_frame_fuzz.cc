// What comes over a parameter server's connection: raw bytes at first, then, after a right proof of
// the token, frames whose checksums are put right, so that every handler behind them is met. The
// server must answer or close, and go on.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ps/server/tcp_connection.h"
#include "ps/transport/socket.h"
#include "ps/wire/frame.h"
#include "ps/wire/handshake.h"
#include "ps/wire/key_codec.h"
#include "ps/wire/spec_codec.h"

namespace {

using namespace shoal;      // NOLINT: a program of one function
using namespace shoal::ps;  // NOLINT

constexpr size_t kMostBytes = 16 << 10;

ServerCore* TheCore() {
  static const std::shared_ptr<ServerCore> core = [] {
    ServerOptions options;
    options.token = "fuzz";
    options.shared_memory = false;
    options.shards = 4;
    auto functions = std::make_shared<Functions>();
    const auto touch = [](const FunctionBatch& batch) {
      for (size_t i = 0; i < batch.size(); ++i) batch.rows[i][batch.dim - 1] += 1;
      return batch.argument.empty() ? InvalidArgument("empty") : Status::Ok();
    };
    if (!functions->Add("f", touch).ok()) std::abort();
    options.functions = functions;
    options.max_blob_bytes = options.max_blobs_bytes = 1 << 16;
    auto made = ServerCore::Make(options).value();
    TableSpec spec;
    spec.name = "t";
    spec.rows = 100;
    spec.dim = 4;
    TableSpec sparse = spec;
    sparse.name = "s";
    sparse.key_space = KeySpace::kSparse;
    Lane::Guard guard(made->lane(0));
    if (!made->lane(0).CreateTable(spec).ok() || !made->lane(0).CreateTable(sparse).ok()) {
      std::abort();
    }
    return made;
  }();
  return core.get();
}

// The input cut into frames: 64 bytes of header, then what its length says, as far as there is.
std::string RightFrames(std::string_view bytes) {
  std::string out;
  while (bytes.size() >= sizeof(FrameHeader)) {
    FrameHeader head;
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes.remove_prefix(sizeof head);
    const size_t payload = std::min<size_t>(head.payload, bytes.size()) / 8 * 8;
    head.magic = kFrameMagic;
    head.version = kFrameVersion;
    head.payload_crc = Crc32c(bytes.data(), payload);
    SealHeader(&head);
    // Whoever knows the token may fill the memory with tables; that is not looked for here.
    if (head.type != FrameType::kCreateTable) {
      out.append(reinterpret_cast<const char*>(&head), sizeof head);
      out.append(bytes.substr(0, payload));
    }
    bytes.remove_prefix(payload);
  }
  return out;
}

struct FuzzConnection {
  UniqueFd stranger;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  std::shared_ptr<TcpConnection> peer;

  FuzzConnection() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
    stranger.Reset(ends[0]);
    mailbox->wake.Reset(::eventfd(0, EFD_NONBLOCK));
    peer = std::make_shared<TcpConnection>(UniqueFd(ends[1]), TheCore(), mailbox);
    if (peer->Open() != TcpConnection::NextStep::kWait) std::abort();
  }
  ~FuzzConnection() {
    peer->Closed();
    mailbox->flush.clear();
  }
  std::string Challenge() {
    FrameHeader head;
    char bytes[512];
    const long got = ReceiveSome(stranger.get(), bytes, sizeof bytes);
    if (got < 64 || !ReadHeader({bytes, 64}, kMaxPayload, &head).ok()) std::abort();
    std::string nonce;
    if (!DecodeChallenge({bytes + 64, head.body}, &nonce).ok()) std::abort();
    return nonce;
  }
  TcpConnection::NextStep Say(std::string_view bytes) {
    SendSome(stranger.get(), bytes.data(), bytes.size());
    TcpConnection::NextStep next = peer->OnReadable();
    char sink[1 << 16];
    for (int turn = 0; turn < 8 && next == TcpConnection::NextStep::kWait; ++turn) {
      while (ReceiveSome(stranger.get(), sink, sizeof sink) > 0) {
      }
      next = peer->OnWritable();
    }
    return next;
  }
};

void Decoders(std::string_view bytes) {
  std::vector<Key> keys;
  if (DecodeAscending(bytes, bytes.size() / 2, &keys).ok() &&
      !std::is_sorted(keys.begin(), keys.end())) {
    std::abort();
  }
  if (DecodeError(bytes).ok()) std::abort();
  TableSpec spec;
  ByteReader reader(bytes);
  if (DecodeSpec(&reader, &spec).ok() && !Validate(spec).ok()) std::abort();
  Nonces nonces{std::string(64, '0'), {}};
  Hello hello;
  Welcome welcome;
  if (DecodeProof(bytes, "fuzz", &nonces, &hello).ok()) std::abort();
  if (DecodeWelcome(bytes, "fuzz", nonces, &welcome).ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, kMostBytes));
  Decoders(bytes);
  {
    FuzzConnection raw;
    raw.Say(bytes);
  }
  FuzzConnection proven;
  static uint64_t session = 0;
  Hello hello;
  hello.client = static_cast<int32_t>(size % 5) - 1;
  hello.session = ++session;
  const Nonces nonces{proven.Challenge(), std::string(64, '0')};
  FrameHeader head;
  head.type = FrameType::kProof;
  std::string proof;
  AppendControlFrame(head, EncodeProof("fuzz", nonces, hello), &proof);
  if (proven.Say(proof) != TcpConnection::NextStep::kMove) std::abort();
  if (proven.peer->Adopt(proven.mailbox) == TcpConnection::NextStep::kWait)
    proven.Say(RightFrames(bytes));
  return 0;
}
