// The first three frames of a TCP connection: both sides prove that they know the job's token
// without sending it (docs/formats/ps-wire.md).
//
//   server → client  kChallenge  server nonce
//   client → server  kProof      client nonce, HMAC(token, "client" ‖ nonces ‖ hello), hello
//   server → client  kWelcome    HMAC(token, "server" ‖ nonces ‖ welcome), welcome; or kError
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "ps/transport/transport.h"

namespace shoal::ps {

// Of Hello::ucx and Welcome::ucx.
inline constexpr size_t kMaxUcxAddress = 2048;

std::string NewNonce();

std::string EncodeChallenge(std::string_view server_nonce);
Status DecodeChallenge(std::string_view body, std::string* server_nonce);

struct Nonces {
  std::string server;
  std::string client;
};

std::string EncodeProof(std::string_view token, const Nonces& nonces, const Hello& hello);
// Sets nonces->client. Unauthenticated if the proof is wrong.
Status DecodeProof(std::string_view body, std::string_view token, Nonces* nonces, Hello* hello);

std::string EncodeWelcome(std::string_view token, const Nonces& nonces, const Welcome& welcome);
Status DecodeWelcome(std::string_view body, std::string_view token, const Nonces& nonces,
                     Welcome* welcome);

}  // namespace shoal::ps
