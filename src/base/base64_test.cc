#include "base/base64.h"

#include <gtest/gtest.h>

namespace shoal {
namespace {

// RFC 4648, section 10.
TEST(Base64, HasTheVectorsOfTheRfc) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(DecodeBase64(text).value_or("?"), bytes);
  }
  EXPECT_EQ(DecodeBase64("Zm9v\nYg").value_or("?"), "foob");
}

TEST(Base64, TheTwoAlphabetsDifferInTwoLetters) {
  const std::string bytes("\xfb\xff\xfe\0", 4);
  EXPECT_EQ(EncodeBase64(bytes), "+//+AA==");
  EXPECT_EQ(EncodeBase64(bytes, Base64::kUrl), "-__-AA==");
  EXPECT_EQ(DecodeBase64("+//+AA==").value_or("?"), bytes);
}

TEST(Base64, WhatIsNoneIsRefused) {
  for (const char* bad : {"Z", "Zm9vY", "Zg=", "Zg==Zg==", "====", "Z-==", "Zm9v!"})
    EXPECT_FALSE(DecodeBase64(bad).ok()) << bad;
}

}  // namespace
}  // namespace shoal
