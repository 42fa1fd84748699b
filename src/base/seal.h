// Authenticated encryption of small texts at rest: AES-256 in Galois/Counter mode (NIST SP
// 800-38D).
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal {

// A key of 256 bits. Erases its bytes when it is destroyed. Copyable.
class SealingKey {
 public:
  static constexpr size_t kBytes = 32;

  // `text`: 64 hex digits, or 32 bytes in base64; surrounding whitespace is ignored.
  // InvalidArgument otherwise, without any part of the text.
  static Result<SealingKey> Parse(std::string_view text);
  // Random bytes of the kernel.
  static SealingKey Random();

  SealingKey(const SealingKey&) = default;
  SealingKey& operator=(const SealingKey&) = default;
  ~SealingKey();

  // 64 hex digits.
  std::string text() const;
  // Tells keys apart and reveals nothing of them: 16 hex digits of a digest.
  std::string id() const;

 private:
  friend Result<std::string> Seal(const SealingKey&, std::string_view, std::string_view);
  friend Result<std::string> Unseal(const SealingKey&, std::string_view, std::string_view);
  SealingKey() = default;

  std::array<unsigned char, kBytes> bytes_{};
};

// `plain` encrypted under a random nonce of 96 bits, as nonce, ciphertext, tag (28 bytes more than
// `plain`). `context` is authenticated: Unseal needs the same. Fails only where OpenSSL does.
// O(plain).
Result<std::string> Seal(const SealingKey& key, std::string_view plain, std::string_view context);
// FailedPrecondition if it was sealed with another key or context, or was changed.
Result<std::string> Unseal(const SealingKey& key, std::string_view sealed,
                           std::string_view context);

// Overwrites the text's bytes, also where the compiler sees no further use, and empties it.
void EraseSecret(std::string* text);

}  // namespace shoal
