#include "rendezvous/transfer/output_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace shoal::rendezvous {
namespace {

constexpr size_t kHighWater = 1 << 20;

}  // namespace

Status OutputSource::Open() {
  TRY_ASSIGN(tree_, ListOutputTree(directory_));
  return Status::Ok();
}

void OutputSource::OnDisconnect() {
  sending_ = false;
  file_.Reset();
}

Status OutputSource::HandleMessage(const std::string& type, const json::object& message) {
  if (type == "outputs") return Offer(message);
  if (type == "failed") {
    return FailedPrecondition(GetStringOr(message, "text", "the other side did not say why"));
  }
  if (type == "stored") stored_ = true;
  return Status::Ok();
}

// Where the receiver stands.
Status OutputSource::Offer(const json::object& message) {
  TRY_ASSIGN(const std::string probe, GetString(message, "probe"));
  TRY_ASSIGN(const int64_t entries, GetInt(message, "entries"));
  TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
  TRY_ASSIGN(const bool stored, GetBool(message, "stored"));
  std::error_code error;
  const bool plain = probe.starts_with('.') && probe.find('/') == std::string::npos;
  if (plain && std::filesystem::exists(directory_.parent_path() / probe, error)) {
    sent_ = false;
    connection_.send("same", {});
    return Status::Ok();
  }
  if (stored) {
    sent_ = false;
    stored_ = true;
    return Status::Ok();
  }
  const auto count = static_cast<int64_t>(tree_.entries.size());
  if (entries < 0 || entries > count || bytes < 0 ||
      (bytes > 0 && (entries == count || bytes > tree_.entries[EntryIndex(entries)].size))) {
    return DataLoss("the other side has more of the outputs than there is");
  }
  next_ = EntryIndex(entries);
  skip_ = bytes;
  sending_ = sent_ = true;
  return Pump();
}

Status OutputSource::Pump() {
  while (sending_ && connection_.queued_bytes() < kHighWater)
    TRY(file_.valid() ? SendPiece() : SendNext());
  return Status::Ok();
}

Status OutputSource::SendNext() {
  if (next_ == tree_.entries.size()) {
    sending_ = false;
    connection_.send("whole", {{"entries", next_}});
    return Status::Ok();
  }
  const OutputEntry& entry = tree_.entries[next_++];
  connection_.send("entry", ToJson(entry));
  const int64_t skip = std::exchange(skip_, 0);
  if (entry.kind != OutputEntry::Kind::kFile || entry.size == skip) return Status::Ok();
  TRY_ASSIGN(file_, OpenFile(directory_ / entry.path, O_RDONLY | O_NOFOLLOW));
  at_ = skip;
  left_ = entry.size - skip;
  return Status::Ok();
}

Status OutputSource::SendPiece() {
  std::string piece(static_cast<size_t>(std::min<int64_t>(left_, kOutputFrame)), '\0');
  const ssize_t got = ::pread(file_.get(), piece.data(), piece.size(), at_);
  if (got <= 0) {
    return Aborted((directory_ / tree_.entries[next_ - 1].path).string() +
                   " became shorter while it was sent");
  }
  piece.resize(static_cast<size_t>(got));
  at_ += got;
  left_ -= got;
  if (left_ == 0) file_.Reset();
  connection_.send_binary(std::move(piece));
  return Status::Ok();
}

Status OutputSource::LeftOut() const {
  if (tree_.left_out.empty()) return Status::Ok();
  return InvalidArgument(
      "'" + tree_.left_out[0] + "'" +
      (tree_.left_out.size() > 1 ? " and " + std::to_string(tree_.left_out.size() - 1) + " others"
                                 : "") +
      ", which cannot be sent: files, directories and links that stay inside can");
}

}  // namespace shoal::rendezvous
