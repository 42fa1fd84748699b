#include "data/objects/xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::data {
namespace {

TEST(Xml, ReadsElementsAndText) {
  const auto root = ParseXml(
      "\xef\xbb\xbf<?xml version='1.0' encoding=\"UTF-8\"?>\n<!-- none -->\n"
      "<s3:A xmlns=\"http://x/>\"><B>1 &lt; 2 &amp;&#x20ac;&#65;</B><B/><C><![CDATA[<raw&>]]></C>"
      "</s3:A>\n");
  ASSERT_TRUE(root.ok()) << root.status().message();
  EXPECT_EQ(root->name, "A");
  ASSERT_EQ(root->children.size(), 3u);
  EXPECT_EQ(root->TextOf("B"),
            "1 < 2 &\xe2\x82\xac"
            "A");
  EXPECT_EQ(root->TextOf("C"), "<raw&>");
  EXPECT_EQ(root->TextOf("D"), "");
  EXPECT_EQ(root->Find("D"), nullptr);
}

TEST(Xml, RefusesEverythingElse) {
  for (const char* wrong :
       {"", "text", "<A>", "<A></B>", "<A/><B/>", "<A>&none;</A>", "<A>&#0;</A>", "<A>&#xd800;</A>",
        "<A>&lt</A>", "<!DOCTYPE A [<!ENTITY x 'y'>]><A/>", "<A><!ENTITY x></A>", "< A/>",
        "<A b='>", "<A><B</A>", "{}", "<A>&#x110000;</A>"})
    EXPECT_EQ(ParseXml(wrong).status().code(), Code::kDataLoss) << wrong;
}

TEST(Xml, IsBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_EQ(ParseXml(deep).status().code(), Code::kDataLoss);
  std::string wide = "<r>";
  for (int i = 0; i < 200'000; ++i) wide += "<a/>";
  EXPECT_EQ(ParseXml(wide + "</r>").status().code(), Code::kDataLoss);
}

TEST(Xml, EveryTruncationIsAnError) {
  const std::string whole =
      "<?xml version='1.0'?><A x='1'><B>&amp;</B><!--c--><C><![CDATA[d]]></C></A>";
  ASSERT_TRUE(ParseXml(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(ParseXml(whole.substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace shoal::data
