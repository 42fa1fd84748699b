// Frames and answers through the streams of a connection's two ends, whichever way the bytes take.
#include "ps/transport/byte_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "ps/transport/frame_reader.h"
#include "ps/transport/request_sender.h"

namespace shoal::ps {
namespace {

// The streams of a connection's client and server.
struct Ends {
  UniqueFd client_fd, server_fd;
  std::unique_ptr<ByteStream> client, server;

  explicit Ends(bool ring) {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    client_fd.Reset(fds[0]);
    server_fd.Reset(fds[1]);
    if (!ring) {
      client = MakeSocketStream(fds[0]);
      server = MakeSocketStream(fds[1]);
      return;
    }
    SharedRings made = SharedRings::Create(kMinRingBytes).value();
    SharedRings opened = SharedRings::Open(UniqueFd(::dup(made.fd()))).value();
    client = MakeRingStream(fds[0], std::move(opened), SharedRings::kToClient);
    server = MakeRingStream(fds[1], std::move(made), SharedRings::kToServer);
  }
};

std::string ControlFrame(uint64_t id, const std::string& body) {
  FrameHeader head;
  head.type = FrameType::kPutBlob;
  head.id = id;
  std::string frame;
  AppendControlFrame(head, body, &frame);
  return frame;
}

// Sends all of `bytes` while `receive` makes room for them.
template <typename Receive>
void SendAll(ByteStream* to, std::string_view bytes, Receive receive) {
  while (!bytes.empty()) {
    const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    size_t taken = 0;
    const Status sent = to->Send({&piece, 1}, &taken);
    ASSERT_TRUE(sent.ok()) << sent.ToString();
    bytes.remove_prefix(taken);
    receive();
  }
}

// Takes the frames that have come; their bodies.
Status TakeFrames(FrameReader* frames, ByteStream* from, std::vector<std::string>* bodies) {
  size_t got = 0;
  TRY(from->Receive(ByteStream::kReceiveBytes, &got));
  for (;;) {
    FrameHeader head;
    bool there = false;
    TRY(FrameReader::Peek(*from, kMaxPayload, &head, &there));
    if (!there) break;
    std::string_view payload;
    TRY(frames->Take(from, head, &payload, &there));
    if (!there) break;
    EXPECT_EQ(head.id, bodies->size());
    bodies->emplace_back(payload.substr(0, head.body));
    if (from->Consume(FrameBytes(head))) from->Release();
  }
  from->Release();
  return Status::Ok();
}

class ByteStreams : public ::testing::TestWithParam<bool> {};

TEST_P(ByteStreams, FramesOfAllSizesComeWholeAndInOrder) {
  Ends ends(GetParam());
  FrameReader frames;
  std::vector<std::string> sent, got;
  const auto receive = [&] { ASSERT_TRUE(TakeFrames(&frames, ends.server.get(), &got).ok()); };
  for (const size_t size : {size_t{0}, size_t{1}, size_t{3000}, kRingFrame - 64, kRingFrame,
                            kMinRingBytes - 1, 3 * kMinRingBytes, size_t{17}}) {
    std::string body(size, '\0');
    for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 31 + sent.size());
    SendAll(ends.client.get(), ControlFrame(sent.size(), body), receive);
    sent.push_back(body);
  }
  for (int i = 0; i < 100 && got.size() < sent.size(); ++i) receive();
  EXPECT_TRUE(got == sent) << got.size() << " frames";
  EXPECT_TRUE(ends.server->view().empty());
  EXPECT_FALSE(ends.server->gathering());
}

TEST_P(ByteStreams, DamagedControlFramesAreNoticed) {
  Ends ends(GetParam());
  std::string frame = ControlFrame(0, "the body");
  frame[sizeof(FrameHeader)] = 'T';
  SendAll(ends.client.get(), frame, [] {});
  FrameReader frames;
  std::vector<std::string> got;
  EXPECT_EQ(TakeFrames(&frames, ends.server.get(), &got).code(), Code::kDataLoss);
}

TEST_P(ByteStreams, AFullOneTakesMoreOnceTheOtherEndHasReceived) {
  Ends ends(GetParam());
  const std::string bytes(64 << 10, 'x');
  const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  size_t taken = bytes.size(), all = 0;
  while (taken == bytes.size()) {
    ASSERT_TRUE(ends.client->Send({&piece, 1}, &taken).ok());
    all += taken;
  }
  EXPECT_FALSE(ends.client->AwaitRoom());
  size_t received = 0;
  for (size_t got = 1; got > 0; received += got) {
    ASSERT_TRUE(ends.server->Receive(ByteStream::kReceiveBytes, &got).ok());
    ends.server->Consume(got);
    ends.server->Release();
  }
  EXPECT_EQ(received, all);
  ASSERT_TRUE(ends.client->Send({&piece, 1}, &taken).ok());
  EXPECT_GT(taken, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, ByteStreams, ::testing::Values(false, true),
                         [](const auto& test) { return test.param ? "Ring" : "Socket"; });

TEST(ByteStream, ASocketTellsOfItsEnd) {
  Ends ends(false);
  ends.client_fd.Reset();
  size_t got = 1;
  ASSERT_TRUE(ends.server->Receive(100, &got).ok());
  EXPECT_EQ(got, 0u);
  EXPECT_TRUE(ends.server->ended());
  const iovec piece{const_cast<char*>("x"), 1};
  EXPECT_EQ(ends.server->Send({&piece, 1}, &got).code(), Code::kUnavailable);
}

TEST(ByteStream, ARingHasPlacesForFramesThatArePublishedTogether) {
  Ends ends(true);
  const std::string frame = ControlFrame(0, "first");
  char* const place = ends.client->Place(frame.size());
  ASSERT_NE(place, nullptr);
  std::memcpy(place, frame.data(), frame.size());
  ends.client->Commit(frame.size());
  size_t got = 1;
  ASSERT_TRUE(ends.server->Receive(0, &got).ok());
  EXPECT_EQ(got, 0u);
  ASSERT_TRUE(ends.client->Publish().ok());
  ASSERT_TRUE(ends.server->Receive(0, &got).ok());
  EXPECT_EQ(got, frame.size());
  EXPECT_EQ(ends.client->Place(kMinRingBytes), nullptr);
  EXPECT_FALSE(ends.client->HasRoom(kMinRingBytes));
}

// The client may change the header between the look at it and the copy of the frame.
TEST(ByteStream, AHeaderThatChangesWhileItsFrameIsGatheredDoesNoHarm) {
  for (const size_t later : {size_t{8}, kRingFrame + 4096, 2 * kMinRingBytes}) {
    SCOPED_TRACE(later);
    Ends ends(true);
    const std::string first = ControlFrame(0, std::string(kRingFrame + 1024, 'a'));
    SendAll(ends.client.get(), first, [] {});
    FrameReader frames;
    size_t got = 0;
    ASSERT_TRUE(ends.server->Receive(0, &got).ok());
    FrameHeader head;
    bool there = false;
    ASSERT_TRUE(FrameReader::Peek(*ends.server, kMaxPayload, &head, &there).ok());
    const std::string changed = ControlFrame(0, std::string(later, 'b'));
    std::memcpy(const_cast<char*>(ends.server->view().data()), changed.data(), sizeof head);
    std::string_view payload;
    Status taken = frames.Take(ends.server.get(), head, &payload, &there);
    std::vector<std::string> bodies;
    for (int i = 0; i < 50 && taken.ok(); ++i) {
      const std::string more(16 << 10, 'c');
      const iovec piece{const_cast<char*>(more.data()), more.size()};
      size_t sent = 0;
      ASSERT_TRUE(ends.client->Send({&piece, 1}, &sent).ok());
      taken = TakeFrames(&frames, ends.server.get(), &bodies);
    }
    EXPECT_FALSE(taken.ok());  // whatever it takes for a frame has a wrong checksum
    EXPECT_TRUE(bodies.empty());
  }
}

Outgoing PushOf(const RowChunk* rows, uint64_t id) {
  Outgoing out;
  out.head.type = FrameType::kPush;
  out.head.id = id;
  out.head.rows = static_cast<uint32_t>(rows->n);
  out.head.dim = rows->dim;
  out.head.key_bytes = 4;
  out.rows = rows;
  return out;
}

TEST(RequestSender, RequestsOverASocketWaitWhileAnAnswerIsOutstanding) {
  Ends ends(false);
  RequestSender sender(ends.client.get());
  const Key key = 1;
  const std::vector<float> row(16, 1.0f);
  RowChunk rows;
  rows.keys = &key;
  rows.n = 1;
  rows.dim = 16;
  rows.deltas = ConstRows(row.data(), 16);
  const auto received = [&] {
    size_t got = 0;
    EXPECT_TRUE(ends.server->Receive(ByteStream::kReceiveBytes, &got).ok());
    return got;
  };
  EXPECT_FALSE(sender.Send(PushOf(&rows, 1)));
  const size_t frame = received();
  EXPECT_EQ(frame, sizeof(FrameHeader) + 8 + 16 * sizeof(float));
  EXPECT_FALSE(sender.Send(PushOf(&rows, 2)));
  EXPECT_FALSE(sender.Send(PushOf(&rows, 3)));
  EXPECT_TRUE(sender.corked());
  EXPECT_EQ(received(), 0u);
  sender.CountAnswer();
  EXPECT_FALSE(sender.Uncork());
  EXPECT_FALSE(sender.corked());
  EXPECT_EQ(received(), 2 * frame);
  sender.Close();
  EXPECT_FALSE(sender.Send(PushOf(&rows, 4)));
  EXPECT_EQ(received(), 0u);
}

TEST(RequestSender, AFrameThatWasRefusedMayBeSentOnceTheRingHasRoom) {
  Ends ends(true);
  RequestSender sender(ends.client.get());
  const Key key = 1;
  const std::vector<float> row(8000, 1.0f);
  RowChunk rows;
  rows.keys = &key;
  rows.n = 1;
  rows.dim = 8000;
  rows.deltas = ConstRows(row.data(), rows.dim);
  uint64_t id = 0;
  while (sender.Takes(32'100)) ASSERT_FALSE(sender.Send(PushOf(&rows, ++id)));
  EXPECT_FALSE(sender.Retry());
  EXPECT_FALSE(sender.blocked());
  EXPECT_TRUE(sender.Send(PushOf(&rows, ++id)));  // a part of it is out
  EXPECT_TRUE(sender.blocked());
  FrameReader frames;
  uint64_t seen = 0;
  bool room = false;
  for (int turn = 0; turn < 50 && (seen < id || !room); ++turn) {
    size_t got = 0;
    ASSERT_TRUE(ends.server->Receive(0, &got).ok());
    FrameHeader head;
    for (bool there = true; there;) {
      std::string_view payload;
      ASSERT_TRUE(FrameReader::Peek(*ends.server, kMaxPayload, &head, &there).ok());
      if (!there) break;
      ASSERT_TRUE(frames.Take(ends.server.get(), head, &payload, &there).ok());
      if (!there) break;
      ASSERT_EQ(head.id, ++seen);
      ends.server->Consume(FrameBytes(head));
    }
    ends.server->Release();
    room = sender.Retry() || room;
  }
  EXPECT_EQ(seen, id);
  EXPECT_TRUE(room);
  EXPECT_TRUE(sender.Takes(32'100));
}

}  // namespace
}  // namespace shoal::ps
