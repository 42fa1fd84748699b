#include "data/objects/webhdfs/webhdfs_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "data/objects/webhdfs/webhdfs_client.h"

namespace shoal::data {
namespace {

constexpr size_t kHdfsPiece = 16 << 20;  // bytes of one APPEND
constexpr size_t kMaxHdfsListing = 64 << 20;
constexpr size_t kMaxHdfsFolders = 1'000'000;  // waiting to be listed

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string Below(const std::string& folder, const std::string& name) {
  return folder + (folder.ends_with('/') ? "" : "/") + name;
}

struct HdfsStatus {
  ObjectInfo info;
  bool folder = false;
  bool link = false;
  std::string name;  // in its folder; empty of what was asked for itself
};

// An entry of a FileStatus.
Result<HdfsStatus> StatusOf(const json::object& json, const std::string& uri) {
  HdfsStatus status;
  const auto length = GetInt(json, "length");
  const auto type = GetString(json, "type");
  const int64_t modified = GetIntOr(json, "modificationTime", 0);
  if (!length.ok() || !type.ok() || *length < 0)
    return DataLoss(uri + ": the answer has no FileStatus of WebHDFS");
  status.folder = *type == "DIRECTORY";
  status.link = *type == "SYMLINK";
  status.name = GetStringOr(json, "pathSuffix", "");
  const auto seconds = std::chrono::seconds(std::clamp<int64_t>(modified / 1000, 0, 1LL << 36));
  status.info = {uri, static_cast<uint64_t>(*length),
                 fmt::format("{}-{}-{}", GetIntOr(json, "fileId", 0), *length, modified),
                 FormatWall(WallTime(seconds)).substr(0, 19) + "Z"};
  return status;
}

Result<HdfsStatus> AskStatus(const WebHdfsClient& client, const std::string& path) {
  TRY_ASSIGN(const json::object json, client.CallForJson(path, {.op = "GETFILESTATUS"}));
  const json::object* const status = FindObject(json, "FileStatus");
  if (status == nullptr) return DataLoss(client.UriOf(path) + ": the answer has no FileStatus");
  return StatusOf(*status, client.UriOf(path));
}

class HdfsObject final : public Object {
 public:
  HdfsObject(std::shared_ptr<const WebHdfsClient> client, std::string path, ObjectInfo info)
      : client_(std::move(client)), path_(std::move(path)), info_(std::move(info)) {}
  const ObjectInfo& info() const override { return info_; }

  // WebHDFS has no preconditions, so the version is compared after the bytes have come.
  Result<size_t> ReadAt(uint64_t offset, char* to, size_t size) const override {
    size =
        static_cast<size_t>(std::min<uint64_t>(size, info_.bytes - std::min(offset, info_.bytes)));
    if (size == 0) return size_t{0};
    TRY_ASSIGN(const net::HttpReply reply,
               client_->Call(path_, {.op = "OPEN",
                                     .query = fmt::format("offset={}&length={}", offset, size),
                                     .redirects = true,
                                     .max_body = size}));
    const auto now = AskStatus(*client_, path_);
    if (now.status().code() == Code::kNotFound) return Changed("removed");
    if (!now.ok()) return now.status();
    if (now->info.version != info_.version || reply.body.size() != size)
      return Changed("now " + now->info.version);
    std::memcpy(to, reply.body.data(), size);
    return size;
  }

 private:
  Status Changed(const std::string& what) const {
    return DataLoss(
        fmt::format("{} has changed since it was opened (version {}, {}); do not change data while "
                    "it is used",
                    info_.uri, info_.version, what));
  }

  const std::shared_ptr<const WebHdfsClient> client_;
  const std::string path_;
  const ObjectInfo info_;
};

class HdfsWriter final : public ObjectWriter {
 public:
  HdfsWriter(std::shared_ptr<const WebHdfsClient> client, std::string path, bool replaces = true)
      : client_(std::move(client)),
        path_(std::move(path)),
        replaces_(replaces),
        aside_(Below(ParentOf(path_), ".saving-" + RandomHex(8))) {}

  ~HdfsWriter() override {
    if (!created_) return;
    const auto removed = client_->Call(aside_, {.method = "DELETE", .op = "DELETE"});
    if (!removed.ok()) LogWarning("an unfinished file stays: {}", removed.status().message());
  }

  Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t room = kHdfsPiece - buffer_.size();
      buffer_ += bytes.substr(0, room);
      bytes.remove_prefix(std::min(room, bytes.size()));
      if (buffer_.size() == kHdfsPiece) TRY(Send());
    }
    return Status::Ok();
  }

  Result<ObjectInfo> Finish() override {
    if (!created_ || !buffer_.empty()) TRY(Send());
    TRY_ASSIGN(HdfsStatus written, AskStatus(*client_, aside_));
    if (written.info.bytes != bytes_) {
      return DataLoss(fmt::format("{}: {} bytes arrived of {}; write it again",
                                  client_->UriOf(path_), written.info.bytes, bytes_));
    }
    TRY(MoveIntoPlace());
    created_ = false;
    written.info.uri = client_->UriOf(path_);
    return written.info;
  }

 private:
  // An APPEND that was sent twice would be written twice, so it is not repeated; the length is
  // checked at the end.
  Status Send() {
    const std::string body = std::exchange(buffer_, {});
    bytes_ += body.size();
    WebHdfsCall call{.method = "PUT", .op = "CREATE", .query = "overwrite=true"};
    if (created_) call = {.method = "POST", .op = "APPEND"};
    call.body = body;
    call.redirects = true;
    call.repeat = !created_;
    TRY(client_->Call(aside_, call).status());
    created_ = true;
    return Status::Ok();
  }

  Status MoveIntoPlace() {
    if (!replaces_) return MoveToNew();
    const WebHdfsCall move{
        .method = "PUT",
        .op = "RENAME",
        .query = "destination=" + net::PercentEncode(path_) + "&renameoptions=OVERWRITE"};
    return client_->Call(aside_, move).status();
  }

  // Without an option RENAME answers false where the destination exists.
  Status MoveToNew() {
    const WebHdfsCall move{.method = "PUT",
                           .op = "RENAME",
                           .query = "destination=" + net::PercentEncode(path_),
                           .repeat = false};
    TRY_ASSIGN(const json::object answer, client_->CallForJson(aside_, move));
    if (GetBoolOr(answer, "boolean", false)) return Status::Ok();
    return AlreadyExists(client_->UriOf(path_) + " exists");
  }

  const std::shared_ptr<const WebHdfsClient> client_;
  const std::string path_;
  const bool replaces_;
  const std::string aside_;
  std::string buffer_;
  bool created_ = false;
  uint64_t bytes_ = 0;
};

class WebHdfsStore final : public ObjectStore {
 public:
  explicit WebHdfsStore(std::shared_ptr<const WebHdfsClient> client) : client_(std::move(client)) {}

  Result<std::shared_ptr<const Object>> Open(const ObjectUri& uri) override {
    TRY_ASSIGN(HdfsStatus status, AskStatus(*client_, uri.path));
    if (status.folder)
      return InvalidArgument(uri.text() + " is a folder; name a file in it, or " + uri.text() +
                             "/ for all");
    return std::shared_ptr<const Object>(
        std::make_shared<HdfsObject>(client_, uri.path, std::move(status.info)));
  }

  // Folder by folder; links are not followed.
  Status List(const ObjectUri& prefix, const VisitObject& visit) override {
    std::deque<std::string> folders{ParentOf(prefix.path)};
    if (prefix.path.ends_with('/') && prefix.path.size() > 1)
      folders.front() = prefix.path.substr(0, prefix.path.size() - 1);
    while (!folders.empty()) {
      const std::string folder = std::move(folders.front());
      folders.pop_front();
      TRY(ListFolder(folder, prefix.path, visit, &folders));
    }
    return Status::Ok();
  }

  Result<std::unique_ptr<ObjectWriter>> Create(const ObjectUri& uri) override {
    if (uri.path.ends_with('/'))
      return InvalidArgument(uri.text() + ": expected a file, got a folder");
    return std::unique_ptr<ObjectWriter>(std::make_unique<HdfsWriter>(client_, uri.path));
  }

  Status CreateNew(const ObjectUri& uri, std::string_view bytes) override {
    HdfsWriter writer(client_, uri.path, false);
    TRY(writer.Append(bytes));
    return writer.Finish().status();
  }

  Status Remove(const ObjectUri& uri) override {
    const Status removed = client_->Call(uri.path, {.method = "DELETE", .op = "DELETE"}).status();
    return removed.code() == Code::kNotFound ? Status::Ok() : removed;
  }

 private:
  // By batches, since one answer with a million files would not be bounded.
  Status ListFolder(const std::string& folder, const std::string& prefix, const VisitObject& visit,
                    std::deque<std::string>* folders) {
    std::string after;
    for (;;) {
      TRY_ASSIGN(
          const json::object json,
          client_->CallForJson(
              folder, {.op = "LISTSTATUS_BATCH",
                       .query = after.empty() ? "" : "startAfter=" + net::PercentEncode(after),
                       .max_body = kMaxHdfsListing}));
      const json::object* const list = FindObject(json, "DirectoryListing");
      const json::object* const part =
          list == nullptr ? nullptr : FindObject(*list, "partialListing");
      const json::object* const statuses =
          part == nullptr ? nullptr : FindObject(*part, "FileStatuses");
      const json::value* const array =
          statuses == nullptr ? nullptr : statuses->if_contains("FileStatus");
      if (array == nullptr || !array->is_array())
        return DataLoss(client_->UriOf(folder) + ": the answer is no listing of WebHDFS");
      std::string last;
      for (const json::value& one : array->get_array()) {
        if (!one.is_object())
          return DataLoss(client_->UriOf(folder) + ": the answer is no listing of WebHDFS");
        TRY(VisitEntry(one.get_object(), folder, prefix, visit, folders, &last));
      }
      if (GetIntOr(*list, "remainingEntries", 0) == 0) return Status::Ok();
      if (last.empty() || last == after)
        return DataLoss(client_->UriOf(folder) + ": the listing does not go on");
      after = last;
    }
  }

  Status VisitEntry(const json::object& json, const std::string& folder, const std::string& prefix,
                    const VisitObject& visit, std::deque<std::string>* folders, std::string* last) {
    const std::string name = GetStringOr(json, "pathSuffix", "");
    if (name.find('/') != std::string::npos || name == "..")
      return DataLoss(client_->UriOf(folder) + ": the listing names a file elsewhere");
    const std::string path = name.empty() ? folder : Below(folder, name);
    *last = name;
    TRY_ASSIGN(const HdfsStatus status, StatusOf(json, client_->UriOf(path)));
    if (status.folder) {
      // Only folders that can hold what begins with the prefix.
      const std::string inside = path + "/";
      if (!inside.starts_with(prefix) && !prefix.starts_with(inside)) return Status::Ok();
      if (folders->size() == kMaxHdfsFolders)
        return ResourceExhausted(client_->UriOf(prefix) + ": there are too many folders below it");
      folders->push_back(path);
      return Status::Ok();
    }
    if (status.link || !path.starts_with(prefix)) return Status::Ok();
    return visit(status.info);
  }

  const std::shared_ptr<const WebHdfsClient> client_;
};

}  // namespace

WebHdfsSettings ReadWebHdfsSettings(const std::function<std::string(const char*)>& env) {
  const std::string user = env("HADOOP_USER_NAME");
  return {user.empty() ? env("USER") : user, env("HDFS_DELEGATION_TOKEN")};
}

std::unique_ptr<ObjectStore> MakeWebHdfsStore(WebHdfsSettings settings, const ObjectUri& place,
                                              std::shared_ptr<HttpTransport> transport) {
  return std::make_unique<WebHdfsStore>(
      std::make_shared<const WebHdfsClient>(std::move(settings), place, std::move(transport)));
}

}  // namespace shoal::data
