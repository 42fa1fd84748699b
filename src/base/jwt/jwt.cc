#include "base/jwt/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <utility>

#include "base/base64.h"

namespace shoal {
namespace {

constexpr size_t kMostKeys = 100;
constexpr int kLeastRsaBits = 2048;
constexpr int kMostRsaBits = 8192;
constexpr size_t kP256Bytes = 32;

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using PublicKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;

Status Refused(std::string_view why) { return Unauthenticated("the token " + std::string(why)); }

// The alphabet of URLs without padding or blanks (RFC 7515, section 2).
Result<std::string> DecodePart(std::string_view text) {
  std::string standard(text);
  for (char& c : standard) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) continue;
    if (c != '-' && c != '_') return InvalidArgument("has a part that is not base64url");
    c = c == '-' ? '+' : '/';
  }
  if (standard.size() % 4 == 1) return InvalidArgument("has a part that is not base64url");
  return DecodeBase64(standard);
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Number NumberOf(std::string_view bytes) {
  return Number(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

// A key of the parameters that `push` adds; null if OpenSSL refuses them.
template <typename Push>
PublicKey MakeKey(const char* type, Push push) {
  const std::unique_ptr<OSSL_PARAM_BLD, Free<OSSL_PARAM_BLD_free>> build(OSSL_PARAM_BLD_new());
  const std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>> context(
      EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  if (!build || !context || !push(build.get())) return nullptr;
  const std::unique_ptr<OSSL_PARAM, Free<OSSL_PARAM_free>> parameters(
      OSSL_PARAM_BLD_to_param(build.get()));
  EVP_PKEY* made = nullptr;
  if (!parameters || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1)
    return nullptr;
  return PublicKey(made);
}

PublicKey RsaKey(const json::object& jwk) {
  const auto modulus = DecodePart(GetStringOr(jwk, "n", ""));
  const auto exponent = DecodePart(GetStringOr(jwk, "e", ""));
  if (!modulus.ok() || !exponent.ok() || modulus->size() > kMostRsaBits / 8) return nullptr;
  const Number n = NumberOf(*modulus);
  const Number e = NumberOf(*exponent);
  if (!n || !e || BN_num_bits(n.get()) < kLeastRsaBits || BN_is_one(e.get()) || !BN_is_odd(e.get()))
    return nullptr;
  return MakeKey("RSA", [&](OSSL_PARAM_BLD* build) {
    return OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n.get()) == 1 &&
           OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e.get()) == 1;
  });
}

PublicKey EcKey(const json::object& jwk) {
  const auto x = DecodePart(GetStringOr(jwk, "x", ""));
  const auto y = DecodePart(GetStringOr(jwk, "y", ""));
  if (GetStringOr(jwk, "crv", "") != "P-256" || !x.ok() || !y.ok() || x->size() != kP256Bytes ||
      y->size() != kP256Bytes)
    return nullptr;
  const std::string point = "\x04" + *x + *y;  // uncompressed (SEC 1, section 2.3.3)
  return MakeKey("EC", [&](OSSL_PARAM_BLD* build) {
    return OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) ==
               1 &&
           OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                            point.size()) == 1;
  });
}

// An ES256 signature is two numbers of 32 bytes; OpenSSL wants them in DER.
Result<std::string> DerOf(const std::string& raw) {
  if (raw.size() != 2 * kP256Bytes) return Refused("has a signature of the wrong length");
  const std::unique_ptr<ECDSA_SIG, Free<ECDSA_SIG_free>> signature(ECDSA_SIG_new());
  Number r = NumberOf(std::string_view(raw).substr(0, kP256Bytes));
  Number s = NumberOf(std::string_view(raw).substr(kP256Bytes));
  if (!signature || !r || !s || ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1)
    return Internal("OpenSSL has no memory");
  (void)r.release();
  (void)s.release();
  unsigned char* bytes = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &bytes);
  if (size <= 0) return Internal("OpenSSL cannot write a signature");
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

bool IsSigned(EVP_PKEY* key, std::string_view text, std::string_view signature) {
  const std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  return context && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(text),
                          text.size()) == 1;
}

Result<json::object> DecodeObject(std::string_view part, std::string_view what) {
  const auto text = DecodePart(part);
  if (!text.ok()) return Refused(text.status().message());
  auto object = ParseJsonObject(*text);
  if (!object.ok()) return Refused("has a " + std::string(what) + " that is not a JSON object");
  return object;
}

}  // namespace

struct JwkSet::Key {
  std::string id;
  std::string algorithm;  // "RS256" or "ES256"
  PublicKey key;
};

Result<JwkSet> JwkSet::Parse(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  const json::value* const keys = object.if_contains("keys");
  if (keys == nullptr || !keys->is_array() || keys->get_array().size() > kMostKeys)
    return InvalidArgument("a set of keys: expected a list \"keys\" of at most " +
                           std::to_string(kMostKeys));
  JwkSet set;
  for (const json::value& value : keys->get_array()) {
    if (!value.is_object()) continue;
    const json::object& jwk = value.get_object();
    const std::string type = GetStringOr(jwk, "kty", "");
    const std::string algorithm = type == "RSA" ? "RS256" : type == "EC" ? "ES256" : "";
    const bool other_use =
        GetStringOr(jwk, "use", "sig") != "sig" || GetStringOr(jwk, "alg", algorithm) != algorithm;
    if (algorithm.empty() || other_use) continue;
    PublicKey key = type == "RSA" ? RsaKey(jwk) : EcKey(jwk);
    if (key == nullptr) continue;
    set.keys_.push_back(
        std::make_shared<const Key>(Key{GetStringOr(jwk, "kid", ""), algorithm, std::move(key)}));
  }
  if (set.keys_.empty())
    return InvalidArgument(
        "a set of keys: it has no key for RS256 (RSA, at least 2048 bits) or ES256 (P-256)");
  return set;
}

Result<json::object> VerifyJwt(const JwkSet& keys, std::string_view token) {
  if (token.size() > kMaxJwtBytes) return Refused("is longer than 64 KiB");
  const size_t first = token.find('.');
  const size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return Refused("is not of the form HEADER.CLAIMS.SIGNATURE");
  TRY_ASSIGN(const json::object header, DecodeObject(token.substr(0, first), "header"));
  const std::string algorithm = GetStringOr(header, "alg", "");
  if (algorithm != "RS256" && algorithm != "ES256")
    return Refused("is signed by \"" + algorithm.substr(0, 20) + "\", expected RS256 or ES256");
  if (header.contains("crit")) return Refused("has critical extensions, and none is known");
  const bool named = header.contains("kid");
  const std::string id = GetStringOr(header, "kid", "");
  const JwkSet::Key* found = nullptr;
  size_t fitting = 0;
  for (const auto& key : keys.keys_) {
    if (key->algorithm != algorithm || (named && key->id != id)) continue;
    found = key.get();
    ++fitting;
  }
  if (fitting == 0) return NotFound("the issuer has no such key for " + algorithm);
  if (fitting > 1) return Refused("does not say which key of its issuer has signed it");
  const auto raw = DecodePart(token.substr(second + 1));
  if (!raw.ok()) return Refused(raw.status().message());
  std::string signature = *raw;
  if (algorithm == "ES256") {
    TRY_ASSIGN(signature, DerOf(*raw));
  }
  if (!IsSigned(found->key.get(), token.substr(0, second), signature))
    return Refused("is not signed by its issuer");
  return DecodeObject(token.substr(first + 1, second - first - 1), "set of claims");
}

}  // namespace shoal
