// What a hostile other side does to the memory that two processes share: indices that make no
// sense, frames that change while they are read, knocks and flags at any time; to a server's
// connection and to a client's. Each must go on or end the connection.
//
// The input is a list of steps: a byte says what, the next ones with what.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "ps/server/tcp_connection.h"
#include "ps/transport/client_connection.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/socket.h"
#include "ps/wire/frame.h"
#include "ps/wire/handshake.h"

namespace {

using namespace shoal;      // NOLINT: a program of one function
using namespace shoal::ps;  // NOLINT

constexpr size_t kMostBytes = 8 << 10;

ServerCore* TheCore() {
  static const std::shared_ptr<ServerCore> core = [] {
    ServerOptions options;
    options.token = "fuzz";
    options.ring_bytes = kMinRingBytes;
    options.shards = 4;
    options.max_blob_bytes = options.max_blobs_bytes = 1 << 16;
    auto made = ServerCore::Make(options).value();
    TableSpec spec;
    spec.name = "t";
    spec.rows = 100;
    spec.dim = 4;
    Lane::Guard guard(made->lane(0));
    if (!made->lane(0).CreateTable(spec).ok()) std::abort();
    return made;
  }();
  return core.get();
}

std::pair<UniqueFd, UniqueFd> SocketPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The side that is tested.
class Victim {
 public:
  virtual ~Victim() = default;
  virtual SharedRings Take() = 0;
  // False: it has ended the connection.
  virtual bool Turn() = 0;
};

class ServersPeer final : public Victim {
 public:
  ServersPeer() {
    auto [near, far] = SocketPair();
    stranger_ = std::move(near);
    mailbox_->wake.Reset(::eventfd(0, EFD_NONBLOCK));
    peer_ = std::make_shared<TcpConnection>(std::move(far), TheCore(), mailbox_);
    if (peer_->Open() != TcpConnection::NextStep::kWait) std::abort();
    Prove();
  }
  ~ServersPeer() override {
    peer_->Closed();
    mailbox_->flush.clear();
  }
  SharedRings Take() override { return SharedRings::Open(std::move(memory_)).value(); }
  bool Turn() override {
    bool some = false;
    if (peer_->Poll(&some) != TcpConnection::NextStep::kWait) return false;
    if (peer_->Sleep() == TcpConnection::SleepResult::kNo) return true;
    peer_->Awake();
    return peer_->OnReadable() == TcpConnection::NextStep::kWait;
  }

 private:
  void Prove() {
    FrameHeader head;
    char bytes[4096];
    const long got = ReceiveSome(stranger_.get(), bytes, sizeof bytes);
    Nonces nonces;
    nonces.client = std::string(64, '0');
    if (got < 64 || !ReadHeader({bytes, 64}, kMaxPayload, &head).ok() ||
        !DecodeChallenge({bytes + 64, head.body}, &nonces.server).ok()) {
      std::abort();
    }
    static uint64_t session = 0;
    Hello hello;
    hello.session = ++session;
    FrameHeader proof;
    proof.type = FrameType::kProof;
    std::string frame;
    AppendControlFrame(proof, EncodeProof("fuzz", nonces, hello), &frame);
    SendSome(stranger_.get(), frame.data(), frame.size());
    if (peer_->OnReadable() != TcpConnection::NextStep::kMove ||
        peer_->Adopt(mailbox_) != TcpConnection::NextStep::kWait || !peer_->uses_ring()) {
      std::abort();
    }
    ReceiveWithDescriptor(stranger_.get(), bytes, sizeof bytes, &memory_);
  }

  UniqueFd stranger_, memory_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::shared_ptr<TcpConnection> peer_;
};

class ClientsStream final : public Victim, public ConnectionHandler {
 public:
  ClientsStream() {
    static const std::shared_ptr<ClientLoop> loop = ClientLoop::Start().value();
    auto [near, far] = SocketPair();
    stranger_ = std::move(near);
    auto rings = SharedRings::Create(kMinRingBytes).value();
    memory_.Reset(::dup(rings.fd()));
    stream_ = std::make_shared<ClientConnection>(std::move(far), ByteBuffer(), std::move(rings),
                                                 nullptr, loop);
    stream_->Start(this);
  }
  ~ClientsStream() override { stream_->Close(); }
  SharedRings Take() override { return SharedRings::Open(std::move(memory_)).value(); }
  bool Turn() override {
    if (stream_->Poll() == PollResult::kNever) return false;
    FrameHeader head;
    head.type = FrameType::kGetProgress;
    stream_->Takes(1000);
    stream_->Send({head, std::string(turns_++ % 900, 'x'), nullptr});
    return true;
  }
  void OnFrame(const FrameHeader& head, std::string_view body) override {
    // All of it can be read.
    sum_ += Crc32c(body.data(), body.size()) + head.rows;
  }
  void OnClosed(const Status& why) override {
    if (why.ok()) std::abort();
  }

 private:
  UniqueFd stranger_, memory_;
  std::shared_ptr<ClientConnection> stream_;
  size_t turns_ = 0;
  uint32_t sum_ = 0;
};

// Both rings as the stranger sees them.
class Stranger {
 public:
  Stranger(SharedRings rings, bool to_server)
      : rings_(std::move(rings)),
        out_(to_server ? SharedRings::kToServer : SharedRings::kToClient),
        in_(to_server ? SharedRings::kToClient : SharedRings::kToServer) {}

  // One step; `arg` are its bytes.
  void Do(uint8_t what, std::string_view arg) {
    uint64_t number = 0;
    std::memcpy(&number, arg.data(), std::min(arg.size(), sizeof number));
    RingControl* const out = rings_.control(out_);
    RingControl* const in = rings_.control(in_);
    switch (what % 8) {
      case 0:
      case 1:
        return Write(arg, what % 2 == 0);
      case 2:
        out->head.store(what < 128 ? out->head + number % 4096 : number);
        return;
      case 3:
        in->tail.store(what < 128 ? in->head.load() : number);
        return;
      case 4:
        out->writer_waits = static_cast<uint32_t>(number);
        in->reader_sleeps = static_cast<uint32_t>(number >> 8);
        return;
      case 5:  // what is being read, or was written, changes
        rings_.bytes(what < 128 ? out_ : in_)[number % rings_.ring_bytes()] ^=
            static_cast<char>(number >> 32 | 1);
        return;
      case 6:
        out->tail = number;
        in->head = number;
        return;
      default:
        return;
    }
  }

 private:
  // A frame, with its checksums put right; or the bytes as they are.
  void Write(std::string_view bytes, bool right) {
    std::string frame(bytes);
    if (right && frame.size() >= sizeof(FrameHeader)) {
      FrameHeader head;
      std::memcpy(&head, frame.data(), sizeof head);
      head.magic = kFrameMagic;
      head.version = kFrameVersion;
      if (head.type == FrameType::kCreateTable) head.type = FrameType::kPush;
      frame.resize(sizeof head + (frame.size() - sizeof head) / 8 * 8);
      head.payload_crc = Crc32c(frame.data() + sizeof head, frame.size() - sizeof head);
      SealHeader(&head);
      std::memcpy(frame.data(), &head, sizeof head);
    }
    RingControl* const out = rings_.control(out_);
    const uint64_t head = out->head;
    const size_t at = head % rings_.ring_bytes();
    std::memcpy(rings_.bytes(out_) + at, frame.data(), frame.size());
    out->head.store(head + frame.size());
  }

  const SharedRings rings_;
  const SharedRings::Direction out_, in_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), std::min(size, kMostBytes));
  if (bytes.empty()) return 0;
  const bool server = bytes[0] % 2 == 0;
  bytes.remove_prefix(1);
  std::unique_ptr<Victim> victim;
  if (server) {
    victim = std::make_unique<ServersPeer>();
  } else {
    victim = std::make_unique<ClientsStream>();
  }
  Stranger stranger(victim->Take(), server);
  while (bytes.size() >= 3) {
    const auto what = static_cast<uint8_t>(bytes[0]);
    uint16_t length = 0;
    std::memcpy(&length, bytes.data() + 1, sizeof length);
    bytes.remove_prefix(3);
    const std::string_view arg = bytes.substr(0, length % 2048);
    bytes.remove_prefix(arg.size());
    stranger.Do(what, arg);
    if (what % 8 != 5 && !victim->Turn()) break;
  }
  return 0;
}
