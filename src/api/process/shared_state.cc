#include "api/process/shared_state.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/id.h"
#include "base/json.h"

namespace shoal::api {
namespace {

constexpr const char* kKind = "server";
constexpr const char* kKey = "state";
constexpr const char* kFile = "shared.id";
constexpr size_t kMaxWord = 64;
constexpr size_t kWordBytes = 16;

// The directory that the servers of a store use.
struct Shared {
  std::string word;
  std::string path;
  std::string host;  // that used it first, for messages
};

std::string HostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// Empty if there is no file.
Result<std::string> ReadWord(const std::filesystem::path& state) {
  Result<std::string> word = ReadFile(state / kFile, kMaxWord);
  if (word.status().code() == Code::kNotFound) return std::string();
  if (!word.ok()) return word.status();
  while (!word->empty() && word->back() == '\n') word->pop_back();
  return word;
}

// Makes the file with a new word unless another server does at this moment; returns its word.
Result<std::string> MakeWord(const std::filesystem::path& state) {
  const std::filesystem::path file = state / kFile;
  const std::filesystem::path aside = state / (std::string(kFile) + "." + RandomHex(8));
  TRY(WriteFileAtomically(aside, RandomHex(kWordBytes) + "\n", 0600, true));
  const bool made = ::link(aside.c_str(), file.c_str()) == 0;
  const int error = errno;
  ::unlink(aside.c_str());
  if (!made && error != EEXIST) return ErrnoStatus(error, file.string());
  return ReadWord(state);
}

Result<Shared> Find(controller::Records* records) {
  TRY_ASSIGN(const controller::Record stored, records->Get(kKind, kKey));
  return Shared{GetStringOr(stored.body, "word", ""), GetStringOr(stored.body, "path", ""),
                GetStringOr(stored.body, "host", "")};
}

Status Compare(const Shared& shared, const std::string& word, const std::string& state) {
  if (shared.word != word)
    return FailedPrecondition(
        "the servers of this store keep the files of jobs in " + shared.path + " (first used on " +
        shared.host + "), and " + state + " is another directory: its file " + kFile +
        (word.empty() ? " is missing" : " has another word") +
        "; mount the shared directory on this host at " + shared.path +
        " and name it with --state, or give this server a database of its own");
  if (shared.path == state) return Status::Ok();
  return FailedPrecondition("the servers of this store use the directory at " + shared.path +
                            ", got --state " + state +
                            "; mount it at the same path on every host, because tasks are told "
                            "paths in it");
}

}  // namespace

Status CheckSharedState(controller::Records* records, const std::filesystem::path& state,
                        WallTime now) {
  TRY_ASSIGN(std::string word, ReadWord(state));
  Result<Shared> shared = Find(records);
  if (shared.status().code() == Code::kNotFound) {
    if (word.empty()) {
      TRY_ASSIGN(word, MakeWord(state));
    }
    const Shared own{word, state.string(), HostName()};
    const json::object body{{"word", own.word}, {"path", own.path}, {"host", own.host}};
    const Status put = records->Put(kKind, kKey, body, controller::kAbsent, now).status();
    if (put.ok()) return Status::Ok();
    if (put.code() != Code::kAlreadyExists) return put;
    shared = Find(records);
  }
  if (!shared.ok()) return shared.status();
  return Compare(*shared, word, state.string());
}

}  // namespace shoal::api
