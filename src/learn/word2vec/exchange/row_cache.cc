#include "learn/word2vec/exchange/row_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shoal::learn::word2vec {
namespace {

constexpr TableKind kBoth[] = {kInput, kOutput};
constexpr size_t kRequestBytes = 1u << 20;

void Scale(float* row, float by, size_t size) {
  for (size_t k = 0; k < size; ++k) row[k] *= by;
}

size_t RowsInRequest(const Matrix& matrix) {
  return std::clamp<size_t>(kRequestBytes / (matrix.stride() * sizeof(float)), 16, 2048);
}

}  // namespace

Result<std::unique_ptr<RowCache>> RowCache::Make(ps::Client* client, const Kernels* kernels,
                                                 const ps::TableRef (&tables)[kTables],
                                                 const std::atomic<uint64_t>* lost) {
  std::unique_ptr<RowCache> cache(new RowCache(client, kernels, lost));
  for (const TableKind kind : kBoth) {
    const ps::TableRef& table = tables[kind];
    cache->tables_[kind] = table;
    TRY_ASSIGN(cache->local_[kind], Matrix::Make(table.rows, table.dim));
    TRY_ASSIGN(cache->base_[kind], Matrix::Make(table.rows, table.dim));
    cache->claimed_[kind] = std::make_unique<std::atomic<bool>[]>(table.rows);
  }
  return cache;
}

Status RowCache::Load() {
  for (const TableKind kind : kBoth) {
    Matrix& local = local_[kind];
    TRY(client_->PullRange(tables_[kind], 0, tables_[kind].rows,
                           ps::Rows(local.data(), local.stride()), kServerRestartTimeout));
    std::memcpy(base_[kind].data(), local.data(), local.rows() * local.stride() * sizeof(float));
  }
  return Status::Ok();
}

Status RowCache::FlushAll() {
  RowExchange exchange(this, ExchangePolicy(Params{}, 1));
  std::vector<uint32_t> rows[kTables];
  for (const TableKind kind : kBoth) {
    const size_t bytes = local_[kind].stride() * sizeof(float);
    for (uint32_t row = 0; row < local_[kind].rows(); ++row) {
      if (std::memcmp(local_[kind].row(row), base_[kind].row(row), bytes) == 0) continue;
      rows[kind].push_back(row);
      if (rows[kind].size() < exchange.max_rows()) continue;
      TRY(exchange.Issue(rows[kInput], rows[kOutput]));
      TRY(exchange.Collect(2));
    }
    TRY(exchange.Issue(rows[kInput], rows[kOutput]));
  }
  return exchange.Collect(0);
}

Status RowCache::Restore(int server) {
  restores_.fetch_add(1);
  for (const TableKind kind : kBoth) {
    const size_t most = RowsInRequest(local_[kind]);
    std::vector<ps::Key> keys;
    TRY_ASSIGN(Matrix values, Matrix::Make(most, local_[kind].dim()));
    const uint64_t rows = local_[kind].rows();
    for (uint64_t row = 0; row <= rows; ++row) {
      const bool theirs = row < rows && client_->ServerOf(tables_[kind], row) == server;
      if (theirs) keys.push_back(row);
      if (keys.empty() || (row < rows && keys.size() < most)) continue;
      const ps::Rows all(values.data(), values.stride());
      TRY_ASSIGN(const ps::Ticket pull, client_->Pull(tables_[kind], keys, all));
      TRY(client_->Wait(pull, kServerRestartTimeout));
      for (size_t i = 0; i < keys.size(); ++i) {
        const RowLocks::Guard guard(locks_, kind, keys[i]);
        float* const base = base_[kind].row(keys[i]);
        kernels_->copy(local_[kind].row(keys[i]), base, values.stride());
        kernels_->subtract(base, values.row(i), values.row(i), values.stride());
      }
      TRY_ASSIGN(const ps::Ticket push,
                 client_->Push(tables_[kind], keys, ps::ConstRows(values.data(), values.stride())));
      TRY(client_->Wait(push, kServerRestartTimeout));
      keys.clear();
    }
  }
  return Status::Ok();
}

RowExchange::RowExchange(RowCache* cache, const ExchangePolicy& policy)
    : cache_(cache), policy_(policy), max_rows_(RowsInRequest(cache->local(kInput))) {}

RowExchange::~RowExchange() {
  for (const std::unique_ptr<Round>& round : under_way_) {
    for (Part& part : round->parts) {
      if (part.issued) (void)cache_->client().Wait(part.ticket, kServerRestartTimeout);
    }
  }
}

Result<std::unique_ptr<RowExchange::Round>> RowExchange::NewRound() {
  if (!free_.empty()) {
    std::unique_ptr<Round> round = std::move(free_.back());
    free_.pop_back();
    return round;
  }
  auto round = std::make_unique<Round>();
  for (const TableKind kind : kBoth) {
    const size_t dim = cache_->local(kind).dim();
    TRY_ASSIGN(round->parts[kind].deltas, Matrix::Make(max_rows_, dim));
    TRY_ASSIGN(round->parts[kind].answers, Matrix::Make(max_rows_, dim));
  }
  return round;
}

Status RowExchange::IssuePart(Part& part, TableKind table, std::vector<uint32_t>& rows,
                              std::vector<uint32_t>* small) {
  part.keys.clear();
  part.weights.clear();
  part.issued = false;
  std::vector<uint32_t> left;
  const Matrix& local = cache_->local(table);
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (const uint32_t row : rows) {
    if (part.keys.size() == max_rows_ || !cache_->Claim(table, row)) {
      left.push_back(row);
      continue;
    }
    const RowLocks::Guard guard(cache_->locks(), table, row);
    float* const delta = part.deltas.row(part.keys.size());
    const double moved = std::sqrt(cache_->kernels().subtract(
        local.row(row), cache_->base(table).row(row), delta, local.stride()));
    if (small != nullptr && !policy_.Significant(moved, length_[1 - table])) {
      small->push_back(row);
      cache_->Release(table, row);
      continue;
    }
    part.keys.push_back(row);
    part.weights.push_back(policy_.Weight(moved, length_[1 - table]));
    if (part.weights.back() != 1) Scale(delta, part.weights.back(), local.stride());
  }
  rows.swap(left);
  if (part.keys.empty()) return Status::Ok();
  TRY_ASSIGN(part.ticket,
             cache_->client().PushPull(cache_->table(table), part.keys,
                                       ps::Rows(part.deltas.data(), part.deltas.stride()),
                                       ps::Rows(part.answers.data(), part.answers.stride())));
  part.issued = true;
  return Status::Ok();
}

Status RowExchange::Issue(std::vector<uint32_t>& inputs, std::vector<uint32_t>& outputs,
                          RowLists* small) {
  if ((inputs.empty() && outputs.empty()) || cache_->suspended()) return Status::Ok();
  TRY_ASSIGN(std::unique_ptr<Round> round, NewRound());
  round->restores = cache_->restores();
  under_way_.push_back(std::move(round));
  TRY(IssuePart(under_way_.back()->parts[kInput], kInput, inputs,
                small == nullptr ? nullptr : &(*small)[kInput]));
  return IssuePart(under_way_.back()->parts[kOutput], kOutput, outputs,
                   small == nullptr ? nullptr : &(*small)[kOutput]);
}

Status RowExchange::Await(Part& part) {
  if (!part.issued) return Status::Ok();
  const Status answered = cache_->client().Wait(part.ticket, kServerRestartTimeout);
  if (answered.code() != Code::kDeadlineExceeded) part.issued = false;
  return answered;
}

void RowExchange::TakeOver(Part& part, TableKind table, bool forget) {
  const size_t stride = cache_->local(table).stride();
  double squares = 0;
  for (size_t i = 0; i < part.keys.size(); ++i) {
    const auto row = static_cast<uint32_t>(part.keys[i]);
    if (!forget) {
      const RowLocks::Guard guard(cache_->locks(), table, row);
      // The worker gives up the part of its movement that was not counted.
      if (part.weights[i] != 1) Scale(part.deltas.row(i), 1 / part.weights[i], stride);
      squares +=
          cache_->kernels().absorb(cache_->local(table).row(row), cache_->base(table).row(row),
                                   part.deltas.row(i), part.answers.row(i), stride);
    }
    cache_->Release(table, row);
  }
  if (squares > 0) length_[table] = std::sqrt(squares / static_cast<double>(part.keys.size()));
  part.keys.clear();
}

Status RowExchange::Collect(size_t rounds) {
  while (!under_way_.empty()) {
    Round& oldest = *under_way_.front();
    bool answered = true;
    for (const Part& part : oldest.parts)
      answered &= !part.issued || cache_->client().Done(part.ticket);
    if (under_way_.size() <= rounds && !answered) break;
    for (const TableKind kind : kBoth) {
      TRY(Await(oldest.parts[kind]));
      // An answer of a server that has lost what it knew: the row is set right by Restore.
      const bool forget = cache_->suspended() || oldest.restores != cache_->restores();
      TakeOver(oldest.parts[kind], kind, forget);
    }
    free_.push_back(std::move(under_way_.front()));
    under_way_.erase(under_way_.begin());
  }
  return Status::Ok();
}

}  // namespace shoal::learn::word2vec
