#include "base/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace shoal {
namespace {

using testing::HasSubstr;

TEST(Seal, GivesBackWhatWasSealed) {
  const SealingKey key = SealingKey::Random();
  for (const std::string& plain : {std::string(), std::string("hunter2"), std::string(70'000, 'x'),
                                   std::string("\0\xff\n", 3)}) {
    const auto sealed = Seal(key, plain, "research/db");
    ASSERT_TRUE(sealed.ok());
    EXPECT_EQ(sealed->size(), plain.size() + 28);
    EXPECT_TRUE(plain.empty() || sealed->find(plain) == std::string::npos);
    const auto opened = Unseal(key, *sealed, "research/db");
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ(*opened, plain);
  }
}

TEST(Seal, UsesANewNonceEachTime) {
  const SealingKey key = SealingKey::Random();
  EXPECT_NE(*Seal(key, "same", "c"), *Seal(key, "same", "c"));
}

// Every byte counts: nonce, ciphertext, tag, context and key.
TEST(Seal, RefusesWhatWasChanged) {
  const SealingKey key = SealingKey::Random();
  const std::string sealed = *Seal(key, "hunter2", "a/b");
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(Unseal(key, changed, "a/b").status().code(), Code::kFailedPrecondition) << i;
  }
  for (size_t size = 0; size < sealed.size(); ++size)
    EXPECT_FALSE(Unseal(key, sealed.substr(0, size), "a/b").ok()) << size;
  EXPECT_FALSE(Unseal(key, sealed, "a/c").ok());
  EXPECT_FALSE(Unseal(SealingKey::Random(), sealed, "a/b").ok());
}

TEST(SealingKey, IsReadFromHexAndBase64) {
  const SealingKey key = SealingKey::Random();
  EXPECT_EQ(key.text().size(), 64u);
  const auto hex = SealingKey::Parse(" " + key.text() + "\n");
  ASSERT_TRUE(hex.ok());
  EXPECT_EQ(hex->text(), key.text());
  EXPECT_EQ(hex->id(), key.id());
  std::string raw(32, '\x5a');
  const auto base64 = SealingKey::Parse(EncodeBase64(raw));
  ASSERT_TRUE(base64.ok());
  EXPECT_THAT(base64->text(), HasSubstr("5a5a5a"));
  EXPECT_NE(base64->id(), key.id());
}

TEST(SealingKey, RefusesOtherTextsWithoutShowingThem) {
  for (const std::string& text :
       {std::string(), std::string("hunter2"), std::string(63, 'a'), std::string(64, 'g'),
        std::string(65, 'a'), EncodeBase64("short")}) {
    const auto key = SealingKey::Parse(text);
    ASSERT_FALSE(key.ok()) << text;
    EXPECT_EQ(key.status().message(),
              "got no key, expected 32 bytes as 64 hex digits or in base64");
  }
}

}  // namespace
}  // namespace shoal
