// What object stores and files of records send: XML, profile files, URIs, redirects, lengths, and
// examples of TensorFlow. The first byte of an input says which. Nothing crashes, and what was read
// is read again from what is written of it.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "data/formats/tf_example.h"
#include "data/formats/tfrecord.h"
#include "data/objects/http_objects.h"
#include "data/objects/http_transport.h"
#include "data/objects/object_uri.h"
#include "data/objects/s3/settings.h"
#include "data/objects/xml.h"

namespace {

using namespace shoal::data;

void Require(bool condition) {
  if (!condition) std::abort();
}

size_t CountElements(const XmlElement& element) {
  size_t count = 1;
  for (const XmlElement& child : element.children) count += CountElements(child);
  return count;
}

void TryXml(std::string_view bytes) {
  const auto root = ParseXml(bytes);
  if (root.ok()) Require(CountElements(*root) <= bytes.size());
}

void TryUri(std::string_view bytes) {
  const auto uri = ParseObjectUri(bytes);
  if (!uri.ok()) return;
  const auto again = ParseObjectUri(uri->text());
  Require(again.ok() && again->text() == uri->text());
}

void TryRedirect(std::string_view bytes) {
  const auto to = ResolveRedirect("https://a.example:443", "/x/y?z", std::string(bytes));
  if (!to.ok()) return;
  Require(to->server.starts_with("https://") && to->target.starts_with('/'));
  for (const char c : to->server + to->target) Require(c > ' ' && c < 0x7f);
}

// Encoding is canonical: what was read and written once is written the same again.
void TryExample(std::string_view bytes) {
  const auto example = DecodeTfExample(bytes);
  if (!example.ok()) return;
  const std::string written = EncodeTfExample(*example);
  const auto again = DecodeTfExample(written);
  Require(again.ok() && EncodeTfExample(*again) == written);
  (void)ToJson(*example);
}

void TryRecord(std::string_view bytes) {
  (void)TfRecordLength(bytes.substr(0, kTfRecordHead));
  std::string record;
  AppendTfRecord(bytes, &record);
  const auto length = TfRecordLength(std::string_view(record).substr(0, kTfRecordHead));
  Require(length.ok() && *length == bytes.size());
  Require(MatchesMaskedCrc(bytes, std::string_view(record).substr(kTfRecordHead + bytes.size())));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'x':
      TryXml(bytes);
      break;
    case 'p':
      (void)ParseProfiles(bytes, "profiles");
      break;
    case 'u':
      TryUri(bytes);
      break;
    case 'r':
      TryRedirect(bytes);
      break;
    case 'l':
      (void)LengthOfContentRange(std::string(bytes));
      break;
    case 'e':
      TryExample(bytes);
      break;
    default:
      TryRecord(bytes);
  }
  return 0;
}
