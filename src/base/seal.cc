#include "base/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/base64.h"
#include "base/id.h"

namespace shoal {
namespace {

constexpr size_t kNonce = 12;
constexpr size_t kTag = 16;

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

CipherContext NewContext() { return {EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free}; }

const unsigned char* BytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* BytesOf(std::string* text) { return reinterpret_cast<unsigned char*>(text->data()); }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Empty unless all of it is hex.
std::string DecodeHex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = HexDigit(text[i]);
    const int low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

Status CipherFailed() { return Internal("OpenSSL could not encrypt with AES-256-GCM"); }

}  // namespace

Result<SealingKey> SealingKey::Parse(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  std::string bytes = trimmed.size() == 2 * kBytes ? DecodeHex(trimmed) : "";
  if (bytes.empty()) bytes = DecodeBase64(trimmed).value_or("");
  const bool fits = bytes.size() == kBytes;
  SealingKey key;
  if (fits) std::copy(bytes.begin(), bytes.end(), key.bytes_.begin());
  EraseSecret(&bytes);
  if (!fits) return InvalidArgument("got no key, expected 32 bytes as 64 hex digits or in base64");
  return key;
}

SealingKey SealingKey::Random() {
  SealingKey key;
  // At most 256 bytes are never interrupted (getrandom(2)).
  SHOAL_CHECK(::getrandom(key.bytes_.data(), kBytes, 0) == static_cast<ssize_t>(kBytes));
  return key;
}

SealingKey::~SealingKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

std::string SealingKey::text() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes_) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string SealingKey::id() const {
  const std::string_view key(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  return HmacSha256Hex(key, "shoal sealing key id").substr(0, 16);
}

Result<std::string> Seal(const SealingKey& key, std::string_view plain, std::string_view context) {
  std::string sealed(kNonce + plain.size() + kTag, '\0');
  unsigned char* const nonce = BytesOf(&sealed);
  unsigned char* const body = nonce + kNonce;
  SHOAL_CHECK(::getrandom(nonce, kNonce, 0) == static_cast<ssize_t>(kNonce));
  const CipherContext cipher = NewContext();
  int written = 0;
  const bool done =
      cipher != nullptr &&
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.bytes_.data(), nonce) == 1 &&
      EVP_EncryptUpdate(cipher.get(), nullptr, &written, BytesOf(context),
                        static_cast<int>(context.size())) == 1 &&
      EVP_EncryptUpdate(cipher.get(), body, &written, BytesOf(plain),
                        static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), body + plain.size(), &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTag, body + plain.size()) == 1;
  if (!done) return CipherFailed();
  return sealed;
}

Result<std::string> Unseal(const SealingKey& key, std::string_view sealed,
                           std::string_view context) {
  const Status wrong =
      FailedPrecondition("it was sealed with another key, or its stored bytes were changed");
  if (sealed.size() < kNonce + kTag) return wrong;
  const size_t size = sealed.size() - kNonce - kTag;
  std::string plain(size, '\0');
  std::string tag(sealed.substr(kNonce + size));
  const CipherContext cipher = NewContext();
  int written = 0;
  const bool done =
      cipher != nullptr &&
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.bytes_.data(),
                         BytesOf(sealed)) == 1 &&
      EVP_DecryptUpdate(cipher.get(), nullptr, &written, BytesOf(context),
                        static_cast<int>(context.size())) == 1 &&
      EVP_DecryptUpdate(cipher.get(), BytesOf(&plain), &written, BytesOf(sealed.substr(kNonce)),
                        static_cast<int>(size)) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTag, BytesOf(&tag)) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), BytesOf(&plain) + size, &written) == 1;
  if (!done) {
    EraseSecret(&plain);
    return wrong;
  }
  return plain;
}

void EraseSecret(std::string* text) {
  OPENSSL_cleanse(text->data(), text->size());
  text->clear();
}

}  // namespace shoal
