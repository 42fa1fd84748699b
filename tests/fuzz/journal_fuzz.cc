// Fuzz entry: a coordinator's journal. Whatever the bytes, what is read is a prefix of whole
// records, and facts that are understood can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace shoal::rendezvous;  // NOLINT: a program of one function
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto fact = JournalRecordFromText(text); fact.ok()) {
    const auto again = JournalRecordFromText(JournalRecordToText(*fact));
    if (!again.ok() || JournalRecordToText(*again) != JournalRecordToText(*fact)) std::abort();
  }
  const auto content = ParseJournal(text);
  if (!content.ok()) return 0;
  if (content->good_bytes > size) std::abort();
  std::string whole = size < kJournalHeaderBytes ? std::string() : EncodeJournalHeader();
  for (const std::string_view record : content->records) {
    whole += EncodeJournalRecord(record);
    (void)JournalRecordFromText(record);
  }
  if (whole != text.substr(0, content->good_bytes)) std::abort();
  return 0;
}
