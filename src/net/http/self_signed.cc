#include "net/http/self_signed.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cctype>
#include <memory>

namespace shoal::net {
namespace {

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* one) const { kFree(one); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION, X509_EXTENSION_free>>;
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

constexpr long kDay = 86400;  // NOLINT: OpenSSL's type

Status Failed(const char* what) {
  const unsigned long code = ERR_peek_last_error();  // NOLINT: OpenSSL's type
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return Internal(std::string("cannot make a certificate: ") + what + ": " +
                  (reason != nullptr ? reason : "no reason was given"));
}

// "IP:10.0.0.7" or "DNS:host", as OpenSSL's configuration has it.
Result<std::string> AltName(const std::string& name) {
  in6_addr number{};
  if (::inet_pton(AF_INET, name.c_str(), &number) == 1 ||
      ::inet_pton(AF_INET6, name.c_str(), &number) == 1)
    return "IP:" + name;
  bool good = !name.empty() && name.size() <= 253;
  for (const char c : name)
    good = good && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ||
                    c == '_' || c == '*');
  if (good) return "DNS:" + name;
  return InvalidArgument("\"" + name.substr(0, 100) +
                         "\" cannot be in a certificate, expected a host name or an address");
}

Status AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1)
    return Failed(OBJ_nid2ln(nid));
  return Status::Ok();
}

Status SetNumberAndTimes(X509* certificate, WallTime now) {
  unsigned char number[16];
  if (RAND_bytes(number, sizeof number) != 1) return Failed("random numbers");
  number[0] &= 0x7f;  // positive
  BIGNUM* const serial = BN_bin2bn(number, sizeof number, nullptr);
  const bool set = serial != nullptr &&
                   BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(serial);
  if (!set) return Failed("serial number");
  const auto seconds = static_cast<time_t>(
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  ASN1_TIME_set(X509_getm_notBefore(certificate), seconds - kDay);
  ASN1_TIME_set(X509_getm_notAfter(certificate), seconds + 3652 * kDay);
  return Status::Ok();
}

template <typename Write>
Result<std::string> ToPem(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || write(bio.get()) != 1) return Failed("PEM");
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);  // NOLINT: OpenSSL's type
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace

Result<SelfSigned> MakeSelfSigned(const std::vector<std::string>& names, WallTime now) {
  std::string alt_names;
  for (const std::string& name : names) {
    TRY_ASSIGN(const std::string one, AltName(name));
    alt_names += (alt_names.empty() ? "" : ",") + one;
  }
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("key");
  const Certificate certificate(X509_new());
  if (certificate == nullptr) return Failed("certificate");
  X509* const x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  TRY(SetNumberAndTimes(x509, now));
  X509_NAME* const subject = X509_get_subject_name(x509);
  const auto* const text = reinterpret_cast<const unsigned char*>("shoal server");
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, text, -1, -1, 0);
  X509_set_issuer_name(x509, subject);
  X509_set_pubkey(x509, key.get());
  TRY(AddExtension(x509, NID_basic_constraints, "critical,CA:FALSE"));
  TRY(AddExtension(x509, NID_key_usage, "critical,digitalSignature"));
  TRY(AddExtension(x509, NID_ext_key_usage, "serverAuth"));
  TRY(AddExtension(x509, NID_subject_key_identifier, "hash"));
  if (!alt_names.empty()) TRY(AddExtension(x509, NID_subject_alt_name, alt_names));
  if (X509_sign(x509, key.get(), EVP_sha256()) == 0) return Failed("signature");
  SelfSigned made;
  TRY_ASSIGN(made.certificate, ToPem([&](BIO* bio) { return PEM_write_bio_X509(bio, x509); }));
  TRY_ASSIGN(made.key, ToPem([&](BIO* bio) {
               return PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr,
                                                    nullptr);
             }));
  return made;
}

}  // namespace shoal::net
