#include "controller/files/log_delivery.h"

namespace shoal::controller {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

}  // namespace

Status LogDelivery::Begin() {
  begun_ = true;
  if (!wanted()) return Status::Ok();
  TRY_ASSIGN(const std::vector<LogInfo> logs, store_.List());
  for (const LogInfo& log : logs) offsets_[log.key] = log.bytes;
  return Status::Ok();
}

void LogDelivery::Deliver(const LogKey& key, int64_t offset, std::string_view bytes) {
  offsets_[key] = offset + static_cast<int64_t>(bytes.size());
  on_log_(key, offset, bytes);
}

Status LogDelivery::DeliverRest() {
  if (!begun_ || !wanted() || !rest_) return Status::Ok();
  TRY_ASSIGN(const std::vector<LogInfo> logs, store_.List());
  Status first;
  for (const LogInfo& log : logs) {
    if (const Status shown = DeliverRest(log); first.ok()) first = shown;
  }
  return first;
}

Status LogDelivery::DeliverRest(const LogInfo& log) {
  while (offsets_[log.key] < log.bytes) {
    const int64_t offset = offsets_[log.key];
    TRY_ASSIGN(const std::string bytes, store_.Read(log.key, offset, kPiece));
    if (bytes.empty()) return Status::Ok();  // the file was truncated
    Deliver(log.key, offset, bytes);
  }
  return Status::Ok();
}

}  // namespace shoal::controller
