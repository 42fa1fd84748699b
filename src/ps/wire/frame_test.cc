// Frames, specs and errors: round trips, and bytes from strangers.
#include "ps/wire/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/bytes.h"
#include "ps/wire/handshake.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

FrameHeader PushHead(uint32_t rows, uint32_t dim) {
  FrameHeader head;
  head.type = FrameType::kPush;
  head.id = 7;
  head.rows = rows;
  head.dim = dim;
  head.key_bytes = 8;
  head.payload = static_cast<uint32_t>(KeyArea(rows, 8) + PaddedTo8(size_t{rows} * dim * 4));
  return head;
}

Status Read(FrameHeader head, uint32_t bound = kMaxPayload) {
  SealHeader(&head);
  FrameHeader back;
  return ReadHeader({reinterpret_cast<const char*>(&head), sizeof head}, bound, &back);
}

RC_GTEST_PROP(Frame, ControlFramesComeBack, (const std::string& body, uint64_t id)) {
  FrameHeader head;
  head.type = FrameType::kBarrier;
  head.id = id;
  std::string bytes;
  AppendControlFrame(head, body, &bytes);
  RC_ASSERT(bytes.size() % 8 == 0);
  FrameHeader back;
  const std::string_view all = bytes;
  RC_ASSERT(ReadHeader(all.substr(0, 64), kMaxPayload, &back).ok());
  RC_ASSERT(CheckPayload(back, all.substr(64)).ok());
  RC_ASSERT(back.id == id);
  RC_ASSERT(all.substr(64, back.body) == body);
}

RC_GTEST_PROP(Frame, AnyFlippedBitIsNoticed, (const std::string& body)) {
  FrameHeader head;
  head.type = FrameType::kPutBlob;
  std::string bytes;
  AppendControlFrame(head, body, &bytes);
  const auto at = *rc::gen::inRange<size_t>(0, bytes.size() * 8);
  bytes[at / 8] = static_cast<char>(bytes[at / 8] ^ (1 << (at % 8)));
  FrameHeader back;
  const std::string_view all = bytes;
  const bool ok = ReadHeader(all.substr(0, 64), kMaxPayload, &back).ok() &&
                  CheckPayload(back, all.substr(64)).ok();
  RC_ASSERT(!ok);
}

TEST(Frame, LengthsMustAgree) {
  EXPECT_TRUE(Read(PushHead(10, 100)).ok());
  EXPECT_TRUE(Read(PushHead(1, 1)).ok());
  auto head = PushHead(10, 100);
  head.payload += 8;
  EXPECT_FALSE(Read(head).ok());
  head = PushHead(10, 100);
  head.rows = 11;
  EXPECT_FALSE(Read(head).ok());
  head = PushHead(10, 100);
  head.key_bytes = 2;
  EXPECT_FALSE(Read(head).ok());
  EXPECT_FALSE(Read(PushHead(0, 100)).ok());
  head = PushHead(10, 100);
  head.version = 2;
  EXPECT_EQ(Read(head).code(), Code::kFailedPrecondition);
  head = PushHead(10, 100);
  head.magic = 1;
  EXPECT_FALSE(Read(head).ok());
  head = PushHead(10, 100);
  head.reserved = 1;
  EXPECT_FALSE(Read(head).ok());
  EXPECT_EQ(Read(PushHead(100, 100), 4096).code(), Code::kResourceExhausted);
}

TEST(Frame, APullMayNotAskForMoreThanAFrame) {
  FrameHeader head;
  head.type = FrameType::kPull;
  head.key_bytes = 4;
  head.dim = kMaxDim;
  head.rows = 16;
  head.payload = 64;
  EXPECT_TRUE(Read(head).ok());
  head.rows = 32;
  head.payload = 128;
  EXPECT_FALSE(Read(head).ok());
}

TEST(Frame, KnownTypes) {
  int known = 0;
  for (int type = 0; type < 256; ++type) known += IsKnown(static_cast<FrameType>(type));
  EXPECT_EQ(known, 3 + 9 + 17 + 8 + 3);
  EXPECT_TRUE(IsSequenced(FrameType::kMarker));
  EXPECT_TRUE(IsSequenced(FrameType::kSettled));
  EXPECT_FALSE(IsSequenced(FrameType::kCreateTable));
}

// docs/formats/ps-wire.md.
TEST(Frame, TheExampleOfTheDocsIsRight) {
  FrameHeader head = PushHead(1, 2);
  head.id = 5;
  head.table = TableIdOf("t");
  head.key_bytes = 4;
  std::string payload(8, '\0');
  payload[0] = 3;
  const float values[] = {1.0f, -0.5f};
  payload.append(reinterpret_cast<const char*>(values), sizeof values);
  head.payload_crc = Crc32c(payload.data(), payload.size());
  SealHeader(&head);
  EXPECT_EQ(head.table, 0xe47f9043u);
  EXPECT_EQ(head.payload_crc, 0x581dd273u);
  EXPECT_EQ(head.header_crc, 0x9f02c8cfu);
  EXPECT_TRUE(Read(head).ok());
}

RC_GTEST_PROP(Frame, ErrorsComeBackAndAreNeverOk, (const std::string& message)) {
  const Status back = DecodeError(EncodeError(NotFound(message.substr(0, 4096))));
  RC_ASSERT(back.code() == Code::kNotFound);
  RC_ASSERT(back.message() == message.substr(0, 4096));
  RC_ASSERT(!DecodeError(message).ok());
}

TEST(SpecCodec, RoundTripAndBounds) {
  TableSpec spec;
  spec.name = "embedding";
  spec.rows = 10;
  spec.dim = 100;
  spec.optimizer = {OptimizerKind::kAdagrad, 0.1f, 1e-8f};
  spec.initializer = {InitializerKind::kUniform, -0.5f, 0.5f, 9};
  std::string bytes;
  EncodeSpec(spec, &bytes);
  TableSpec back;
  ByteReader reader(bytes);
  ASSERT_TRUE(DecodeSpec(&reader, &back).ok());
  EXPECT_EQ(back, spec);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader shorter(std::string_view(bytes).substr(0, size));
    EXPECT_FALSE(DecodeSpec(&shorter, &back).ok());
  }
  spec.initializer.lo = 1;
  EXPECT_FALSE(Validate(spec).ok());
  spec.initializer.lo = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(Validate(spec).ok());
}

TEST(SpecCodec, EveryOptimizerComesBackAndBadNumbersAreRefused) {
  TableSpec spec;
  spec.name = "t";
  spec.rows = 1;
  spec.dim = 2;
  for (uint8_t kind = 0; kind < kOptimizerKinds; ++kind) {
    spec.optimizer = {};
    auto& o = spec.optimizer;
    o.kind = static_cast<OptimizerKind>(kind);
    o.lr = 0.25f;
    o.eps = 0.5f;
    if (o.kind == OptimizerKind::kMomentum) o.momentum = 0.125f;
    if (o.kind == OptimizerKind::kAdam) o.beta1 = 0.5f, o.beta2 = 0.75f;
    if (o.kind == OptimizerKind::kFunction)
      o.function = "f", o.argument = "a", o.state_planes = 2, o.lr = 0.1f;
    if (o.kind == OptimizerKind::kFtrl) o.beta = 2, o.l1 = 3, o.l2 = 4;
    std::string bytes;
    EncodeSpec(spec, &bytes);
    TableSpec back;
    ByteReader reader(bytes);
    ASSERT_TRUE(DecodeSpec(&reader, &back).ok());
    EXPECT_EQ(back, spec);
    EXPECT_EQ(reader.remaining(), 0u);
    for (size_t size = 0; size < bytes.size(); ++size) {
      ByteReader shorter(std::string_view(bytes).substr(0, size));
      EXPECT_FALSE(DecodeSpec(&shorter, &back).ok());
    }
  }
  const auto refused = [&](OptimizerKind kind, float OptimizerSpec::*field, float value) {
    spec.optimizer = {};
    spec.optimizer.kind = kind;
    spec.optimizer.*field = value;
    return Validate(spec).message();
  };
  using O = OptimizerSpec;
  using K = OptimizerKind;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refused(K::kAdam, &O::beta1, 1),
            "table 't': optimizer: beta1: got 1, expected at least 0 and less than 1");
  EXPECT_NE(refused(K::kAdam, &O::beta2, -0.1f), "");
  EXPECT_NE(refused(K::kAdam, &O::eps, 0), "");
  EXPECT_NE(refused(K::kAdagrad, &O::eps, 0), "");
  EXPECT_NE(refused(K::kMomentum, &O::momentum, nan), "");
  EXPECT_NE(refused(K::kFtrl, &O::lr, 0), "");
  EXPECT_NE(refused(K::kFtrl, &O::l1, -1), "");
  EXPECT_NE(refused(K::kFtrl, &O::l2, nan), "");
  EXPECT_NE(refused(K::kFtrl, &O::beta, 0), "");
  EXPECT_NE(refused(K::kSgd, &O::lr, nan), "");
  EXPECT_EQ(refused(K::kAdd, &O::lr, nan), "");
}

TEST(Handshake, ProvesTheTokenBothWays) {
  Nonces nonces{NewNonce(), NewNonce()};
  Hello hello;
  hello.client = 3;
  hello.session = 99;
  const std::string proof = EncodeProof("token", nonces, hello);
  Nonces at_server{nonces.server, ""};
  Hello heard;
  ASSERT_TRUE(DecodeProof(proof, "token", &at_server, &heard).ok());
  EXPECT_EQ(heard.session, 99u);
  EXPECT_EQ(DecodeProof(proof, "other", &at_server, &heard).code(), Code::kUnauthenticated);
  Nonces replayed{NewNonce(), ""};
  EXPECT_EQ(DecodeProof(proof, "token", &replayed, &heard).code(), Code::kUnauthenticated);
  Welcome welcome, back;
  welcome.lanes = 4;
  const std::string answer = EncodeWelcome("token", nonces, welcome);
  ASSERT_TRUE(DecodeWelcome(answer, "token", nonces, &back).ok());
  EXPECT_EQ(back.lanes, 4u);
  EXPECT_FALSE(DecodeWelcome(answer, "other", nonces, &back).ok());
  // The client's own proof, sent back to it, proves nothing.
  EXPECT_FALSE(DecodeWelcome(proof, "token", nonces, &back).ok());
}

}  // namespace
}  // namespace shoal::ps
