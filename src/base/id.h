// Unique names, secrets, and the digests that prove possession of a secret.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace shoal {

// `bytes` random bytes of the kernel (getrandom), in lower-case hex. Aborts only if the kernel has
// no randomness.
std::string RandomHex(size_t bytes);
// 64 random bits of the kernel.
uint64_t RandomSeed();

// 32 random bytes in hex: a job's or a server's secret. Kept in 0600 files; never in argv or in a
// plan.
std::string NewToken();

// "text8-vectors-7f3a9c": the name cut to letters, digits and '-', at most 40, and six hex digits.
std::string NewJobId(std::string_view name);

// HMAC-SHA256 (RFC 2104) of `message` under `key`, in hex. O(message).
std::string HmacSha256Hex(std::string_view key, std::string_view message);
// SHA-256 in hex.
std::string Sha256Hex(std::string_view bytes);
// SHA-256 of bytes that come in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  ~Sha256();
  void Add(std::string_view bytes);
  // In hex; once.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// Equality in time that depends on the length alone.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace shoal
