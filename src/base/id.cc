#include "base/id.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cctype>
#include <cstring>
#include <vector>

#include "base/status.h"

namespace shoal {
namespace {

std::string Hex(const unsigned char* bytes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (size_t i = 0; i < size; ++i) {
    text.push_back(kDigits[bytes[i] >> 4]);
    text.push_back(kDigits[bytes[i] & 15]);
  }
  return text;
}

void FillRandom(void* into, size_t bytes) {
  auto* at = static_cast<unsigned char*>(into);
  while (bytes > 0) {
    const ssize_t got = ::getrandom(at, bytes, 0);
    if (got < 0) continue;  // EINTR; other errors cannot happen with these flags
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

}  // namespace

std::string RandomHex(size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  FillRandom(raw.data(), bytes);
  return Hex(raw.data(), bytes);
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  FillRandom(&seed, sizeof seed);
  return seed;
}

std::string NewToken() { return RandomHex(32); }

std::string NewJobId(std::string_view name) {
  std::string id;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      id.push_back(static_cast<char>(std::tolower(byte)));
    else if (!id.empty() && id.back() != '-')
      id.push_back('-');
    if (id.size() == 40) break;
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  return (id.empty() ? "job" : id) + "-" + RandomHex(3);
}

std::string HmacSha256Hex(std::string_view key, std::string_view message) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const void* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest, &size);
  SHOAL_CHECK(made != nullptr);
  return Hex(digest, size);
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHOAL_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  SHOAL_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  SHOAL_CHECK(EVP_DigestFinal_ex(state_->context, digest, &size) == 1);
  return Hex(digest, size);
}

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const int made = EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  SHOAL_CHECK(made == 1);
  return Hex(digest, size);
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace shoal
