#include "ps/client/row_issuer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ps/client/client_core.h"
#include "ps/storage/optimizer_kernels.h"
#include "ps/transport/connection_poller.h"
#include "ps/wire/value_codec.h"

namespace shoal::ps {
namespace {

constexpr size_t kPartBytes = 96u << 10;  // of row values
constexpr size_t kMaxPartRows = 4 * kBatchRows;
constexpr uint64_t kRangeRows = 8192;  // a piece of a range pull

size_t PartRows(uint32_t dim) {
  return std::clamp<size_t>(kPartBytes / (dim * sizeof(float)), 1, kMaxPartRows);
}

FrameHeader HeadOf(const RowOperation& request, size_t rows) {
  FrameHeader head;
  head.type = request.type;
  head.table = request.table->id;
  head.dim = request.table->dim;
  head.rows = static_cast<uint32_t>(rows);
  const bool narrow =
      request.table->key_space == KeySpace::kDense && request.table->rows <= UINT32_MAX;
  head.key_bytes = narrow ? 4 : 8;
  if (request.type == FrameType::kCall) {
    head.body = static_cast<uint32_t>(request.argument.size());
    head.flags = static_cast<uint8_t>((request.deltas.empty() ? 0 : kCallHasDeltas) |
                                      (request.out.empty() ? 0 : kCallWantsRows));
  }
  if (HasDeltas(head)) head.values = request.table->wire.push;
  if (WantsRows(head)) head.answer = request.table->wire.pull;
  return head;
}

// The deltas of a part as they travel, in memory of this thread that the next call overwrites; and
// what they came to be where the caller asked for it.
void CodeDeltas(const RowOperation& request, const FrameHeader& head, RowChunk* part) {
  if (ValueBytes(head) == 0 || head.values == ValueType::kF32) return;
  thread_local std::string coded;
  coded.resize(ValueBytes(head));
  std::array<const float*, kBatchRows> from;
  std::array<float*, kBatchRows> sent;
  char* to = coded.data();
  for (size_t first = 0; first < part->n; first += kBatchRows) {
    const size_t n = std::min(kBatchRows, part->n - first);
    for (size_t i = 0; i < n; ++i) from[i] = part->deltas[part->At(first + i)];
    EncodeRows(head.values, from.data(), n, head.dim, to);
    if (!request.sent.empty()) {
      for (size_t i = 0; i < n; ++i) sent[i] = request.sent[part->At(first + i)];
      DecodeRows(head.values, to, n, head.dim, sent.data());
    }
    to += n * WireRowBytes(head.values, head.dim);
  }
  part->coded = coded.data();
}

RowChunk MakeRowChunk(const RowOperation& request) {
  RowChunk part;
  part.keys = request.keys.data();
  part.dim = request.table->dim;
  part.deltas = request.deltas;
  part.out = request.out;
  part.argument = request.argument;
  return part;
}

Status CheckWire(const Wire& wire) {
  if (wire.push <= ValueType::kInt8 && wire.pull <= ValueType::kInt8) return Status::Ok();
  return InvalidArgument("wire: rows travel as f32, bf16 or int8");
}

}  // namespace

Status RowIssuer::CheckRequest(const RowOperation& request) const {
  const TableRef& table = *request.table;
  if (table.dim == 0) return InvalidArgument("this table was not made by CreateTable");
  if (request.keys.empty()) return Status::Ok();
  TRY(CheckWire(table.wire));
  if (request.type != FrameType::kCall &&
      ((request.type != FrameType::kPull && request.deltas.empty()) ||
       (request.type != FrameType::kPush && request.out.empty()))) {
    return InvalidArgument("a push needs deltas, a pull needs a place for its rows");
  }
  if (table.key_space == KeySpace::kSparse) return Status::Ok();
  Key highest = 0;
  for (const Key key : request.keys) highest = std::max(highest, key);
  if (highest < table.rows) return Status::Ok();
  return InvalidArgument(
      fmt::format("key {} is beyond a dense table of {} rows", highest, table.rows));
}

Result<Ticket> RowIssuer::Issue(RowOperation request) {
  TRY(CheckRequest(request));
  const TimePoint deadline = RealClock::Get()->Now() + core_->options().reconnect_timeout;
  const Ticket ticket = core_->tickets().Open(std::move(request.done));
  Status bad;
  core_->gate().EnterIssue();
  if (core_->channels().size() == 1) {
    IssueOverOne(request, ticket.slot, deadline, &bad);
  } else {
    IssueOverMany(request, ticket.slot, deadline, &bad);
  }
  core_->gate().LeaveIssue();
  // Parts that went out hold the caller's memory, so an error is told by Wait, when all is over.
  core_->tickets().ChunkDone(ticket.slot, bad);
  return ticket;
}

void RowIssuer::IssueOverOne(const RowOperation& request, uint32_t ticket, TimePoint deadline,
                             Status* bad) {
  const size_t step = PartRows(request.table->dim);
  RowChunk part = MakeRowChunk(request);
  for (size_t first = 0; first < request.keys.size() && bad->ok(); first += step) {
    part.first = first;
    part.n = std::min(step, request.keys.size() - first);
    const FrameHeader head = HeadOf(request, part.n);
    CodeDeltas(request, head, &part);
    *bad = core_->channels()[0]->SendChunk(head, part, ticket, deadline);
  }
}

void RowIssuer::IssueOverMany(const RowOperation& request, uint32_t ticket, TimePoint deadline,
                              Status* bad) {
  // A counting sort of positions by channel; the scratch keeps its memory from call to call.
  const ShardRouter& router = core_->router();
  thread_local std::vector<uint32_t> order, start;
  const size_t n = request.keys.size(), channels = core_->channels().size();
  start.assign(channels + 1, 0);
  order.resize(n);
  for (const Key key : request.keys) ++start[router.ChannelOf(request.table->key_space, key) + 1];
  for (size_t channel = 0; channel < channels; ++channel) {
    start[channel + 1] += start[channel];
  }
  for (size_t i = 0; i < n; ++i) {
    order[start[router.ChannelOf(request.table->key_space, request.keys[i])]++] =
        static_cast<uint32_t>(i);
  }
  // Now start[c] is where channel c ends. Parts go out to the servers in turn, so that all work.
  const size_t step = PartRows(request.table->dim);
  RowChunk part = MakeRowChunk(request);
  for (size_t round = 0, left = 1; left > 0 && bad->ok(); ++round) {
    left = 0;
    for (size_t channel = 0; channel < channels && bad->ok(); ++channel) {
      const size_t begin = (channel == 0 ? 0 : start[channel - 1]) + round * step;
      if (begin >= start[channel]) continue;
      part.pick = order.data() + begin;
      part.n = std::min<size_t>(step, start[channel] - begin);
      left += start[channel] - begin - part.n;
      const FrameHeader head = HeadOf(request, part.n);
      CodeDeltas(request, head, &part);
      *bad = core_->channels()[channel]->SendChunk(head, part, ticket, deadline);
    }
  }
}

// Handles answers in this thread until the ticket is done or nothing comes.
void RowIssuer::PollFor(Ticket ticket, TimePoint deadline) {
  if (core_->tickets().Done(ticket)) return;
  thread_local std::vector<std::shared_ptr<Connection>>
      connections;  // keeps its memory from call to call
  for (const auto& channel : core_->channels()) connections.push_back(channel->connection());
  ConnectionPoller poller(core_->options().poll_for);
  for (uint32_t turn = 1; poller.PollOnce(connections) && !core_->tickets().Done(ticket); ++turn) {
    if (turn % 64 == 0 && RealClock::Get()->Now() >= deadline) break;
  }
  connections.clear();
}

Status RowIssuer::Wait(Ticket ticket, TimePoint deadline) {
  bool timed_out = false;
  PollFor(ticket, deadline);
  const Status status = core_->tickets().Wait(ticket, deadline, &timed_out);
  if (!timed_out) return status;
  std::string late;
  for (const auto& channel : core_->channels()) {
    if (channel->HasUnanswered(ticket.slot)) late += (late.empty() ? "" : ", ") + channel->Name();
  }
  return DeadlineExceeded("no answer in time from " + (late.empty() ? "the servers" : late));
}

// Returns when nothing more will be written to the request's memory: it is answered, or servers
// that are there and do not answer are given up as those are that are away for so long.
void RowIssuer::Abandon(Ticket ticket) {
  const Duration patience = core_->options().reconnect_timeout;
  if (Wait(ticket, RealClock::Get()->Now() + patience).code() != Code::kDeadlineExceeded) return;
  for (const auto& channel : core_->channels()) {
    if (!channel->HasUnanswered(ticket.slot)) continue;
    channel->Fail(Unavailable(fmt::format("{} has not answered a request for more than {}",
                                          channel->Name(), FormatDuration(patience))));
  }
  const Status ended = Wait(ticket, TimePoint::max());
}

Status RowIssuer::PullRange(const TableRef& table, uint64_t first, uint64_t count, Rows out,
                            TimePoint deadline) {
  if (table.key_space != KeySpace::kDense || count > table.rows || first > table.rows - count) {
    return OutOfRange(fmt::format("rows [{}, {}) of a table with {} rows", first, first + count,
                                  table.key_space == KeySpace::kDense ? table.rows : 0));
  }
  struct Piece {
    std::vector<Key> keys;
    std::vector<float*> rows;
    Ticket ticket;
  };
  // Two pieces are under way at a time. Keys and row pointers live until theirs is over, whatever
  // happens, so a timeout waits for the channel to be done with them, or ends it.
  std::vector<Piece> pieces((count + kRangeRows - 1) / kRangeRows);
  Status status;
  size_t waited = 0;
  const auto finish = [&] {
    Piece& piece = pieces[waited++];
    const Status done = Wait(piece.ticket, status.ok() ? deadline : TimePoint{});
    if (status.ok()) status = done;
    if (done.code() == Code::kDeadlineExceeded) Abandon(piece.ticket);
    piece = {};
  };
  size_t issued = 0;
  for (; issued < pieces.size() && status.ok(); ++issued) {
    Piece& piece = pieces[issued];
    const uint64_t begin = issued * kRangeRows;
    for (uint64_t i = begin; i < std::min(count, begin + kRangeRows); ++i) {
      piece.keys.push_back(first + i);
      piece.rows.push_back(out[i]);
    }
    const auto ticket =
        Issue({FrameType::kPull, &table, piece.keys, {}, Rows(piece.rows.data()), {}, {}, {}});
    status = ticket.status();
    if (!ticket.ok()) break;
    piece.ticket = *ticket;
    if (issued - waited >= 1) finish();
  }
  while (waited < issued) finish();
  return status;
}

Status RowIssuer::Flush(TimePoint deadline) {
  for (uint64_t taken = 0;; taken = core_->redirector().received()) {
    for (auto& channel : core_->channels()) TRY(channel->Flush(deadline));
    if (!core_->redirector().AwaitAll(deadline)) {
      return DeadlineExceeded("requests whose rows have moved were not answered in time");
    }
    // Redirected requests may be unanswered at their new server.
    if (core_->redirector().received() == taken) return Status::Ok();
  }
}

}  // namespace shoal::ps
