// A client of a server made by hand, for tests of what a real one would never send.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "ps/testing/test_cluster.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/socket.h"
#include "ps/wire/handshake.h"

namespace shoal::ps {

// One end of a connection, by hand.
struct RawEnd {
  UniqueFd fd;
  UniqueFd memory;

  void Send(FrameType type, std::string_view body) const {
    FrameHeader head;
    head.type = type;
    std::string bytes;
    AppendControlFrame(head, body, &bytes);
    ASSERT_EQ(SendSome(fd.get(), bytes.data(), bytes.size()), static_cast<long>(bytes.size()));
  }
  std::string Read(FrameHeader* head) {
    std::string bytes;
    char some[4096];
    for (;;) {
      if (bytes.size() >= sizeof *head) {
        EXPECT_TRUE(ReadHeader({bytes.data(), sizeof *head}, kMaxPayload, head).ok());
        if (bytes.size() >= sizeof *head + head->payload) break;
      }
      const bool more =
          WaitSocket(fd.get(), POLLIN, RealClock::Get()->Now() + std::chrono::seconds(10)).ok();
      const long got = more ? ReceiveWithDescriptor(fd.get(), some, sizeof some, &memory) : 0;
      if (got <= 0) return bytes;
      bytes.append(some, static_cast<size_t>(got));
    }
    return bytes.substr(sizeof *head, head->body);
  }
};

// What a client says by hand: worker 3 of this session.
inline Hello RawHello(uint64_t session) {
  Hello hello;
  hello.client = 3;
  hello.session = session;
  return hello;
}

// A connection over which `hello` was said; the answer is not read yet.
inline RawEnd SayHello(const std::string& address, bool local, const Hello& hello, Nonces* nonces) {
  RawEnd end;
  auto fd = local ? ConnectLocal(address) : ConnectTcp(address, std::chrono::seconds(5));
  EXPECT_TRUE(fd.ok()) << fd.status().ToString();
  end.fd = std::move(fd).value();
  FrameHeader head;
  EXPECT_TRUE(DecodeChallenge(end.Read(&head), &nonces->server).ok());
  nonces->client = NewNonce();
  end.Send(FrameType::kProof, EncodeProof(Cluster::kToken, *nonces, hello));
  return end;
}

// A client that has been welcomed.
inline RawEnd Join(const std::string& address, bool local, uint64_t session) {
  Nonces nonces;
  RawEnd end = SayHello(address, local, RawHello(session), &nonces);
  FrameHeader head;
  end.Read(&head);
  EXPECT_EQ(head.type, FrameType::kWelcome);
  EXPECT_EQ(end.memory.valid(), local);
  return end;
}

// One row of `dim` ones to key 0, as a frame.
inline std::string PushOfOnes(const TableRef& table) {
  FrameHeader head;
  head.type = FrameType::kPush;
  head.table = table.id;
  head.id = 1;
  head.rows = 1;
  head.dim = table.dim;
  head.key_bytes = 4;
  std::string payload(8, '\0');
  for (uint32_t i = 0; i < table.dim; ++i) ByteWriter(&payload).Put(1.0f);
  head.payload = static_cast<uint32_t>(payload.size());
  head.payload_crc = Crc32c(payload.data(), payload.size());
  SealHeader(&head);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + payload;
}

}  // namespace shoal::ps
