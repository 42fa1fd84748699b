// How fast a client's rows get to a server in another process and back, over every transport,
// beside what the machine itself does in the same minute:
// `ps_speed [--sparse] [--rounds N] [--only TEXT] [--ring KB] [--step]` (measurements whose name
// has TEXT in it; rings of KB each; a round begins when a line comes and ends with a line).
//
// Run by bench/ps.py (script/bench ps). Prints one JSON object a measurement and round; everything
// is interleaved, so that medians over the rounds compare what ran under the same conditions.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "ps/bench/machine_ceilings_main.h"
#include "ps/client/client.h"
#include "ps/server/server.h"
#include "ps/storage/optimizer_kernels.h"
#include "ps/storage/row_arena.h"

namespace shoal::ps {
namespace {

constexpr uint32_t kWide = 1024;  // floats: a row of 4 KB
constexpr uint64_t kWideRows = 2048;
constexpr uint32_t kDim = 100;
constexpr size_t kRowsARequest = 1000;
constexpr uint64_t kDenseRows = 500'000;  // 200 MB
constexpr uint64_t kSparseRows = 10'000'000;
constexpr size_t kRowsOfMachine = 2'000'000;  // 900 MB: where the caches have no part in it
constexpr double kSeconds = 0.15;             // of each measurement

double Now() {
  return std::chrono::duration<double>(RealClock::Get()->Now().time_since_epoch()).count();
}

void Check(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "ps_speed: {}\n", status.ToString());
  std::exit(1);
}

template <typename T>
T Value(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

std::string only;

bool Wanted(const std::string& what, const std::string& transport) {
  return (transport + ": " + what).find(only) != std::string::npos;
}

void Print(int round, const std::string& what, const std::string& transport, double value,
           const char* unit) {
  fmt::print(
      "{{\"round\": {}, \"what\": \"{}\", \"door\": \"{}\", \"value\": {:.6g}, \"unit\": "
      "\"{}\"}}\n",
      round, what, transport, value, unit);
  std::fflush(stdout);
}

// --- The machine ---

// Microseconds a round trip between two threads that never sleep.
double PingPong() {
  struct alignas(128) Word {
    std::atomic<uint64_t> at{0};
  };
  static Word ping, pong;
  ping.at = pong.at = 0;
  constexpr uint64_t kTurns = 200'000;
  std::thread other([] {
    for (uint64_t turn = 1; turn <= kTurns; ++turn) {
      while (ping.at.load(std::memory_order_acquire) != turn) {
      }
      pong.at.store(turn, std::memory_order_release);
    }
  });
  const double begin = Now();
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    ping.at.store(turn, std::memory_order_release);
    while (pong.at.load(std::memory_order_acquire) != turn) {
    }
  }
  const double took = Now() - begin;
  other.join();
  return took / kTurns * 1e6;
}

// GB/s of one core that copies `bytes`, and adds the copy to a table if asked to.
double Copy(size_t bytes, bool add) {
  std::vector<float> from(bytes / 4, 1e-6f), middle(bytes / 4), to(bytes / 4);
  const size_t rows = bytes / (kWide * 4);
  std::vector<float*> row(rows);
  std::vector<const float*> delta(rows);
  for (size_t i = 0; i < rows; ++i) {
    row[i] = to.data() + i * kWide;
    delta[i] = middle.data() + i * kWide;
  }
  const OptimizerSpec add_rows;
  const RowLayout layout = RowLayout::Of(kWide, add_rows);
  size_t n = 0;
  const double begin = Now();
  do {
    for (int i = 0; i < 16; ++i, ++n) {
      std::memcpy(middle.data(), from.data(), bytes);
      asm volatile("" : : "g"(middle.data()) : "memory");
      RowBatch batch;
      batch.rows = row.data();
      batch.deltas = delta.data();
      batch.n = rows;
      batch.layout = layout;
      batch.optimizer = &add_rows;
      if (add) ApplyBatch(batch);
    }
  } while (Now() - begin < kSeconds / 2);
  return static_cast<double>(n * bytes) / (Now() - begin) / 1e9;
}

// M rows of 100 floats a second that one core gathers from random places, or adds to them, with
// the server's own kernels and huge pages: no server can be faster on one core.
class RandomRows {
 public:
  explicit RandomRows(size_t rows) : layout_(RowLayout::Of(kDim, add_)) {
    base_ = arena_.Allocate(rows * layout_.floats);
    std::memset(base_, 0, rows * layout_.floats * sizeof(float));
    std::mt19937_64 random(11);
    for (uint32_t& at : order_) at = static_cast<uint32_t>(random() % rows);
  }

  double Measure(bool add) {
    size_t n = 0;
    const double begin = Now();
    do {
      for (int i = 0; i < 16; ++i, n += kBatchRows) Batch(n % order_.size(), add);
    } while (Now() - begin < kSeconds / 2);
    return static_cast<double>(n) / (Now() - begin) / 1e6;
  }

 private:
  void Batch(size_t first, bool add) {
    std::array<float*, kBatchRows> rows, near;
    std::array<const float*, kBatchRows> deltas;
    for (size_t i = 0; i < kBatchRows; ++i) {
      rows[i] = base_ + order_[first + i] * layout_.floats;
      deltas[i] = near[i] = near_.data() + (first + i) % kNear * kDim;
    }
    if (add) {
      ApplyBatch({rows.data(), deltas.data(), nullptr, kBatchRows, layout_, &add_});
    } else {
      CopyBatch(rows.data(), near.data(), kBatchRows, kDim);
    }
  }

  static constexpr size_t kNear = 4096;  // rows: 1.6 MB
  const OptimizerSpec add_;
  const RowLayout layout_;
  RowArena arena_;
  float* base_ = nullptr;
  std::vector<float> near_ = std::vector<float>(kNear * kDim);
  std::vector<uint32_t> order_ = std::vector<uint32_t>(kBatchRows * 4096);
};

// --- A server of its own process ---

class OneServer final : public Members {
 public:
  explicit OneServer(std::string address) { view_.servers = {std::move(address)}; }
  MemberView Current() override { return view_; }

 private:
  MemberView view_;
};

// Never returns in the child, which ends with its parent.
std::string ForkServer(pid_t* child, size_t ring_bytes, bool ucx) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(1);
  *child = ::fork();
  if (*child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ServerOptions options;
    options.token = "bench";
    options.workers = 1;
    options.ucx = ucx;
    if (ring_bytes > 0) options.ring_bytes = ring_bytes;
    auto server = Value(Server::Start(std::move(options)));
    const std::string address = server->address();
    if (::write(ends[1], address.data(), address.size()) < 0) std::exit(1);
    ::close(ends[1]);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  char bytes[64];
  const ssize_t got = ::read(ends[0], bytes, sizeof bytes);
  ::close(ends[0]);
  if (got <= 0) std::exit(1);
  return std::string(bytes, static_cast<size_t>(got));
}

double CpuOf(pid_t process) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// --- One client's measurements ---

struct Tables {
  TableRef wide;
  TableRef rows;
};

class TransportBench {
 public:
  TransportBench(std::string name, std::unique_ptr<Client> client, bool sparse)
      : name_(std::move(name)), client_(std::move(client)) {
    TableSpec wide;
    wide.name = "wide";
    wide.rows = kWideRows;
    wide.dim = kWide;
    wide_ = Value(client_->CreateTable(wide));
    TableSpec rows;
    rows.name = "rows";
    rows.dim = kDim;
    rows.rows = kDenseRows;
    if (sparse) rows.key_space = KeySpace::kSparse;
    rows_ = Value(client_->CreateTable(rows));
    std::mt19937_64 random(7);
    for (auto& batch : keys_) {
      batch.resize(kRowsARequest);
      for (Key& key : batch) key = random() % (sparse ? kSparseRows : kDenseRows);
    }
    for (size_t i = 0; i < 256; ++i) wide_keys_.push_back(i * 5 % kWideRows);
    deltas_.assign(256 * kWide, 1e-6f);
    out_.assign(16, std::vector<float>(256 * kWide));
  }

  // Every row exists and has its memory: reading what was never written would be too quick.
  void Fill(uint64_t rows) {
    std::vector<Key> keys(kRowsARequest);
    for (Key first = 0; first < rows; first += kRowsARequest) {
      for (size_t i = 0; i < kRowsARequest; ++i) keys[i] = first + i;
      Check(client_->Wait(Value(client_->Push(rows_, keys, ConstRows(deltas_.data(), kDim)))));
    }
  }

  // One 4 KB row pushed (or pulled) at a time: median microseconds.
  void RoundTrip(int round, bool pull, Duration pause) {
    const std::string what = fmt::format("4 KB {} round trip{}", pull ? "pull" : "push",
                                         pause.count() > 0 ? " after 5 ms of idling" : "");
    if (!Wanted(what, name_)) return;
    std::vector<double> took;
    const double begin = Now();
    while (Now() - begin < (pause.count() > 0 ? 3 : 1) * kSeconds) {
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
      const double sent = Now();
      Check(client_->Wait(Issue(0, 1, pull)));
      took.push_back(Now() - sent);
    }
    std::sort(took.begin(), took.end());
    Print(round, what, name_, took[took.size() / 2] * 1e6, "us");
  }

  // 16 outstanding of `rows` 4 KB rows each.
  void Stream(int round, size_t rows, bool pull) {
    const std::string what =
        fmt::format("{} KB {}, 16 outstanding", rows * 4, pull ? "pull" : "push");
    if (!Wanted(what, name_)) return;
    const double rate = Pipeline(16, [&](size_t slot) { return Issue(slot, rows, pull); });
    Print(round, what, name_,
          rows == 1 ? rate / 1e3 : rate * static_cast<double>(rows * 4096) / 1e9,
          rows == 1 ? "k msg/s" : "GB/s");
  }

  void Rows1000(int round, bool pull, bool sparse, size_t depth) {
    const std::string what =
        fmt::format("rows of 100 floats, 1,000 a request, {}, {}, {} outstanding",
                    sparse ? "sparse 10 M rows" : "dense 200 MB", pull ? "pull" : "push", depth);
    if (!Wanted(what, name_)) return;
    size_t n = 0;
    const double rate = Pipeline(depth, [&](size_t slot) {
      const auto& keys = keys_[n++ % keys_.size()];
      return Value(pull ? client_->Pull(rows_, keys, Rows(out_[slot].data(), kDim))
                        : client_->Push(rows_, keys, ConstRows(deltas_.data(), kDim)));
    });
    Print(round, what, name_, rate * kRowsARequest / 1e6, "M rows/s");
  }

 private:
  Ticket Issue(size_t slot, size_t rows, bool pull) {
    const std::span<const Key> keys(wide_keys_.data(), rows);
    return Value(pull ? client_->Pull(wide_, keys, Rows(out_[slot].data(), kWide))
                      : client_->Push(wide_, keys, ConstRows(deltas_.data(), kWide)));
  }

  // Requests a second with `depth` under way.
  double Pipeline(size_t depth, const std::function<Ticket(size_t)>& issue) {
    std::vector<Ticket> tickets(depth);
    for (size_t slot = 0; slot < depth; ++slot) tickets[slot] = issue(slot);
    size_t done = 0;
    const double begin = Now();
    do {
      for (size_t slot = 0; slot < depth; ++slot, ++done) {
        Check(client_->Wait(tickets[slot]));
        tickets[slot] = issue(slot);
      }
    } while (Now() - begin < kSeconds);
    const double took = Now() - begin;
    for (const Ticket ticket : tickets) Check(client_->Wait(ticket));
    return static_cast<double>(done) / took;
  }

  const std::string name_;
  const std::unique_ptr<Client> client_;
  TableRef wide_, rows_;
  std::vector<std::vector<Key>> keys_{std::vector<std::vector<Key>>(2048)};
  std::vector<Key> wide_keys_;
  std::vector<float> deltas_;
  std::vector<std::vector<float>> out_;
};

void Ceilings(int round, RandomRows* rows) {
  Print(round, "spin ping-pong", "machine", PingPong(), "us");
  for (const size_t kilobytes : {4, 64, 1024}) {
    Print(round, fmt::format("memcpy {} KB", kilobytes), "machine", Copy(kilobytes << 10, false),
          "GB/s");
    Print(round, fmt::format("memcpy and add {} KB", kilobytes), "machine",
          Copy(kilobytes << 10, true), "GB/s");
  }
  Print(round, "plain TCP: 4 KB there, 64 bytes back", "machine", PlainTcpRoundTrip(Duration(0)),
        "us");
  Print(round, "plain TCP: the same after 5 ms of idling", "machine",
        PlainTcpRoundTrip(std::chrono::milliseconds(5)), "us");
  for (const size_t kilobytes : {4, 64, 1024}) {
    Print(round, fmt::format("plain TCP: write {} KB, read and add", kilobytes), "machine",
          PlainTcp(kilobytes << 10, kSeconds), "GB/s");
  }
  for (const bool add : {true, false}) {
    Print(round, fmt::format("random rows of 100 floats, one core, {}", add ? "add" : "copy"),
          "machine", rows->Measure(add), "M rows/s");
  }
}

void Measure(int round, TransportBench& transport, bool sparse) {
  if (!sparse) {
    transport.RoundTrip(round, false, Duration(0));
    transport.RoundTrip(round, true, Duration(0));
    transport.RoundTrip(round, false, std::chrono::milliseconds(5));
    for (const size_t rows : {1, 16, 256}) {
      for (const bool pull : {false, true}) transport.Stream(round, rows, pull);
    }
  }
  for (const size_t depth : {2, 8}) {
    for (const bool pull : {false, true}) transport.Rows1000(round, pull, sparse, depth);
  }
}

void Idle(int round, pid_t server) {
  const double begin = Now(), mine = CpuOf(::getpid()), its = CpuOf(server);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double took = Now() - begin;
  Print(round, "idle, of a core", "client", (CpuOf(::getpid()) - mine) / took * 100, "%");
  Print(round, "idle, of a core", "server", (CpuOf(server) - its) / took * 100, "%");
}

// With --step the caller says when the next round may begin, to run others' in between.
bool MayBegin(bool step) { return !step || std::getchar() != EOF; }

int Main(int argc, char** argv) {
  bool sparse = false, step = false;
  int rounds = 5;
  size_t ring_bytes = 0;
  std::string ucx;  // the only transport, by this name
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--sparse") == 0) sparse = true;
    if (std::strcmp(argv[i], "--step") == 0) step = true;
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) rounds = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--ucx") == 0 && i + 1 < argc) ucx = argv[++i];
    if (std::strcmp(argv[i], "--ring") == 0 && i + 1 < argc) {
      ring_bytes = static_cast<size_t>(std::atoi(argv[++i])) << 10;
    }
  }
  pid_t server = 0;
  OneServer members(ForkServer(&server, ring_bytes, !ucx.empty()));
  const auto connect = [&](int index, bool shared_memory) {
    ClientOptions options;
    options.token = "bench";
    options.index = index;
    options.shared_memory = shared_memory;
    options.ucx = !ucx.empty();
    return Value(Client::Connect(std::move(options), &members));
  };
  std::vector<std::unique_ptr<TransportBench>> transports;
  if (ucx.empty()) {
    transports.push_back(
        std::make_unique<TransportBench>("shared memory", connect(0, true), sparse));
    transports.push_back(std::make_unique<TransportBench>("tcp", connect(1, false), sparse));
  } else {
    transports.push_back(std::make_unique<TransportBench>(ucx, connect(0, false), sparse));
  }
  transports[0]->Fill(sparse ? kSparseRows : kDenseRows);
  RandomRows rows(kRowsOfMachine);
  for (int round = 0; round < rounds && MayBegin(step); ++round) {
    if (ucx.empty() && (only.empty() || only == "machine")) Ceilings(round, &rows);
    for (auto& transport : transports) Measure(round, *transport, sparse);
    if (ucx.empty() && only.empty()) Idle(round, server);
    if (step) Print(round, "end", "round", 0, "");
  }
  transports.clear();
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace shoal::ps

int main(int argc, char** argv) { return shoal::ps::Main(argc, argv); }
