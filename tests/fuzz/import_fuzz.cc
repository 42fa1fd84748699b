// Fuzz entry: foreign job descriptions of all formats; the first line "dmlc" makes the rest, split
// at spaces, dmlc-submit's command line. Whatever the bytes, there is a sentence, or a job whose
// text is read back as the very job or refused with a sentence.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/dmlc_submit.h"
#include "import/import.h"
#include "job/file/parse.h"

namespace {

using shoal::importer::ImportedJob;

void Check(const shoal::Result<ImportedJob>& finished) {
  if (!finished.ok()) {
    if (finished.status().message().empty()) std::abort();
    return;
  }
  const auto again =
      shoal::job::ParseJob(shoal::importer::WriteImported(*finished), finished->file);
  if (!again.ok() || !(*again == finished->job)) std::abort();
}

void CheckCommandLine(std::string_view text) {
  std::map<std::string, std::vector<std::string>> flags;
  std::vector<std::string> command;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word(text.substr(begin, end - begin));
    begin = end + 1;
    const size_t equals = word.find('=');
    if (word.starts_with("--") && equals != std::string::npos) {
      flags[word.substr(2, equals - 2)].push_back(word.substr(equals + 1));
    } else {
      command.push_back(word);
    }
  }
  auto imported = shoal::importer::ImportDmlcSubmit(flags, command);
  if (imported.ok()) {
    Check(shoal::importer::FinishImport(std::move(*imported), {}));
  } else if (imported.status().message().empty()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (text.starts_with("dmlc\n")) {
    CheckCommandLine(text.substr(5));
    return 0;
  }
  auto imported = shoal::importer::ImportText(text, "fuzz.yaml");
  if (!imported.ok()) {
    const bool told = imported.status().code() == shoal::Code::kInvalidArgument &&
                      !imported.status().message().empty();
    if (!told) std::abort();
  } else if (imported->has_value()) {
    (void)shoal::importer::WriteImported(**imported);
    Check(shoal::importer::FinishImport(std::move(**imported), {}));
  }
  return 0;
}
