#include "ps/lane/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr size_t kReplacedRemembered = 1024;
// For an observer that has lost its connection to come back and send again what was not answered.
constexpr Duration kObserversKept = std::chrono::hours(1);

bool WasMoved(const Session& session, uint64_t seq) {
  return std::binary_search(session.moved.begin(), session.moved.end(), seq);
}

}  // namespace

Lane::Lane(const Partition* partition, Owner self, const Functions* functions)
    : partition_(partition), self_(self), functions_(functions), states_(partition->shards()) {
  for (uint32_t shard = 0; shard < partition->shards(); ++shard) {
    if (partition->OwnerOf(shard) == self) states_[shard] = ShardState::kHere;
  }
}

Lane::Guard::~Guard() {
  std::vector<std::shared_ptr<ServerConnection>> to_flush;
  if (!lane_.to_flush_.empty()) to_flush.swap(lane_.to_flush_);
  lock_.unlock();
  if (sink_ != nullptr) {
    sink_->insert(sink_->end(), to_flush.begin(), to_flush.end());
    return;
  }
  for (const auto& peer : to_flush) peer->FlushReplies();
}

Result<Session*> Lane::Join(const Hello& hello, const std::shared_ptr<ServerConnection>& peer) {
  if (replaced_.contains(hello.session)) {
    return FailedPrecondition(fmt::format(
        "worker {} has been replaced by a newer one or was reported dead", hello.client));
  }
  if (hello.client >= 0) {
    const auto current = current_.find(hello.client);
    if (current != current_.end() && current->second != hello.session) {
      Session& old = sessions_[current->second];
      if (auto old_peer = old.peer.lock()) {
        old_peer->CloseAfterFlush(Aborted(fmt::format("worker {} joined anew", hello.client)));
        QueueFlush(std::move(old_peer));
      }
      if (replaced_.size() >= kReplacedRemembered) replaced_.erase(replaced_.begin());
      replaced_.insert(old.id);
      sessions_.erase(old.id);
    }
    current_[hello.client] = hello.session;
  }
  Session& session = sessions_[hello.session];
  if (session.id == 0) {
    session.id = hello.session;
    session.client = hello.client;
    session.last_seq = hello.first_seq - 1;
  } else if (auto old_peer = session.peer.lock(); old_peer != nullptr && old_peer != peer) {
    old_peer->CloseAfterFlush(Aborted("the client connected again"));
    QueueFlush(std::move(old_peer));
  }
  // Answered requests do not come again; a backup knows only of requests that change rows.
  session.last_seq = std::max(session.last_seq, hello.first_seq - 1);
  session.peer = peer;
  session.key_cache.Clear();
  session.left = session.dead = false;
  session.lost = {};
  return &session;
}

void Lane::ForgetObservers(TimePoint now) {
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    Session& session = at->second;
    const bool gone = session.client < 0 && session.peer.expired();
    if (gone && session.lost == TimePoint{}) session.lost = now;
    const bool forgotten = gone && (session.left || now - session.lost >= kObserversKept);
    at = forgotten ? sessions_.erase(at) : std::next(at);
  }
}

Session* Lane::FindSession(uint64_t id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

Status Lane::CreateTable(const TableSpec& spec) {
  TRY(Validate(spec));
  const uint32_t id = TableIdOf(spec.name);
  if (const auto found = tables_.find(id); found != tables_.end()) {
    const TableSpec& there = found->second->spec();
    if (there == spec) return Status::Ok();
    if (there.name != spec.name) {
      return InvalidArgument(fmt::format("table '{}' has the same id as table '{}': rename one",
                                         spec.name, there.name));
    }
    return AlreadyExists(fmt::format("table '{}' is there with another specification: {}",
                                     spec.name, SpecDifference(there, spec)));
  }
  const RowFunction* optimizer = nullptr;
  TRY(FindOptimizer(spec, &optimizer));
  TRY(CheckMemory(spec));
  auto table = std::make_unique<Table>(
      spec, Table::Place{partition_, &states_, optimizer, cut_interval_.number}, &arena_);
  // Its maker may not have sent its marker yet: the snapshot holds it, as it is now.
  if (snapshot_.id >= 0) {
    table->BeginSnapshot();
    if (snapshot_.frozen) table->Freeze();
  }
  tables_.emplace(id, std::move(table));
  return Status::Ok();
}

// All dense rows, although the machine gives memory only to those that are touched: a checkpoint, a
// move of shards and training touch them all.
Status Lane::CheckMemory(const TableSpec& spec) const {
  if (spec.key_space != KeySpace::kDense) return Status::Ok();
  uint64_t rows = 0;
  for (uint32_t shard = 0; shard < partition_->shards(); ++shard) {
    if (states_[shard] != ShardState::kElsewhere) rows += partition_->DenseSlots(spec.rows, shard);
  }
  const uint64_t row_bytes = RowLayout::Of(spec.dim, spec.optimizer).floats * sizeof(float);
  if (rows <= memory_limit_ / row_bytes) return Status::Ok();
  constexpr double kGibi = 1024.0 * 1024 * 1024;
  return ResourceExhausted(fmt::format(
      "table '{}': {} rows of {} floats, got {} of them on this thread of server {}: {} bytes each "
      "with the optimizer's state, together {:.1f} GiB, expected at most {:.1f} GiB; use fewer "
      "rows, more servers, or a sparse table, whose rows come into being with the first push",
      spec.name, spec.rows, spec.dim, rows, self_.server, row_bytes,
      static_cast<double>(rows) * static_cast<double>(row_bytes) / kGibi,
      static_cast<double>(memory_limit_) / kGibi));
}

Table* Lane::FindTable(uint32_t id) {
  const auto found = tables_.find(id);
  return found == tables_.end() ? nullptr : found->second.get();
}

Status Lane::CheckSequence(const Session& session, uint64_t seq, bool* order) const {
  *order = seq > session.last_seq + 1 || seq == 0;
  if (!*order) return Status::Ok();
  return InvalidArgument(fmt::format("client {} sent request {} after {}, expected no gap",
                                     session.client, seq, session.last_seq));
}

WriteMode Lane::ModeOf(const Session& session) const {
  if (snapshot_.id < 0) return WriteMode::kPlain;
  const bool after =
      snapshot_.frozen || session.marked == snapshot_.id ||
      (snapshot_.begun && session.client >= 0 && !snapshot_.required.contains(session.id));
  return after ? WriteMode::kLiveOnly : WriteMode::kBoth;
}

Status Lane::FindOptimizer(const TableSpec& spec, const RowFunction** function) const {
  if (spec.optimizer.kind != OptimizerKind::kFunction) return Status::Ok();
  *function = functions_ == nullptr ? nullptr : functions_->Find(spec.optimizer.function);
  if (*function != nullptr) return Status::Ok();
  return NotFound(
      fmt::format("table '{}': this server has no function '{}': add it to "
                  "ServerOptions::functions",
                  spec.name, spec.optimizer.function));
}

Status Lane::FindCalled(const FrameHeader& head, RowUpdate* change) const {
  if (head.type != FrameType::kCall) return Status::Ok();
  ByteReader reader(change->argument);
  std::string_view name;
  TRY(reader.GetString(&name, kMaxNameBytes).With("a call's argument"));
  change->argument.remove_prefix(change->argument.size() - reader.remaining());
  change->function = functions_ == nullptr ? nullptr : functions_->Find(name);
  if (change->function != nullptr) return Status::Ok();
  return NotFound(
      fmt::format("this server has no function '{}': add it to ServerOptions::functions", name));
}

Status Lane::CheckRows(const Table& table, const FrameHeader& head, const RowRequest& request) {
  if (table.spec().dim != head.dim) {
    return InvalidArgument(fmt::format("table '{}': rows of {} floats, expected {}",
                                       table.spec().name, head.dim, table.spec().dim));
  }
  if (table.spec().optimizer.kind == OptimizerKind::kCombine &&
      ((HasDeltas(head) && head.values != ValueType::kF32) ||
       (WantsRows(head) && head.answer != ValueType::kF32))) {
    return InvalidArgument(fmt::format(
        "table '{}': rows of bf16 or int8, expected f32 with combine, whose last float counts",
        table.spec().name));
  }
  KeyBatch batch;
  for (size_t first = 0; first < head.rows; first += kBatchRows) {
    request.FillKeys(first, std::min<size_t>(kBatchRows, head.rows - first), &batch);
    const std::span keys(batch.keys.data(), batch.n);
    TRY(table.Check(keys));
    if (in_transit_ > 0 && InTransit(table, batch)) {
      return FailedPrecondition(
          fmt::format("table '{}': rows are on their way", table.spec().name));
    }
    hot_keys.Sample(head.table, keys);
  }
  return Status::Ok();
}

Status Lane::Run(Table* table, const FrameHeader& head, RowRequest* request,
                 const RowUpdate& change, std::optional<WriteMode> write) {
  KeyBatch batch;
  const bool answer = WantsRows(head);
  for (size_t first = 0; first < head.rows; first += request->step()) {
    request->Fill(first, std::min<size_t>(request->step(), head.rows - first), &batch);
    if (write.has_value()) {
      TRY(table->Push(batch, answer, *write, change));
    } else if (answer) {
      table->Pull(batch);
    }
    if (answer) request->PutAnswer(first, batch);
  }
  return Status::Ok();
}

void Lane::Count(const FrameHeader& head, bool duplicate) {
  counters.requests += 1;
  counters.duplicates += Writes(head) && duplicate;
  if (HasDeltas(head) && !duplicate) {
    counters.rows_pushed += head.rows;
    counters.bytes_pushed += ValueBytes(head);
  }
  if (WantsRows(head)) {
    counters.rows_pulled += head.rows;
    counters.bytes_pulled += AnswerBytes(head);
  }
}

ServerReport Lane::Describe() const {
  ServerReport report;
  for (const auto& [id, table] : tables_) {
    report.tables.push_back({table->spec(), table->stored_rows(), table->bytes(),
                             table->rows_pushed, table->rows_pulled});
  }
  for (const HotKeys::Entry& entry : hot_keys.Top()) {
    const auto table = tables_.find(entry.table);
    if (table == tables_.end()) continue;
    report.hot_keys.push_back({table->second->spec().name, entry.key,
                               (entry.count - entry.error) * HotKeys::kSampleInterval, 0});
  }
  report.hot_samples = hot_keys.samples() * HotKeys::kSampleInterval;
  report.counters = counters;
  return report;
}

Status Lane::RowOperation(Session* session, const FrameHeader& head, const RowSource& source,
                          bool* order) {
  refusal_ = 0;
  TRY(CheckSequence(*session, head.id, order));
  // Before anything can refuse it: later requests may mean these keys by their digest.
  auto request = RowRequest::Open(head, source, &session->key_cache, &scratch_);
  *order = !request.ok();
  TRY(request.status());
  const bool duplicate = head.id <= session->last_seq;
  if (!duplicate) session->last_seq = head.id;  // a refused request has had its answer, too
  Table* table = FindTable(head.table);
  if (table == nullptr) return NotFound("there is no such table: CreateTable comes first");
  RowUpdate change{nullptr, request->argument()};
  TRY(FindCalled(head, &change));
  const Status fits = CheckRows(*table, head, *request);
  if (fits.code() == Code::kFailedPrecondition) {
    return RefuseMoved(session, head, duplicate, fits);
  }
  TRY(fits);
  if (duplicate && WasMoved(*session, head.id)) {
    return RefuseMoved(session, head, duplicate, FailedPrecondition("its rows had moved"));
  }
  std::optional<WriteMode> write;
  if (Writes(head) && !duplicate) {
    write = ModeOf(*session);
    TRY(LogRows(*session, head, source, *request));
  }
  TRY(Run(table, head, &*request, change, write));
  if (departure_.has_value() && write.has_value()) RecordDirty(*table, head, *request);
  Count(head, duplicate);
  if (HasDeltas(head) && !duplicate) table->rows_pushed += head.rows;
  if (WantsRows(head)) table->rows_pulled += head.rows;
  return Status::Ok();
}

Result<bool> Lane::AcceptMarker(Session* session, const FrameHeader& head) {
  bool order = false;
  TRY(CheckSequence(*session, head.id, &order));
  if (head.id <= session->last_seq) return false;
  session->last_seq = head.id;
  return true;
}

Status Lane::Marker(Session* session, const FrameHeader& head) {
  TRY_ASSIGN(const bool news, AcceptMarker(session, head));
  if (!news) return Status::Ok();
  const auto id = static_cast<int64_t>(head.argument);
  // Of a checkpoint that was given up.
  if (id < no_cut_below_ || id < snapshot_.id) return Status::Ok();
  if (snapshot_.id != id) {
    EndCheckpoint(-1, Aborted("a later checkpoint began"));
    OpenSnapshot(id);
  }
  session->marked = id;
  FreezeIfComplete();
  return Status::Ok();
}

Status Lane::Settled(Session* session, const FrameHeader& head) {
  TRY_ASSIGN(const bool news, AcceptMarker(session, head));
  if (!news) return Status::Ok();
  session->settled = static_cast<int64_t>(head.argument);
  if (snapshot_.id == session->settled && (head.flags & kSettledLate) != 0) snapshot_.torn = true;
  FreezeIfComplete();
  return Status::Ok();
}

void Lane::Leave(Session* session) {
  session->left = true;
  FreezeIfComplete();
}

void Lane::OpenSnapshot(int64_t id) {
  snapshot_ = {};
  snapshot_.id = id;
  snapshot_.shards.resize((states_.size() + 7) / 8);
  for (size_t shard = 0; shard < states_.size(); ++shard) {
    if (states_[shard] == ShardState::kElsewhere || states_[shard] == ShardState::kArriving)
      continue;
    snapshot_.shards[shard / 8] = static_cast<char>(snapshot_.shards[shard / 8] | 1 << shard % 8);
  }
  snapshot_.empty =
      std::all_of(snapshot_.shards.begin(), snapshot_.shards.end(), [](char c) { return c == 0; });
  for (auto& [table_id, table] : tables_) table->BeginSnapshot();
}

void Lane::BeginCheckpoint(int64_t id, std::set<uint64_t> required, bool settles, Answer frozen) {
  if (id < snapshot_.id) return frozen(Aborted("a later checkpoint began"), {});
  if (id < no_cut_below_) {
    return frozen(
        Aborted("its markers were sent to an earlier primary, or its beginning came too late"), {});
  }
  if (snapshot_.id != id) {
    EndCheckpoint(-1, Aborted("a later checkpoint began"));
    OpenSnapshot(id);
  }
  snapshot_.begun = true;
  snapshot_.settles = settles;
  snapshot_.required = std::move(required);
  snapshot_.on_frozen = std::move(frozen);
  FreezeIfComplete();
}

// Whether the cut still waits for it.
bool Lane::IsMissingMarker(uint64_t id) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return !snapshot_.empty;
  const Session& session = found->second;
  if (session.left) return false;
  return session.marked != snapshot_.id || (snapshot_.settles && session.settled != snapshot_.id);
}

void Lane::FreezeIfComplete() {
  if (snapshot_.id < 0 || !snapshot_.begun || snapshot_.frozen) return;
  for (const uint64_t id : snapshot_.required) {
    if (IsMissingMarker(id)) return;
  }
  snapshot_.frozen = true;
  for (auto& [id, table] : tables_) table->Freeze();
  if (snapshot_.on_frozen != nullptr) {
    snapshot_.on_frozen(Status::Ok(), snapshot_.torn ? std::string() : snapshot_.shards);
  }
  snapshot_.on_frozen = nullptr;
}

void Lane::EndCheckpoint(int64_t id, const Status& why) {
  if (snapshot_.id < 0 || (id >= 0 && id != snapshot_.id)) return;
  if (snapshot_.on_frozen != nullptr) snapshot_.on_frozen(why, {});
  for (auto& [table_id, table] : tables_) table->EndSnapshot();
  snapshot_ = {};
  NextCutInterval();
}

// Pushes behind the cut are already marked with the next interval. When the byte of its number is
// full, a new generation begins, and the next checkpoint is whole.
void Lane::NextCutInterval() {
  if (cut_interval_.number == 0) return;
  const bool full = cut_interval_.number >= UINT8_MAX - 1;
  cut_interval_ =
      full ? CutInterval{cut_interval_.generation + 1, 1}
           : CutInterval{cut_interval_.generation, static_cast<uint8_t>(cut_interval_.number + 1)};
  for (auto& [table_id, table] : tables_) {
    if (full) table->ForgetChanges();
    table->SetCutInterval(cut_interval_.number);
  }
}

void Lane::Respond(const std::shared_ptr<ServerConnection>& peer, const FrameHeader& head,
                   std::string_view body) {
  if (log.holds()) return log.Hold(peer, head, body);
  peer->Reply(head, body);
}

void Lane::Log(std::string entry) {
  if (!log.on()) return;
  log.Append(std::move(entry));
  if (log.connection() == nullptr) return;
  if (to_flush_.empty() || to_flush_.back() != log.connection())
    to_flush_.push_back(log.connection());
}

Status Lane::LogRows(const Session& session, const FrameHeader& head, const RowSource& source,
                     const RowRequest& request) {
  if (!log.on()) return Status::Ok();
  TRY_ASSIGN(std::string entry, RowsEntry(session.client, session.id, head, source, request));
  Log(std::move(entry));
  return Status::Ok();
}

void Lane::Confirm(uint64_t position) {
  log.Confirm(position);
  SendReady();
}

void Lane::SendReady() {
  for (HeldAnswer& answer : log.TakeReady()) {
    auto peer = answer.peer.lock();
    if (peer == nullptr) continue;
    peer->Reply(answer.head, answer.body);
    if (to_flush_.empty() || to_flush_.back() != peer) to_flush_.push_back(std::move(peer));
  }
  if (log.full()) return;
  for (auto& peer : await_room_) to_flush_.push_back(std::move(peer));
  await_room_.clear();
}

Session* Lane::ReplicatedSession(uint64_t id, int client) {
  Session& session = sessions_[id];
  if (session.id == 0) {
    session.id = id;
    session.client = client;
    if (client >= 0) current_[client] = id;
  }
  return &session;
}

void Lane::ApplyMarkerOfPrimary(Session* session, uint64_t seq, int64_t checkpoint) {
  session->last_seq = std::max(session->last_seq, seq);
  no_cut_below_ = std::max(no_cut_below_, checkpoint + 1);
}

}  // namespace shoal::ps
