#include "base/jwt/jwt.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace shoal {
namespace {

// Keys and tokens made by PyJWT 2.6 for {"sub": "ada"}; tests/e2e/server/oidc_test.py has more.
constexpr const char* kKeys =
    R"({"keys":[{"kty":"RSA","n":"ziAnSZtnbQGjR4Rd4xlIsl1XtKiYIk3DZb2RTRc38-HEiBkWAWCxQKL9kkO-q)"
    R"(Ousfzgn6r2OfI-3qfYDzuimnaoHbXjuvQ-hRzYPjIQkmlEm5HYhSxQNNrwv_T1Hh3ZDUY8OqU75m05o5-S2Oy_a4)"
    R"(4VJXVarvv-qm5gSXTZZlUiv-w5t_odHW17HYBHgMS1P_TcSOtCSbxfQCirw76A2LU9mZjL5yCYATJma5jwgm2iTh)"
    R"(U_DjuXyRWYQ1cDn0F7UGGGMA2Hi3j-51S1-z5lJcuLavjmEAL55fXDdkVCthL2ARzKJpj5QQFSjo8Fw14Mhkn5Sv)"
    R"(nIY8kKw6sJEPMfi2Q","e":"AQAB","kid":"r"},{"kty":"EC","crv":"P-256","x":"XiHjRGRvF2jdyx3m)"
    R"(91ThRRvmf6CKmBsXnYzvHAE_tsA","y":"z1MfSvuxesN5Skges2E8iQMoXlgALjPWzLLXGG458mk","kid":"e")"
    R"(,"use":"sig","alg":"ES256"}]})";
constexpr const char* kSmallKey =
    R"({"kty":"RSA","n":"prngmT46UoqrN0i-OIQ5hLtr2eAFH5O4LBVCWAkuOENaNRRvwzFgkCpCBlpV5XssDdl4VW)"
    R"(gDobfdauTcKBRTZ7YWgAsAvlDnRN0G9_al9VkCHn5vgov_Z4MfKW0g-tsXiecKfOBkW1WEYLYRTFg9TpVzbZPutv)"
    R"(OXxjdCHD4jmrE","e":"AQAB","kid":"s"})";
constexpr const char* kRsa =
    R"(eyJhbGciOiJSUzI1NiIsImtpZCI6InIiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJhZGEifQ.W1dWDuA3raDf-o-86M)"
    R"(5jc5Nzg9os6gQtMldTXtX8zNx8qiSGrs1wS2yQ_M_jb2PfUruleFlTbZns4NJte9ou7ESVCZof_xa6Z0r-CuByMM)"
    R"(zQMCMV4ipKMDw4EVMwA46qhs__OkjpSi7ML9ag7MQiTuV4-yl4-8EUbbMU4uLXzHV9rnwWr2uhzjw_JGuQCDh7bB)"
    R"(H1S7Q4nnWfLlzx0GbzdA9CnKfe2pAbbQtyefYgnGJUGFG6dxyZNka40-LrIT6wqCdI9rtzwnS78xf1a8fMaFeZtp)"
    R"(AS19lOwUwY3lxMqWFqEkSOZagcbZRB9I31QMVN-_lNya9IfuCJrAs96WmEjg)";
constexpr const char* kEc =
    R"(eyJhbGciOiJFUzI1NiIsImtpZCI6ImUiLCJ0eXAiOiJKV1QifQ.eyJzdWIiOiJhZGEifQ.OOxxe1jlBa3vbOHFLc)"
    R"(oaIYgO821QWo3qYL0PQA3SlztE8IFnedobRQ1hY8sc4eGB-ahFUqHjJ1rAMctgoqxdVA)";
constexpr const char* kEcWithoutId =
    R"(eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhZGEifQ.Bqd7VfDZaY57wq8lWRfG2phV2wV0ra6T)"
    R"(87ueJRsitfosfGK0Cp7SRDfUNLUnQeTYHqRcqyanRQAHMTAJCr9ZJg)";

TEST(Jwt, AcceptsTokensOfAnotherImplementation) {
  const auto keys = JwkSet::Parse(kKeys);
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(keys->size(), 2u);
  for (const char* token : {kRsa, kEc, kEcWithoutId}) {
    const auto claims = VerifyJwt(*keys, token);
    ASSERT_TRUE(claims.ok()) << claims.status().message();
    EXPECT_EQ(claims->at("sub"), "ada");
  }
}

TEST(Jwt, EachChangedByteIsNoticed) {
  const JwkSet keys = *JwkSet::Parse(kKeys);
  for (const std::string_view signed_text : {kRsa, kEc}) {
    const std::string token(signed_text);
    // The last character of a part may have bits that no byte has.
    for (size_t i = 0; i + 1 < token.size(); ++i) {
      std::string changed = token;
      changed[i] = changed[i] == 'A' ? 'B' : 'A';
      const bool last = token[i + 1] == '.';
      if (last || token[i] == '.') continue;
      EXPECT_FALSE(VerifyJwt(keys, changed).ok()) << i;
    }
    for (size_t length = 0; length < token.size(); ++length)
      EXPECT_FALSE(VerifyJwt(keys, token.substr(0, length)).ok()) << length;
  }
}

TEST(Jwt, AKeyHasOneAlgorithm) {
  const JwkSet keys = *JwkSet::Parse(kKeys);
  const auto with = [](const std::string& header) {
    std::string text = EncodeBase64(header, Base64::kUrl);
    while (text.ends_with('=')) text.pop_back();
    return text + std::string(kRsa).substr(std::string(kRsa).find('.'));
  };
  for (const char* header :
       {R"({"alg":"none","kid":"r"})", R"({"alg":"HS256","kid":"r"})",
        R"({"alg":"ES256","kid":"r"})", R"({"alg":"PS256","kid":"r"})",
        R"({"alg":"rs256","kid":"r"})", R"({"kid":"r"})", R"({"alg":["RS256"],"kid":"r"})",
        R"({"alg":"RS256","kid":"e"})", "[]", "x"})
    EXPECT_FALSE(VerifyJwt(keys, with(header)).ok()) << header;
  EXPECT_EQ(VerifyJwt(keys, with(R"({"alg":"RS256","kid":"new"})")).status().code(),
            Code::kNotFound);
}

TEST(Jwt, WeakAndForeignKeysArePassedOver) {
  std::string small = R"({"keys":[)";
  small.append(kSmallKey).append("]}");
  for (const char* text : {"[]", "{}", R"({"keys":[]})", small.c_str(),
                           R"({"keys":[{"kty":"oct","k":"AAAA","kid":"r","alg":"HS256"}]})",
                           R"({"keys":[{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}]})",
                           R"({"keys":[{"kty":"RSA","n":"!","e":"AQAB"},7,null]})"})
    EXPECT_FALSE(JwkSet::Parse(text).ok()) << text;
  // A point that is not on the curve.
  const std::string zeros(43, 'A');
  EXPECT_FALSE(JwkSet::Parse(R"({"keys":[{"kty":"EC","crv":"P-256","x":")" + zeros + R"(","y":")" +
                             zeros + R"("}]})")
                   .ok());
  // Of several keys without names a token without one could mean each.
  std::string twice(kKeys);
  twice.insert(twice.size() - 2,
               "," + twice.substr(twice.find(R"({"kty":"EC")"),
                                  twice.size() - 2 - twice.find(R"({"kty":"EC")")));
  const auto keys = JwkSet::Parse(twice);
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  EXPECT_EQ(VerifyJwt(*keys, kEcWithoutId).status().code(), Code::kUnauthenticated);
}

}  // namespace
}  // namespace shoal
