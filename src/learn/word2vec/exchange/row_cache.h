// A worker's rows: what its threads train (L), and what the servers last said (B).
//
// What the worker has to tell is L − B. The servers add it and answer with the row's new value S;
// then L moves by S − (B + delta) and B becomes S (docs/design/word2vec.md). RowExchange (one a
// thread) does that while training goes on; FlushAll does it for everything that is left. Where
// rows travel as something narrower than f32, `delta` is what the servers have really added: the
// rest of L − B stays in L − B, and goes with the row's next exchange (docs/adr/0026).
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "learn/word2vec/exchange/exchange_policy.h"
#include "learn/word2vec/kernels/kernels.h"
#include "learn/word2vec/kernels/matrix.h"
#include "learn/word2vec/kernels/row_locks.h"
#include "ps/client/client.h"

namespace shoal::learn::word2vec {

// How long a request may take: a server that died is started again within this.
inline constexpr auto kServerRestartTimeout = std::chrono::seconds(120);

// Shared by the threads of a worker.
class RowCache {
 public:
  // `client` and `kernels` outlive it, as does `lost`: while it is not 0, servers have come back
  // without what was pushed to them lately, and their answers are not to be taken over. Null: take
  // whatever they say.
  static Result<std::unique_ptr<RowCache>> Make(ps::Client* client, const Kernels* kernels,
                                                const ps::TableRef (&tables)[kTables],
                                                const std::atomic<uint64_t>* lost);
  // How the rows of exchanges travel from now on; f32 at first. Loading and restoring stays exact.
  void set_wire(const ps::Wire& wire) { wire_ = wire; }

  // L = B = what the servers have. Before training.
  Status Load();
  // Exchanges every row whose L and B differ. No thread may train meanwhile. O(rows).
  Status FlushAll();

  // After server `server` came back without what was pushed since its last checkpoint: gives the
  // rows that are its own by now the values that this worker has. For one worker of a job (the
  // first), while suspended.
  Status Restore(int server);
  bool suspended() const { return lost_ != nullptr && lost_->load() != 0; }
  // Counts the calls of Restore: an answer to what was issued before one is worth nothing.
  uint64_t restores() const { return restores_.load(); }

  Matrix& local(TableKind table) { return local_[table]; }
  Matrix& base(TableKind table) { return base_[table]; }
  // For an exchange.
  ps::TableRef table(TableKind table) const {
    ps::TableRef ref = tables_[table];
    ref.wire = wire_;
    return ref;
  }
  RowLocks& locks() { return locks_; }
  ps::Client& client() { return *client_; }
  const Kernels& kernels() const { return *kernels_; }

  // A row is in one thread's request at a time. False: another has it.
  bool Claim(TableKind table, uint32_t row) {
    return !claimed_[table][row].exchange(true, std::memory_order_acquire);
  }
  void Release(TableKind table, uint32_t row) {
    claimed_[table][row].store(false, std::memory_order_release);
  }

 private:
  RowCache(ps::Client* client, const Kernels* kernels, const std::atomic<uint64_t>* lost)
      : client_(client), kernels_(kernels), lost_(lost) {}

  ps::Client* const client_;
  const Kernels* const kernels_;
  const std::atomic<uint64_t>* const lost_;
  ps::TableRef tables_[kTables];
  ps::Wire wire_;
  Matrix local_[kTables];
  Matrix base_[kTables];
  std::unique_ptr<std::atomic<bool>[]> claimed_[kTables];
  RowLocks locks_;
  std::atomic<uint64_t> restores_{0};
};

// Of each table.
using RowLists = std::array<std::vector<uint32_t>, kTables>;

// The requests that one thread has under way. Not thread-safe.
class RowExchange {
 public:
  RowExchange(RowCache* cache, const ExchangePolicy& policy);
  // Waits for what is under way, so that no answer is written into freed memory.
  ~RowExchange();

  // Rows of one table in one request: about 1 MiB.
  size_t max_rows() const { return max_rows_; }

  // Sends the movements of these rows and asks for their new values; takes the rows out of the
  // lists, except those that are under way already or that exceed max_rows(). A row may stand in
  // a list several times. Rows that have not moved significantly are not exchanged but put into
  // `small`; null: all are exchanged. Does not wait for answers, but blocks while the client's
  // window is full.
  Status Issue(std::vector<uint32_t>& inputs, std::vector<uint32_t>& outputs,
               RowLists* small = nullptr);
  // Takes over answers, the oldest first, until at most `rounds` requests are under way. What has
  // been answered already is taken over in any case.
  Status Collect(size_t rounds);

 private:
  struct Part {
    std::vector<ps::Key> keys;
    std::vector<float> weights;  // of each key
    Matrix deltas;               // [max_rows], times their weights; then as the servers add them
    Matrix answers;              // [max_rows]
    ps::Ticket ticket;
    bool issued = false;
  };
  struct Round {
    Part parts[kTables];
    uint64_t restores = 0;
  };

  Result<std::unique_ptr<Round>> NewRound();
  Status IssuePart(Part& part, TableKind table, std::vector<uint32_t>& rows,
                   std::vector<uint32_t>* small);
  Status Await(Part& part);
  void TakeOver(Part& part, TableKind table, bool forget);

  RowCache* const cache_;
  const ExchangePolicy policy_;
  const size_t max_rows_;
  double length_[kTables] = {};  // root of the mean square length of the rows last answered
  std::vector<std::unique_ptr<Round>> under_way_;  // oldest first
  std::vector<std::unique_ptr<Round>> free_;
};

}  // namespace shoal::learn::word2vec
