#include "ps/wire/handshake.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/id.h"

namespace shoal::ps {
namespace {

constexpr size_t kNonceBytes = 64;  // hex digits
constexpr size_t kMacBytes = 64;
// Of a hello and a welcome.
constexpr size_t kMaxHelloBytes = 256 + kMaxUcxAddress;

std::string Mac(std::string_view token, std::string_view who, const Nonces& nonces,
                std::string_view what) {
  return HmacSha256Hex(token, fmt::format("shoal-ps {} {} {} ", who, nonces.server, nonces.client) +
                                  std::string(what));
}

void EncodeHello(const Hello& hello, std::string* out) {
  ByteWriter writer(out);
  writer.Put(hello.client);
  writer.Put(hello.session);
  writer.Put(hello.lane);
  writer.Put(hello.first_seq);
  writer.Put(hello.clock);
  writer.Put(hello.kind);
  writer.Put(hello.server);
  writer.Put(hello.from);
  writer.Put(hello.incarnation);
  writer.Put(hello.epoch);
  writer.PutString(hello.ucx);
}

Status ReadString(ByteReader* reader, size_t limit, std::string* text) {
  std::string_view bytes;
  TRY(reader->GetString(&bytes, limit));
  *text = bytes;
  return Status::Ok();
}

Status DecodeHello(std::string_view bytes, Hello* hello) {
  ByteReader reader(bytes);
  TRY(reader.Get(&hello->client));
  TRY(reader.Get(&hello->session));
  TRY(reader.Get(&hello->lane));
  TRY(reader.Get(&hello->first_seq));
  TRY(reader.Get(&hello->clock));
  uint8_t kind = 0;
  TRY(reader.Get(&kind));
  if (kind > static_cast<uint8_t>(HelloKind::kMove))
    return InvalidArgument("a hello of unknown kind");
  hello->kind = static_cast<HelloKind>(kind);
  TRY(reader.Get(&hello->server));
  TRY(reader.Get(&hello->from));
  TRY(reader.Get(&hello->incarnation));
  TRY(reader.Get(&hello->epoch));
  return ReadString(&reader, kMaxUcxAddress, &hello->ucx);
}

Status ReadNonce(ByteReader* reader, std::string* nonce) {
  TRY(ReadString(reader, kNonceBytes, nonce));
  if (nonce->size() != kNonceBytes) return InvalidArgument("a nonce has 64 hex digits");
  return Status::Ok();
}

}  // namespace

std::string NewNonce() { return RandomHex(kNonceBytes / 2); }

std::string EncodeChallenge(std::string_view server_nonce) {
  std::string body;
  ByteWriter(&body).PutString(server_nonce);
  return body;
}

Status DecodeChallenge(std::string_view body, std::string* server_nonce) {
  ByteReader reader(body);
  return ReadNonce(&reader, server_nonce);
}

std::string EncodeProof(std::string_view token, const Nonces& nonces, const Hello& hello) {
  std::string said;
  EncodeHello(hello, &said);
  std::string body;
  ByteWriter writer(&body);
  writer.PutString(nonces.client);
  writer.PutString(Mac(token, "client", nonces, said));
  writer.PutString(said);
  return body;
}

Status DecodeProof(std::string_view body, std::string_view token, Nonces* nonces, Hello* hello) {
  ByteReader reader(body);
  std::string_view mac, said;
  TRY(ReadNonce(&reader, &nonces->client));
  TRY(reader.GetString(&mac, kMacBytes));
  TRY(reader.GetString(&said, kMaxHelloBytes));
  if (!EqualInConstantTime(mac, Mac(token, "client", *nonces, said))) {
    return Unauthenticated("wrong token");
  }
  return DecodeHello(said, hello);
}

std::string EncodeWelcome(std::string_view token, const Nonces& nonces, const Welcome& welcome) {
  std::string said;
  ByteWriter inner(&said);
  inner.Put(welcome.instance);
  inner.Put(welcome.server);
  inner.Put(welcome.servers);
  inner.Put(welcome.lanes);
  inner.Put(welcome.shards);
  inner.Put(welcome.ownership);
  inner.Put(welcome.restored_checkpoint);
  inner.Put(welcome.last_seq);
  inner.PutString(welcome.ucx);
  inner.Put(static_cast<uint8_t>(welcome.lost_rows));
  std::string body;
  ByteWriter writer(&body);
  writer.PutString(Mac(token, "server", nonces, said));
  writer.PutString(said);
  return body;
}

Status DecodeWelcome(std::string_view body, std::string_view token, const Nonces& nonces,
                     Welcome* welcome) {
  ByteReader reader(body);
  std::string_view mac, said;
  TRY(reader.GetString(&mac, kMacBytes));
  TRY(reader.GetString(&said, kMaxHelloBytes));
  if (!EqualInConstantTime(mac, Mac(token, "server", nonces, said))) {
    return Unauthenticated("the server does not know the job's token");
  }
  ByteReader inner(said);
  TRY(inner.Get(&welcome->instance));
  TRY(inner.Get(&welcome->server));
  TRY(inner.Get(&welcome->servers));
  TRY(inner.Get(&welcome->lanes));
  TRY(inner.Get(&welcome->shards));
  TRY(inner.Get(&welcome->ownership));
  TRY(inner.Get(&welcome->restored_checkpoint));
  TRY(inner.Get(&welcome->last_seq));
  TRY(ReadString(&inner, kMaxUcxAddress, &welcome->ucx));
  uint8_t lost_rows = 0;
  TRY(inner.Get(&lost_rows));
  welcome->lost_rows = lost_rows != 0;
  return Status::Ok();
}

}  // namespace shoal::ps
