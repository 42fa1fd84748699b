#include "rendezvous/transfer/output_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/id.h"
#include "base/log.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;
using Kind = OutputEntry::Kind;

constexpr size_t kMaxListBytes = size_t{256} << 20;

bool IsUploadId(std::string_view id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void RemoveAll(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// The lines of a list that an earlier coordinator wrote, without a torn last one; empty if it is
// another sender's.
std::vector<OutputEntry> ReadList(const fs::path& path, const std::string& id) {
  std::vector<OutputEntry> entries;
  const auto text = ReadFile(path, kMaxListBytes);
  if (!text.ok() || !text->starts_with(id + "\n")) return {};
  size_t at = id.size() + 1;
  for (size_t end; (end = text->find('\n', at)) != std::string::npos; at = end + 1) {
    auto object = ParseJsonObject(std::string_view(*text).substr(at, end - at));
    if (!object.ok()) return {};
    auto entry = OutputEntryFromJson(*object);
    if (!entry.ok()) return {};
    entries.push_back(std::move(*entry));
  }
  return entries;
}

// How much of a file was received; -1: none.
int64_t SizeOf(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return -1;
  return info.st_size;
}

}  // namespace

OutputStore::~OutputStore() {
  for (const auto& [connection, upload] : uploads_) RemoveAll(upload.probe);
}

std::string OutputStore::NameOf(const LogKey& key) const {
  return fs::path(LogFileName(key)).stem().string();
}

fs::path OutputStore::Incoming(const Upload& upload) const {
  return directory_ / ".incoming" / NameOf(upload.key);
}

fs::path OutputStore::ListOf(const Upload& upload) const {
  return directory_ / ".incoming" / (NameOf(upload.key) + ".list");
}

Status OutputStore::Add(Connection* connection, const LogKey& key, const json::object& hello) {
  TRY_ASSIGN(const std::string id, GetString(hello, "upload"));
  if (!IsUploadId(id)) return InvalidArgument("field 'upload': expected 32 lower-case hex digits");
  for (auto& [other, upload] : uploads_) {
    if (upload.key != key || upload.done) continue;
    upload.done = true;  // its sender has reconnected
    upload.file.Reset();
    upload.list.Reset();
    other->Close("the sender has connected again");
  }
  Upload& upload = uploads_[connection];
  upload.key = key;
  upload.probe = directory_ / (".probe-" + RandomHex(16));
  upload.held = held_.contains(key);
  if (upload.held) return Status::Ok();
  std::error_code error;
  const bool stored = fs::exists(directory_ / NameOf(key), error) && !fs::exists(ListOf(upload));
  Status status = MakeDirectories(directory_ / ".incoming", 0700);
  if (status.ok() && !stored) status = Resume(&upload, id);
  if (status.ok()) status = WriteFileAtomically(upload.probe, "", 0600, false);
  if (!status.ok()) {
    Fail(connection, &upload, status);
    return Status::Ok();
  }
  connection->Send("outputs", {{"probe", upload.probe.filename().string()},
                               {"entries", upload.entries - (upload.again ? 1 : 0)},
                               {"bytes", upload.again ? upload.last.size - upload.left : 0},
                               {"stored", stored}});
  return Status::Ok();
}

void OutputStore::Remove(Connection* connection) {
  const auto found = uploads_.find(connection);
  if (found == uploads_.end()) return;
  RemoveAll(found->second.probe);
  uploads_.erase(found);
}

// Resumes what an earlier connection, of this coordinator or the one before it, has left.
Status OutputStore::Resume(Upload* upload, const std::string& id) {
  std::vector<OutputEntry> entries = ReadList(ListOf(*upload), id);
  std::string text = id + "\n";
  for (OutputEntry& entry : entries) {
    text += ToText(ToJson(entry)) + "\n";
    ++upload->entries;
    upload->bytes += entry.size;
    if (entry.kind == Kind::kLink) upload->links.push_back(entry);
  }
  if (entries.empty()) {
    Discard(upload);
    TRY(MakeDirectories(Incoming(*upload), 0700));
  } else {
    upload->last = std::move(entries.back());
    const OutputEntry& last = upload->last;
    const int64_t there = last.kind == Kind::kFile ? SizeOf(Incoming(*upload) / last.path) : 0;
    // It was listed but not created.
    upload->again = last.kind != Kind::kFile || there < last.size;
    upload->left = last.size - std::clamp<int64_t>(there, 0, last.size);
    if (last.kind == Kind::kLink) upload->links.pop_back();
  }
  TRY(WriteFileAtomically(ListOf(*upload), text, 0600, false));
  TRY_ASSIGN(upload->list, OpenFile(ListOf(*upload), O_WRONLY | O_APPEND | O_NOFOLLOW));
  return Status::Ok();
}

Status OutputStore::Received(Connection* connection, const std::string& type,
                             const json::object& message) {
  const auto found = uploads_.find(connection);
  if (found == uploads_.end() || type == "heartbeat") return Status::Ok();
  Upload& upload = found->second;
  if (upload.done || upload.held) return Status::Ok();
  if (type != "entry" && type != "whole" && type != "same") {
    return InvalidArgument("this type of message is unknown");
  }
  Status status;
  if (type == "same") {
    Discard(&upload);
  } else {
    status = type == "entry" ? TakeEntry(&upload, message) : Finish(&upload, message);
  }
  if (!status.ok()) {
    Fail(connection, &upload, status);
  } else if (type == "whole" && hold_ && hold_(upload.key)) {
    upload.held = true;
    held_.insert(upload.key);
  } else if (type != "entry") {
    upload.done = true;
    connection->Send("stored", {});
  }
  return Status::Ok();
}

void OutputStore::OnForwarded(const LogKey& key) {
  held_.erase(key);
  for (auto& [connection, upload] : uploads_) {
    if (upload.key != key || !std::exchange(upload.held, false)) continue;
    upload.done = true;
    connection->Send("stored", {});
  }
}

Status OutputStore::TakeEntry(Upload* upload, const json::object& message) {
  TRY_ASSIGN(const OutputEntry entry, OutputEntryFromJson(message));
  if (std::exchange(upload->again, false)) {
    if (!(entry == upload->last)) return DataLoss("the outputs are not the same as before");
    return BeginEntry(upload, entry);
  }
  if (upload->left > 0) return DataLoss("the file before it has not come whole");
  upload->bytes += entry.size;
  if (++upload->entries > static_cast<int64_t>(kMaxOutputEntries) ||
      upload->bytes > kMaxOutputBytes) {
    return ResourceExhausted("more files or bytes than outputs may have");
  }
  TRY(WriteAll(upload->list.get(), ToText(ToJson(entry)) + "\n").With(ListOf(*upload).string()));
  upload->last = entry;
  upload->left = entry.size;
  return BeginEntry(upload, entry);
}

// Only directories and files can be in a path's way: links are created last.
Status OutputStore::BeginEntry(Upload* upload, const OutputEntry& entry) {
  const fs::path path = Incoming(*upload) / entry.path;
  if (entry.kind == Kind::kLink) {
    upload->links.push_back(entry);
    return Status::Ok();
  }
  if (entry.kind == Kind::kDirectory) {
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
      return ErrnoStatus(errno, "cannot make " + path.string());
    }
    return Status::Ok();
  }
  const int64_t there = entry.size - upload->left;
  TRY_ASSIGN(upload->file, OpenFile(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW,
                                    entry.executable ? 0755 : 0644));
  if (SizeOf(path) != there) return DataLoss(path.string() + " has another size than was stored");
  if (upload->left == 0) upload->file.Reset();
  return Status::Ok();
}

Status OutputStore::Received(Connection* connection, std::string_view bytes) {
  const auto found = uploads_.find(connection);
  if (found == uploads_.end() || found->second.done || found->second.held) return Status::Ok();
  Upload& upload = found->second;
  if (!upload.file.valid() || static_cast<int64_t>(bytes.size()) > upload.left) {
    return InvalidArgument("more bytes than the file was said to have");
  }
  const Status status = WriteAll(upload.file.get(), bytes).With("the outputs");
  if (!status.ok()) {
    Fail(connection, &upload, status);
    return Status::Ok();
  }
  upload.left -= static_cast<int64_t>(bytes.size());
  if (upload.left == 0) upload.file.Reset();
  return Status::Ok();
}

Status OutputStore::Finish(Upload* upload, const json::object& message) {
  TRY_ASSIGN(const int64_t entries, GetInt(message, "entries"));
  if (upload->left > 0 || upload->again || entries != upload->entries) {
    return DataLoss("outputs that have not come whole were said to be whole");
  }
  const fs::path from = Incoming(*upload);
  for (const OutputEntry& link : upload->links) {
    const fs::path path = from / link.path;
    std::error_code error;
    if (fs::is_symlink(path, error)) fs::remove(path, error);  // left by an earlier coordinator
    if (::symlink(link.target.c_str(), path.c_str()) != 0) {
      return ErrnoStatus(errno, "cannot make the link " + path.string());
    }
  }
  const fs::path to = directory_ / NameOf(upload->key);
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot put the outputs to " + to.string());
  }
  upload->list.Reset();
  RemoveAll(ListOf(*upload));
  return Status::Ok();
}

void OutputStore::Discard(Upload* upload) {
  upload->file.Reset();
  upload->list.Reset();
  RemoveAll(Incoming(*upload));
  RemoveAll(ListOf(*upload));
}

void OutputStore::Fail(Connection* connection, Upload* upload, const Status& why) {
  LogWarning("outputs of {} are not stored: {}", NameOf(upload->key), why.message());
  Discard(upload);
  upload->done = true;
  connection->Send("failed", {{"text", why.message()}});
}

}  // namespace shoal::rendezvous
