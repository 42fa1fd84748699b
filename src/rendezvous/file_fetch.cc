#include "rendezvous/file_fetch.h"

#include <memory>
#include <optional>
#include <utility>

#include "host/manifest.h"
#include "net/loop.h"

namespace shoal::rendezvous {
namespace {

constexpr int kFruitless = 3;
constexpr size_t kWindow = 32;  // requests under way: small files do not wait for each other's way

// One thing after another over one line, in the order of the requests.
class Fetch {
 public:
  struct Target {
    std::string request;
    json::object fields;
    int64_t most = 0;    // bytes
    bool exact = false;  // exactly `most`
  };
  // Calls for each target in order: on_begin (again after a lost connection), on_bytes …, on_whole.
  struct Sink {
    std::function<Status(size_t)> on_begin;
    std::function<Status(size_t, std::string_view)> on_bytes;
    std::function<Status(size_t)> on_whole;
  };

  Fetch(std::vector<Target> targets, Sink sink)
      : targets_(std::move(targets)), sink_(std::move(sink)) {}

  Status Run(const FetchOptions& options) {
    if (targets_.empty()) return Status::Ok();
    LinkOptions link;
    link.find = options.find;
    link.token = options.token;
    link.give_up_after = options.give_up_after;
    LinkCallbacks calls;
    calls.hello = [] { return json::object{{"kind", "files"}}; };
    calls.heartbeat = [] { return json::object(); };
    calls.on_up = [this] {
      asked_ = next_;
      left_.reset();
      Ask();
    };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      Check(Said(type, message));
    };
    calls.on_binary = [this](std::string_view bytes) { Check(Bytes(bytes)); };
    calls.on_drain = [] {};
    calls.on_down = [this](const Status& why) {
      fruitless_ = std::exchange(came_, false) ? 0 : fruitless_ + 1;
      if (fruitless_ >= kFruitless) Check(why);
    };
    calls.on_given_up = [this](const Status& why) {
      Check(why.ok() ? Unavailable("the coordinator has ended") : why);
    };
    link_ = Link::Start(&loop_, std::move(link), std::move(calls));
    loop_.Run();
    link_.reset();
    return result_;
  }

 private:
  void Check(const Status& status) {
    if (done_ || (status.ok() && next_ < targets_.size())) return;
    done_ = true;
    result_ = status;
    loop_.Stop();
  }

  void Ask() {
    for (; asked_ < targets_.size() && asked_ < next_ + kWindow; ++asked_) {
      link_->Send(targets_[asked_].request, targets_[asked_].fields);
    }
  }

  Status Said(const std::string& type, const json::object& message) {
    if (done_ || (type != "content" && type != "missing")) return Status::Ok();
    if (type == "missing")
      return NotFound(GetStringOr(message, "text", "the coordinator has not got a file"));
    if (left_ || next_ >= asked_) return DataLoss("the coordinator sent what nobody asked for");
    TRY_ASSIGN(const int64_t size, GetInt(message, "size"));
    const Target& target = targets_[next_];
    if (size < 0 || size > target.most || (target.exact && size != target.most))
      return ResourceExhausted("the coordinator offered " + std::to_string(size) +
                               " bytes, expected " + (target.exact ? "" : "at most ") +
                               std::to_string(target.most));
    left_ = size;
    TRY(sink_.on_begin(next_));
    return Advance();
  }

  Status Bytes(std::string_view bytes) {
    if (done_) return Status::Ok();
    if (!left_ || static_cast<int64_t>(bytes.size()) > *left_)
      return DataLoss("the coordinator sent more than it had offered");
    came_ = true;
    TRY(sink_.on_bytes(next_, bytes));
    *left_ -= static_cast<int64_t>(bytes.size());
    return Advance();
  }

  Status Advance() {
    if (*left_ > 0) return Status::Ok();
    TRY(sink_.on_whole(next_));
    left_.reset();
    ++next_;
    Ask();
    return Status::Ok();
  }

  const std::vector<Target> targets_;
  const Sink sink_;
  net::Loop loop_;
  std::unique_ptr<Link> link_;
  size_t next_ = 0;              // what is coming
  size_t asked_ = 0;             // up to here, on this connection
  std::optional<int64_t> left_;  // of what is coming; nothing: not offered yet
  bool came_ = false;            // something, on this connection
  int fruitless_ = 0;            // connections in a row that were lost before anything came
  bool done_ = false;
  Status result_;
};

}  // namespace

Result<std::string> FetchManifest(const FetchOptions& options) {
  std::string text;
  Fetch::Sink sink;
  sink.on_begin = [&](size_t) {
    text.clear();
    return Status::Ok();
  };
  sink.on_bytes = [&](size_t, std::string_view bytes) {
    text.append(bytes);
    return Status::Ok();
  };
  sink.on_whole = [](size_t) { return Status::Ok(); };
  TRY(Fetch({{"get_manifest", {}, host::kMaxManifestBytes, false}}, std::move(sink)).Run(options));
  return text;
}

Status FetchBlobs(const FetchOptions& options, const std::vector<host::Blob>& blobs,
                  host::BlobCache* cache) {
  std::vector<Fetch::Target> targets;
  for (const host::Blob& blob : blobs)
    targets.push_back({"get_blob", {{"sha256", blob.sha256}}, blob.size, true});
  std::optional<host::BlobCache::Writer> writer;
  Fetch::Sink sink;
  sink.on_begin = [&](size_t) -> Status {
    writer.reset();
    TRY_ASSIGN(host::BlobCache::Writer begun, cache->Begin());
    writer.emplace(std::move(begun));
    return Status::Ok();
  };
  sink.on_bytes = [&](size_t, std::string_view bytes) { return writer->Write(bytes); };
  sink.on_whole = [&](size_t number) -> Status {
    TRY_ASSIGN(const host::Blob stored, cache->Commit(std::move(*writer), &blobs[number]));
    writer.reset();
    return Status::Ok();
  };
  return Fetch(std::move(targets), std::move(sink)).Run(options);
}

}  // namespace shoal::rendezvous
