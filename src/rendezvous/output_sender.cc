#include "rendezvous/output_sender.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "rendezvous/output_tree.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHighWater = 1 << 20;

class Sender final : public OutputSender {
 public:
  Sender(net::Loop* loop, OutputSenderOptions options, std::function<void(const Status&)> on_end)
      : loop_(loop), options_(std::move(options)), on_end_(std::move(on_end)) {}

  ~Sender() override { loop_->Cancel(end_timer_); }

  void Begin() {
    auto tree = ListOutputTree(options_.directory);
    if (!tree.ok()) return End(tree.status());
    tree_ = std::move(*tree);
    LinkOptions link;
    link.find = options_.find;
    link.token = options_.token;
    link.give_up_after = options_.give_up_after;
    LinkCallbacks calls;
    calls.hello = [this] {
      return json::object{{"kind", "outputs"},
                          {"role", options_.key.role},
                          {"index", options_.key.index},
                          {"attempt", options_.key.attempt},
                          {"upload", upload_}};
    };
    calls.heartbeat = [] { return json::object(); };
    calls.on_up = [] {};
    calls.on_message = [this](const std::string& type, const json::object& message) {
      const Status status = Said(type, message);
      if (!status.ok()) End(status);
    };
    calls.on_binary = [](std::string_view) {};
    calls.on_drain = [this] { Pump(); };
    calls.on_down = [this](const Status& why) {
      LogWarning("lost the coordinator while outputs were sent: {}", why.message());
      sending_ = false;
      file_.Reset();
    };
    calls.on_given_up = [this](const Status& why) {
      End(why.ok() ? Unavailable("the coordinator has ended") : why);
    };
    link_ = Link::Start(loop_, std::move(link), std::move(calls));
  }

 private:
  Status Said(const std::string& type, const json::object& message) {
    if (end_timer_ != 0) return Status::Ok();
    if (type == "outputs") return Offer(message);
    if (type == "failed") {
      return FailedPrecondition(GetStringOr(message, "text", "the coordinator did not say why"));
    }
    if (type != "stored") return Status::Ok();
    // Only what was sent from here is removed: else it may be the only copy.
    std::error_code ignored;
    if (sent_) fs::remove_all(options_.directory, ignored);
    End(LeftOut());
    return Status::Ok();
  }

  // Where the coordinator stands.
  Status Offer(const json::object& message) {
    TRY_ASSIGN(const std::string probe, GetString(message, "probe"));
    TRY_ASSIGN(const int64_t entries, GetInt(message, "entries"));
    TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
    TRY_ASSIGN(const bool stored, GetBool(message, "stored"));
    std::error_code error;
    const bool plain = probe.starts_with('.') && probe.find('/') == std::string::npos;
    if (plain && fs::exists(options_.directory.parent_path() / probe, error)) {
      sent_ = false;
      link_->Send("same", {});
      return Status::Ok();
    }
    if (stored) {
      End(LeftOut());
      return Status::Ok();
    }
    const auto count = static_cast<int64_t>(tree_.entries.size());
    if (entries < 0 || entries > count || bytes < 0 ||
        (bytes > 0 && (entries == count || bytes > tree_.entries[Place(entries)].size))) {
      return DataLoss("the coordinator has more of the outputs than there is");
    }
    next_ = Place(entries);
    skip_ = bytes;
    sending_ = sent_ = true;
    Pump();
    return Status::Ok();
  }

  static size_t Place(int64_t number) { return static_cast<size_t>(number); }

  void Pump() {
    if (!sending_ || end_timer_ != 0) return;
    while (link_->queued_bytes() < kHighWater) {
      const Status status = file_.valid() ? SendPiece() : SendNext();
      if (!status.ok()) return End(status);
      if (!sending_) return;
    }
  }

  Status SendNext() {
    if (next_ == tree_.entries.size()) {
      sending_ = false;
      link_->Send("whole", {{"entries", next_}});
      return Status::Ok();
    }
    const OutputEntry& entry = tree_.entries[next_++];
    link_->Send("entry", ToJson(entry));
    const int64_t skip = std::exchange(skip_, 0);
    if (entry.kind != OutputEntry::Kind::kFile || entry.size == skip) return Status::Ok();
    TRY_ASSIGN(file_, OpenFile(options_.directory / entry.path, O_RDONLY | O_NOFOLLOW));
    at_ = skip;
    left_ = entry.size - skip;
    return Status::Ok();
  }

  Status SendPiece() {
    std::string piece(static_cast<size_t>(std::min<int64_t>(left_, kOutputFrame)), '\0');
    const ssize_t got = ::pread(file_.get(), piece.data(), piece.size(), at_);
    if (got <= 0) {
      return Aborted((options_.directory / tree_.entries[next_ - 1].path).string() +
                     " became shorter while it was sent");
    }
    piece.resize(static_cast<size_t>(got));
    at_ += got;
    left_ -= got;
    if (left_ == 0) file_.Reset();
    link_->SendBinary(std::move(piece));
    return Status::Ok();
  }

  Status LeftOut() const {
    if (tree_.left_out.empty()) return Status::Ok();
    return InvalidArgument(
        "'" + tree_.left_out[0] + "'" +
        (tree_.left_out.size() > 1 ? " and " + std::to_string(tree_.left_out.size() - 1) + " others"
                                   : "") +
        ", which cannot be sent: files, directories and links that stay inside can");
  }

  void End(const Status& status) {
    if (end_timer_ != 0) return;
    end_timer_ = loop_->After(Duration::zero(), [this, status] {
      const auto on_end = on_end_;
      on_end(status);
    });
  }

  // Constant after construction.
  net::Loop* const loop_;
  const OutputSenderOptions options_;
  const std::function<void(const Status&)> on_end_;
  const std::string upload_ = RandomHex(16);

  OutputTree tree_;
  size_t next_ = 0;   // entry
  int64_t skip_ = 0;  // bytes of it that the coordinator has
  UniqueFd file_;     // of the entry before, while its content is sent
  int64_t at_ = 0;
  int64_t left_ = 0;
  bool sending_ = false;  // on this connection
  bool sent_ = false;     // anything was sent
  net::Loop::Id end_timer_ = 0;
  std::unique_ptr<Link> link_;
};

}  // namespace

std::unique_ptr<OutputSender> OutputSender::Start(net::Loop* loop, OutputSenderOptions options,
                                                  std::function<void(const Status&)> on_end) {
  auto sender = std::make_unique<Sender>(loop, std::move(options), std::move(on_end));
  sender->Begin();
  return sender;
}

}  // namespace shoal::rendezvous
