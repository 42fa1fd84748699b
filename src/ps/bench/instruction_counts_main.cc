// The hot paths of a row operation, run a stated number of times and nothing else, so that
// instructions can be counted: `ps_counts PATH TIMES`, PATH as below.
//
// Run under callgrind by bench/instructions.py (script/bench instructions), which counts what is
// below Measured. One thread, no clock: the count is the same anywhere that has the same
// instruction sets. The paths over a connection make system calls, whose instructions in the kernel
// do not count.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ps/lane/lane.h"
#include "ps/server/server_core.h"
#include "ps/server/tcp_connection.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/socket.h"
#include "ps/wire/row_frame.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr uint32_t kDim = 100;
constexpr size_t kRows = 250;  // a part of 1,000
constexpr uint64_t kTableRows = 20'000;
constexpr uint32_t kSmallDim = 1024;

template <typename T>
T Value(Result<T> result) {
  if (!result.ok()) std::exit(1);
  return std::move(result).value();
}

// A client's half of a frame, a ring, and a server's half.
class Path {
 public:
  Path(KeySpace space, uint32_t dim, size_t rows) : dim_(dim), keys_(rows) {
    spec_.name = "t";
    spec_.key_space = space;
    spec_.rows = kTableRows;
    spec_.dim = dim;
    Lane::Guard guard(lane_);
    if (!lane_.CreateTable(spec_).ok()) std::exit(1);
    Hello hello;
    hello.session = 1;
    session_ = Value(lane_.Join(hello, nullptr));
    std::mt19937_64 random(3);
    for (Key& key : keys_) key = random() % kTableRows;
    deltas_.assign(rows * dim, 1e-3f);
    answer_.resize(rows * dim * sizeof(float));
  }

  void Once(FrameType type) {
    RowChunk part;
    part.keys = keys_.data();
    part.n = keys_.size();
    part.dim = dim_;
    part.deltas = ConstRows(deltas_.data(), dim_);
    FrameHeader head;
    head.type = type;
    head.table = TableIdOf(spec_.name);
    head.id = ++seq_;
    head.rows = static_cast<uint32_t>(keys_.size());
    head.dim = dim_;
    head.key_bytes = spec_.key_space == KeySpace::kDense ? 4 : 8;
    const size_t whole = SizeRowFrame(part, &head);
    if (writer_.Room(whole) < whole) std::exit(1);
    WriteRowFrame(head, part, false, writer_.At());
    writer_.Advance(whole);
    writer_.Publish();
    Serve();
  }

 private:
  void Serve() {
    reader_.CheckForData();
    FrameHeader head;
    const std::string_view have = reader_.view();
    if (!ReadHeader(have.substr(0, sizeof head), kMaxPayload, &head).ok()) std::exit(1);
    const std::string_view payload = have.substr(sizeof head, head.payload);
    front_.assign(payload.substr(0, KeyAreaOf(head)));
    RowSource source;
    source.front = front_;
    source.values = payload.data() + front_.size();
    source.out = answer_.data();
    bool order = false;
    Lane::Guard guard(lane_);
    if (!lane_.RowOperation(session_, head, source, &order).ok()) std::exit(1);
    reader_.Consume(sizeof head + head.payload);
    reader_.Release();
  }

  const uint32_t dim_;
  TableSpec spec_;
  const Partition partition_{64, {1}};
  Lane lane_{&partition_, Owner{0, 0}, nullptr};
  const SharedRings rings_ = Value(SharedRings::Create());
  RingWriter writer_{rings_, SharedRings::kToServer};
  RingReader reader_{rings_, SharedRings::kToServer};
  Session* session_ = nullptr;
  uint64_t seq_ = 0;
  std::vector<Key> keys_;
  std::vector<float> deltas_;
  std::string front_, answer_;
};

// Whole requests: a client's connection, and its server's connection that a lane's thread would
// poll.
class ConnectionPath final : private ConnectionHandler {
 public:
  // Over shared memory, or over TCP.
  ConnectionPath(bool ring, uint32_t dim) : dim_(dim), delta_(dim, 1e-3f) {
    spec_.name = "t";
    spec_.rows = kTableRows;
    spec_.dim = dim;
    {
      Lane::Guard guard(core_->lane(0));
      if (!core_->lane(0).CreateTable(spec_).ok()) std::exit(1);
    }
    mailbox_->wake.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    uint16_t port = 0;
    const UniqueFd tcp = Value(ListenTcp("127.0.0.1", 0, &port));
    const UniqueFd local = Value(ListenLocal(tcp.get()));
    const std::unique_ptr<Transport> transport = MakeTcpTransport(kToken, ring);
    std::thread dialing([&] {
      Hello hello;
      hello.client = 0;
      hello.session = 1;
      dialled_ = Value(
          transport->Dial("127.0.0.1:" + std::to_string(port), hello, std::chrono::seconds(60)));
    });
    Welcome(ring ? local.get() : tcp.get());
    dialing.join();
    dialled_.connection->Start(this);
  }
  ~ConnectionPath() override { dialled_.connection->Close(); }

  void Once(FrameType type) {
    const Key key = seq_ * 7919 % kTableRows;
    RowChunk part;
    part.keys = &key;
    part.n = 1;
    part.dim = dim_;
    part.deltas = ConstRows(delta_.data(), dim_);
    Outgoing out;
    out.head.type = type;
    out.head.table = TableIdOf(spec_.name);
    out.head.id = ++seq_;
    out.head.rows = 1;
    out.head.dim = dim_;
    out.head.key_bytes = 4;
    out.rows = &part;
    dialled_.connection->Send(out);
    while (answers_ < seq_) {
      bool some = false;
      if (server_->Poll(&some) != TcpConnection::NextStep::kWait) std::exit(1);
      dialled_.connection->Poll();
    }
  }

 private:
  static constexpr const char* kToken = "counted";

  void OnFrame(const FrameHeader& head, std::string_view /*body*/) override {
    if (head.type == FrameType::kRefused) std::exit(1);
    ++answers_;
  }
  void OnClosed(const Status& /*why*/) override {}

  // Accepts the connection that is being dialled, and takes it through the handshake.
  void Welcome(int listener) {
    UniqueFd fd;
    while (!fd.valid()) {
      pollfd wait{listener, POLLIN, 0};
      ::poll(&wait, 1, -1);
      fd.Reset(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    }
    server_ = std::make_shared<TcpConnection>(std::move(fd), core_.get(), mailbox_);
    TcpConnection::NextStep next = server_->Open();
    while (next == TcpConnection::NextStep::kWait && !server_->joined()) {
      pollfd wait{server_->fd(), POLLIN, 0};
      ::poll(&wait, 1, -1);
      next = server_->OnReadable();
      if (next == TcpConnection::NextStep::kMove) next = server_->Adopt(mailbox_);
    }
    if (next != TcpConnection::NextStep::kWait) std::exit(1);
  }

  static ServerOptions Options() {
    ServerOptions options;
    options.token = kToken;
    return options;
  }

  const uint32_t dim_;
  TableSpec spec_;
  const std::vector<float> delta_;
  const std::shared_ptr<ServerCore> core_ = Value(ServerCore::Make(Options()));
  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::shared_ptr<TcpConnection> server_;
  OpenedConnection dialled_;
  uint64_t seq_ = 0;
  uint64_t answers_ = 0;
};

// By its name callgrind knows when to count: libraries that calibrate clocks when they are loaded
// or first used take another number of instructions every time.
template <typename AnyPath>
__attribute__((noinline)) void Measured(AnyPath* path, FrameType type, long times) {
  for (long i = 0; i < times; ++i) path->Once(type);
}

template <typename AnyPath>
int Run(AnyPath* path, FrameType type, long times) {
  path->Once(FrameType::kPush);  // the rows are there
  path->Once(FrameType::kPull);
  Measured(path, type, times);
  return 0;
}

int Main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  const long times = argc == 3 ? std::atol(argv[2]) : 0;
  const FrameType type = what.starts_with("push") ? FrameType::kPush : FrameType::kPull;
  const std::string over = what.substr(std::min(what.size(), what.find('-') + 1));
  const bool known = what.starts_with("push-") || what.starts_with("pull-");
  if (times >= 1 && known && (over == "ring" || over == "socket")) {
    ConnectionPath path(over == "ring", kSmallDim);
    return Run(&path, type, times);
  }
  if (times < 1 || !known || (over != "4kb" && over != "dense" && over != "sparse")) {
    std::fputs("usage: ps_counts {push,pull}-{4kb,dense,sparse,ring,socket} TIMES\n", stderr);
    return 2;
  }
  const bool small = over == "4kb";
  Path path(over == "sparse" ? KeySpace::kSparse : KeySpace::kDense, small ? kSmallDim : kDim,
            small ? 1 : kRows);
  return Run(&path, type, times);
}

}  // namespace
}  // namespace shoal::ps

int main(int argc, char** argv) { return shoal::ps::Main(argc, argv); }
