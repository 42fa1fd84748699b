// Fuzz entry: what comes over a rendezvous connection. Messages and log frames that are understood
// can be written and read again to the same; everything else is an error.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/journal/journal_record.h"
#include "rendezvous/protocol/job_event.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/transfer/output_tree.h"

namespace {

using namespace shoal;              // NOLINT: a program of one function
using namespace shoal::rendezvous;  // NOLINT

void Messages(const json::object& object) {
  if (const auto hello = TaskHelloFromJson(object); hello.ok()) {
    if (!TaskHelloFromJson(ToJson(*hello)).ok()) std::abort();
  }
  if (const auto leased = LeasedFromJson(object); leased.ok()) {
    if (LeasedFromJson(ToJson(*leased))->ports != leased->ports) std::abort();
  }
  if (const auto ended = EndedFromJson(object); ended.ok()) {
    if (!(EndedFromJson(ToJson(*ended))->end == ended->end)) std::abort();
  }
  if (const auto start = StartFromJson(object); start.ok()) {
    if (StartFromJson(ToJson(*start))->argv != start->argv) std::abort();
  }
  if (const auto entry = OutputEntryFromJson(object); entry.ok()) {
    const auto again = OutputEntryFromJson(ToJson(*entry));
    if (!again.ok() || !(*again == *entry) || entry->path.starts_with('/')) std::abort();
  }
  if (const auto event = EventFromJson(object); event.ok()) {
    if (!EventFromJson(EventToJson(*event)).ok()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto frame = DecodeLogFrame(text); frame.ok()) {
    if (EncodeLogFrame(frame->key, frame->offset, frame->bytes) != text) std::abort();
  }
  if (const auto frame = DecodeJournalFrame(text); frame.ok()) {
    if (EncodeJournalFrame(frame->offset, frame->bytes) != text) std::abort();
  }
  const std::string clean = CleanText(text, 200);
  if (clean.size() > 200 || CleanText(clean, 200) != clean) std::abort();
  std::string type;
  if (const auto message = ParseMessage(text, &type); message.ok()) Messages(*message);
  return 0;
}
