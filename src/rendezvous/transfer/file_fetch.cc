#include "rendezvous/transfer/file_fetch.h"

#include <memory>
#include <optional>
#include <utility>

#include "host/files/manifest.h"
#include "net/event_loop.h"
#include "rendezvous/transfer/fetch_queue.h"

namespace shoal::rendezvous {
namespace {

constexpr int kFruitless = 3;

// A FetchQueue over a connection of its own, until everything is here.
class BlockingFetch {
 public:
  BlockingFetch(std::vector<FetchQueue::Target> targets, FetchQueue::Sink sink)
      : queue_(std::move(targets), std::move(sink),
               [this](const std::string& request, const json::object& fields) {
                 connection_->Send(request, fields);
               }) {}

  Status Run(const FetchOptions& options) {
    if (queue_.done()) return Status::Ok();
    CoordinatorConnectionOptions connection_options;
    connection_options.find = options.find;
    connection_options.token = options.token;
    connection_options.give_up_after = options.give_up_after;
    CoordinatorConnectionCallbacks calls;
    calls.hello = [] { return json::object{{"kind", "files"}}; };
    calls.heartbeat = [] { return json::object(); };
    calls.on_up = [this] { queue_.Begin(); };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      if (!done_) Check(queue_.HandleMessage(type, message));
    };
    calls.on_binary = [this](std::string_view bytes) {
      if (!done_) Check(queue_.HandleBytes(bytes));
    };
    calls.on_drain = [] {};
    calls.on_down = [this](const Status& why) {
      fruitless_ = queue_.received_any() ? 0 : fruitless_ + 1;
      if (fruitless_ >= kFruitless) Check(why);
    };
    calls.on_given_up = [this](const Status& why) {
      Check(why.ok() ? Unavailable("the coordinator has ended") : why);
    };
    connection_ =
        CoordinatorConnection::Start(&loop_, std::move(connection_options), std::move(calls));
    loop_.Run();
    connection_.reset();
    return result_;
  }

 private:
  void Check(const Status& status) {
    if (done_ || (status.ok() && !queue_.done())) return;
    done_ = true;
    result_ = status;
    loop_.Stop();
  }

  FetchQueue queue_;
  net::Loop loop_;
  std::unique_ptr<CoordinatorConnection> connection_;
  int fruitless_ = 0;  // connections in a row that were lost before any byte came
  bool done_ = false;
  Status result_;
};

}  // namespace

Result<std::string> FetchManifest(const FetchOptions& options) {
  std::string text;
  FetchQueue::Sink sink;
  sink.on_begin = [&](size_t) {
    text.clear();
    return Status::Ok();
  };
  sink.on_bytes = [&](size_t, std::string_view bytes) {
    text.append(bytes);
    return Status::Ok();
  };
  sink.on_whole = [](size_t) { return Status::Ok(); };
  TRY(BlockingFetch({{"get_manifest", {}, host::kMaxManifestBytes, false}}, std::move(sink))
          .Run(options));
  return text;
}

Status FetchBlobs(const FetchOptions& options, const std::vector<host::Blob>& blobs,
                  host::BlobCache* cache) {
  std::vector<FetchQueue::Target> targets;
  for (const host::Blob& blob : blobs)
    targets.push_back({"get_blob", {{"sha256", blob.sha256}}, blob.size, true});
  std::optional<host::BlobCache::Writer> writer;
  FetchQueue::Sink sink;
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
  return BlockingFetch(std::move(targets), std::move(sink)).Run(options);
}

}  // namespace shoal::rendezvous
