#include "net/address_policy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

namespace shoal::net {
namespace {

bool Allows(const AddressPolicy& policy, const char* text) {
  sockaddr_storage storage{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
  } else if (::inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
  } else {
    ADD_FAILURE() << text;
  }
  return policy.Check(reinterpret_cast<const sockaddr&>(storage)).ok();
}

TEST(AddressPolicy, RefusesAddressesOfThisMachineAndItsNetworks) {
  const auto policy = AddressPolicy::Make({});
  ASSERT_TRUE(policy.ok());
  for (const char* text : {"127.0.0.1",
                           "127.255.255.254",
                           "0.0.0.0",
                           "10.0.0.1",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.168.1.1",
                           "169.254.169.254",
                           "100.64.0.1",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::ffff:127.0.0.1",
                           "::127.0.0.1",
                           "64:ff9b::a9fe:a9fe",
                           "64:ff9b:1::7f00:1",
                           "2002:7f00:1::",
                           "fe80::1",
                           "fd00::1",
                           "ff02::1"})
    EXPECT_FALSE(Allows(*policy, text)) << text;
  for (const char* text :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "100.128.0.0",
        "223.255.255.255", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"})
    EXPECT_TRUE(Allows(*policy, text)) << text;
}

TEST(AddressPolicy, AllowsWhatIsNamed) {
  const auto policy = AddressPolicy::Make({"10.1.0.0/17", "127.0.0.1", "fd00:1::/32"});
  ASSERT_TRUE(policy.ok());
  EXPECT_TRUE(Allows(*policy, "10.1.127.255"));
  EXPECT_TRUE(Allows(*policy, "::ffff:10.1.0.1"));
  EXPECT_TRUE(Allows(*policy, "127.0.0.1"));
  EXPECT_TRUE(Allows(*policy, "fd00:1::5"));
  EXPECT_FALSE(Allows(*policy, "10.1.128.0"));
  EXPECT_FALSE(Allows(*policy, "127.0.0.2"));
  EXPECT_FALSE(Allows(*policy, "fd00:2::5"));
  const auto all = AddressPolicy::Make({"0.0.0.0/0", "::/0"});
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(Allows(*all, "127.0.0.1"));
  EXPECT_TRUE(Allows(*all, "::1"));
}

TEST(AddressPolicy, NamesWhatIsNoNetwork) {
  for (const char* text : {"", "localhost", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                           "10.0.0.0/8x", "::/129", "10.0.0"}) {
    const auto policy = AddressPolicy::Make({text});
    ASSERT_FALSE(policy.ok()) << text;
    EXPECT_NE(policy.status().message().find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace shoal::net
