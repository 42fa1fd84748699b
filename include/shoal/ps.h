// Shoal's parameter server for other programs: tables of float rows on servers, pulled and pushed
// by any number of workers. C++20, the standard library alone.
//
//   find_package(shoal REQUIRED)                       # CMake
//   target_link_libraries(app PRIVATE shoal::ps)
//
// One server and one worker in one program; run as separate processes it is the same code:
//
//   #include <shoal/ps.h>
//   #include <cstdio>
//   namespace ps = shoal::ps;
//   int main() {
//     auto server = ps::Server::Start({.token = "secret"}).value();
//     auto client = ps::Client::Connect({.servers = {server->address()}, .token =
//     "secret"}).value(); ps::Table table = client->CreateTable({.name = "weights", .rows = 1000,
//     .dim = 4,
//                                            .optimizer = ps::Optimizer::Sgd(0.5f)}).value();
//     std::vector<ps::Key> keys = {7, 42};
//     std::vector<float> gradients(8, 1.0f), rows(8);
//     ps::Ticket ticket = client->PushPull(table, keys, gradients, rows).value();
//     if (ps::Status status = client->Wait(ticket); !status.ok())
//     std::puts(status.message().c_str()); std::printf("%g\n", rows[0]);  // -0.5
//   }
//
// Inside a task of a Shoal job everything is in the environment:
//   auto client = ps::Client::Connect(ps::ClientOptions::FromEnvironment().value()).value();
//
// Values are float, rows `dim` floats one after the other, keys 64 bits. All classes are
// thread-safe. Servers and clients belong to the process that made them: in a child of fork() every
// call of a client is FailedPrecondition and destructors do nothing. Errors are values; what is in
// namespace v1 stays binary compatible. Guide: docs/ps.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <shoal/status.h>

// The library itself has other classes of these names beside v1.
#ifndef SHOAL_PS_LIBRARY
#define SHOAL_PS_INLINE inline
#else
#define SHOAL_PS_INLINE
#endif

namespace shoal::ps {
SHOAL_PS_INLINE namespace v1 {
  using Key = uint64_t;
  using Milliseconds = std::chrono::milliseconds;
  inline constexpr Milliseconds kSoon = std::chrono::seconds(60);
  inline constexpr Milliseconds kLong = std::chrono::seconds(600);

  // The effect of a pushed row g on the stored row w. Formulas: docs/ps.md.
  struct Optimizer {
    // clang-format off
    enum class Kind : uint8_t { kAdd, kSgd, kAdagrad, kMomentum, kAdam, kFtrl, kFunction, kCombine };
    // clang-format on
    Kind kind = Kind::kAdd;
    float lr = 0.1f, eps = 1e-6f, momentum = 0.9f, beta1 = 0.9f, beta2 = 0.999f;
    float beta = 1.0f, l1 = 0.0f, l2 = 0.0f;
    std::string function = {};  // kFunction: of ServerOptions::functions,
    std::string argument = {};  // given to it with every batch (at most 64 KiB),
    uint32_t state_planes = 0;  // and how many further rows of state it keeps, at most 8

    static Optimizer Add() { return {}; }                        // w += g
    static Optimizer Sgd(float lr) { return {Kind::kSgd, lr}; }  // w -= lr g
    static Optimizer Adagrad(float lr, float eps = 1e-6f) { return {Kind::kAdagrad, lr, eps}; }
    static Optimizer Momentum(float lr, float m = 0.9f) { return {Kind::kMomentum, lr, 1e-6f, m}; }
    static Optimizer Adam(float lr, float beta1 = 0.9f, float beta2 = 0.999f, float eps = 1e-8f) {
      return {Kind::kAdam, lr, eps, 0.9f, beta1, beta2};
    }
    static Optimizer Ftrl(float lr, float beta, float l1, float l2) {
      return {Kind::kFtrl, lr, 1e-6f, 0.9f, 0.9f, 0.999f, beta, l1, l2};
    }
    // The last float of a row counts its pushes; that of a pushed row is the count it was made with
    static Optimizer Combine() { return {Kind::kCombine}; }
    static Optimizer Function(std::string name, std::string argument = {}, uint32_t planes = 0) {
      Optimizer optimizer{Kind::kFunction};
      optimizer.function = std::move(name);
      optimizer.argument = std::move(argument);
      optimizer.state_planes = planes;
      return optimizer;
    }
  };

  // Values of rows before the first push: zeros (lo = hi = 0), or drawn from [lo, hi) as a
  // function of (seed, key, element) alone.
  struct Initializer {
    float lo = 0, hi = 0;
    uint64_t seed = 0;
    static Initializer Zeros() { return {}; }
    static Initializer Uniform(float lo, float hi, uint64_t seed = 0) { return {lo, hi, seed}; }
  };

  // The encoding of rows on the wire; servers hold and compute float. A push may be any, a pull
  // kF32 or kBf16.
  enum class WireType : uint8_t { kF32, kBf16, kInt8 };

  struct TableSpec {
    std::string name = {};  // 1 to 256 bytes, unique in the job
    uint64_t rows = 0;      // keys are [0, rows); 0: sparse, any 64-bit key, rows come into being
                            // with the first push
    uint32_t dim = 1;       // floats a row, at most 2^20
    Optimizer optimizer = {};
    Initializer initializer = {};
    // Of this client's requests; other clients may choose otherwise.
    WireType push = WireType::kF32, pull = WireType::kF32;
  };

  // A table as Client::CreateTable knows it. Cheap to copy.
  struct Table {
    uint32_t id = 0, dim = 0;
    uint64_t rows = 0;  // 0: sparse
    WireType push = WireType::kF32, pull = WireType::kF32;
  };

  // How far a worker may run ahead of the slowest one; see Client::Clock.
  struct Consistency {
    enum class Kind : uint8_t { kBsp, kSsp, kAsp };
    Kind kind = Kind::kAsp;
    uint32_t staleness = 0;  // kSsp
  };

  // Rows of one request as a server function sees them; a long request comes in several batches.
  struct FunctionBatch {
    std::span<const Key> keys;
    float* const* rows = nullptr;          // by key: dim values to read and write
    const float* const* deltas = nullptr;  // by key: dim values that came with it; null: none
    size_t dim = 0;
    std::string_view argument;
    size_t stride = 0;  // floats from a row to its first plane of state, and between planes
    float* state(size_t i, size_t plane = 0) const { return rows[i] + stride * (1 + plane); }
  };
  // Runs in a server's thread: short, not blocking, deterministic, throws nothing but bad_alloc.
  using Function = std::function<Status(const FunctionBatch&)>;

  struct Counters {
    uint64_t rows_pushed = 0, rows_pulled = 0, bytes_pushed = 0, bytes_pulled = 0, requests = 0;
  };

  struct ServerOptions {
    int index = 0;                   // of this server, [0, servers)
    int servers = 1;                 // in the job
    int workers = 0;                 // how many clocks and barriers wait for before all have joined
    std::string token = {};          // the job's secret; required
    std::string host = "127.0.0.1";  // to listen on
    uint16_t port = 0;               // 0: any free one, see address()
    int threads = 1;                 // each owns a part of the rows
    std::map<std::string, Function> functions = {};  // the same on all servers
    std::string checkpoint_dir = {};                 // empty: none; shared by all servers
    int keep_checkpoints = 2;
    bool restore = true;  // from the newest whole checkpoint, if there is one
    bool ucx = false;     // also over UCX, among hosts that are trusted

    // From the environment of a Shoal job's task: index, number of servers and workers (role
    // worker), port, token. FailedPrecondition outside a job.
    static Result<ServerOptions> FromEnvironment();
  };

  class Server {
   public:
    // Listens and serves until destroyed, in threads of its own. InvalidArgument names the option.
    static Result<std::unique_ptr<Server>> Start(ServerOptions options);
    ~Server();

    std::string address() const;  // "127.0.0.1:41233"
    // The checkpoint that it was restored from; -1: it started empty.
    int64_t restored_checkpoint() const;
    Counters counters() const;

   private:
    struct Impl;
    explicit Server(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
  };

  struct ClientOptions {
    static constexpr int kObserver = -1;

    int index = 0;                          // of this worker; kObserver takes no part in clocks,
                                            // barriers and checkpoints
    std::vector<std::string> servers = {};  // "host:port" in index order,
    // or a function that returns the present addresses (servers may move); called from threads of
    // the client.
    std::function<std::vector<std::string>()> find_servers = nullptr;
    std::string token = {};
    Consistency consistency = {};
    bool shared_memory = true;  // with servers of this host
    bool ucx = false;  // over UCX instead; the servers must be willing (ServerOptions::ucx)
    Milliseconds connect_timeout = std::chrono::seconds(30);
    Milliseconds reconnect_timeout = std::chrono::seconds(30);
    size_t window_bytes = 1u << 20;  // unanswered values a server; beyond it calls block

    // From the environment of a Shoal job's task. `role`: the role whose tasks are the servers.
    static Result<ClientOptions> FromEnvironment(std::string_view role = "server");
  };

  // Further options of a client.
  struct ClientHooks {
    // A server that dies is started again without the rows that it had. One that was restored from
    // a checkpoint lacks what was pushed since; one that came back empty lacks everything. False:
    // after the latter every call fails with DataLoss, so that the program does not go on with what
    // is left of its tables. True: the program makes good for them.
    bool accept_data_loss = false;
    // Called with the server's index and the checkpoint it was restored from (-1: empty), from a
    // thread of the library, before any answer of the new server; must not block.
    std::function<void(int server, int64_t checkpoint)> on_server_restart = nullptr;
    // Asked ten times a second by each thread that waits for servers, but for Wait's; it may be one
    // of the library's. True ends its call with Cancelled.
    std::function<bool()> interrupted = nullptr;
  };

  // One request under way. Wait for it once, unless it has a callback.
  struct Ticket {
    uint32_t slot = 0, generation = 0;
  };
  // Runs once, in a thread of the library or the caller's; must not block nor issue requests.
  using Callback = std::function<void(const Status&)>;

  struct CheckpointInfo {
    int64_t id = -1;
    uint64_t bytes = 0;
  };

  class Client {
   public:
    // Connects to all servers, retrying until connect_timeout.
    static Result<std::unique_ptr<Client>> Connect(ClientOptions options);
    static Result<std::unique_ptr<Client>> Connect(ClientOptions options, ClientHooks hooks);
    ~Client();

    // Makes the table, or finds it with the same specification; AlreadyExists if that differs.
    Result<Table> CreateTable(const TableSpec& spec, Milliseconds timeout = kSoon);

    // keys: n, in any order. deltas, out: n rows, [n x dim], row-major; they and the keys stay the
    // caller's and must stay valid until the request is done. InvalidArgument if lengths do not
    // fit, or for keys beyond a dense table. Blocks only while the window is full.
    Result<Ticket> Pull(const Table& table, std::span<const Key> keys, std::span<float> out,
                        Callback done = nullptr);
    Result<Ticket> Push(const Table& table, std::span<const Key> keys,
                        std::span<const float> deltas, Callback done = nullptr);
    // Applies the deltas, then out = the rows as they are now: one round trip.
    Result<Ticket> PushPull(const Table& table, std::span<const Key> keys,
                            std::span<const float> deltas, std::span<float> out,
                            Callback done = nullptr);
    // Runs a server function over the rows; what comes with them or is wanted back may be empty.
    struct CallRows {
      std::span<const float> deltas = {};
      std::span<float> out = {};  // gets the rows as they are afterwards
    };
    Result<Ticket> Call(const Table& table, std::string_view function, std::span<const Key> keys,
                        std::string_view argument, const CallRows& rows, Callback done = nullptr);
    // DeadlineExceeded names the servers that did not answer; the request goes on.
    Status Wait(Ticket ticket, Milliseconds timeout = kSoon);
    bool Done(Ticket ticket) const;
    // Waits for everything issued so far, by all threads.
    Status Flush(Milliseconds timeout = kSoon);

    // "I have finished round n": flushes, then waits as `consistency` says.
    Status Clock(uint64_t n, Milliseconds timeout = kLong);
    // Returns when all live workers have entered. After a timeout this one has not: the others wait
    // for it to enter again.
    Status Barrier(std::string_view name, Milliseconds timeout = kLong);

    // Named byte strings on the servers, part of checkpoints. NotFound if there is none.
    Status PutBlob(std::string_view name, std::string_view bytes, Milliseconds timeout = kLong);
    Result<std::string> GetBlob(std::string_view name, Milliseconds timeout = kLong);

    // An opaque state that goes into every checkpoint with exactly the pushes issued before it.
    Status SetProgress(std::string bytes);
    Result<std::string> GetProgress(int worker, Milliseconds timeout = kSoon);
    // A consistent checkpoint of all servers while training goes on; durable when it returns.
    Result<CheckpointInfo> Checkpoint(Milliseconds timeout = std::chrono::seconds(120));
    // The checkpoint that the servers had been restored from when this client connected; -1: none.
    int64_t restored_checkpoint() const;
    // The number of times that a server was restarted and lost what it had not saved.
    int64_t server_restarts() const;

    // Says good-bye: clocks and barriers no longer wait for this worker.
    Status Leave(Milliseconds timeout = kSoon);
    Counters counters() const;

   private:
    struct Impl;
    explicit Client(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
  };

}  // namespace v1
}  // namespace shoal::ps
