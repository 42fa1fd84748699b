// The measurements of src/ps/bench/speed_main.cc for ps-lite: rows pushed to and pulled from a
// server in another process over loopback. Compiled by bench/ps_lite.py against a ps-lite that it
// fetches.
//
// One program for the scheduler, the server and the worker (DMLC_ROLE). The worker measures a round
// for every line of its input and prints what ps_speed prints. The server really adds, to the same
// rows as ours: it is ps-lite's transport and threads that are compared, not its hash table.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/ps.h"

namespace {

constexpr size_t kWide = 1024, kWideRows = 2048, kDim = 100, kDenseRows = 500'000, kRequest = 1000;
constexpr double kSeconds = 0.15;
enum Command { kWideTable = 0, kDenseTable = 1 };

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Store {
  std::vector<float> wide = std::vector<float>(kWide * kWideRows);
  std::vector<float> rows = std::vector<float>(kDim * kDenseRows);

  void Handle(const ps::KVMeta& meta, const ps::KVPairs<float>& data, ps::KVServer<float>* server) {
    const size_t dim = meta.cmd == kWideTable ? kWide : kDim;
    float* const base = meta.cmd == kWideTable ? wide.data() : rows.data();
    ps::KVPairs<float> answer;
    if (!meta.push) {
      answer.keys = data.keys;
      answer.vals.resize(data.keys.size() * dim);
    }
    for (size_t i = 0; i < data.keys.size(); ++i) {
      float* const row = base + data.keys[i] * dim;
      if (meta.push) {
        const float* const delta = data.vals.data() + i * dim;
        for (size_t j = 0; j < dim; ++j) row[j] += delta[j];
      } else {
        std::memcpy(answer.vals.data() + i * dim, row, dim * sizeof(float));
      }
    }
    server->Response(meta, answer);
  }
};

class Worker {
 public:
  Worker() : worker_(0, 0) {
    std::mt19937_64 random(7);
    for (auto& keys : dense_) {
      // ps-lite requires ascending, distinct keys.
      ps::Key key = random() % 100;
      for (size_t i = 0; i < kRequest; ++i, key += 1 + random() % 900) keys.push_back(key);
    }
    for (size_t rows : {1, 16, 256}) {
      std::vector<ps::Key> keys;
      for (size_t i = 0; i < rows; ++i) keys.push_back(i * 5);
      wide_.emplace_back(std::move(keys));
    }
    deltas_.assign(256 * kWide, 1e-6f);
    for (int i = 0; i < 16; ++i) out_.emplace_back(256 * kWide, 0.0f);
  }

  void Round(int round) {
    RoundTrip(round, false, 0);
    RoundTrip(round, true, 0);
    RoundTrip(round, false, 5);
    for (size_t size = 0; size < wide_.size(); ++size) {
      for (const bool pull : {false, true}) Stream(round, size, pull);
    }
    for (const size_t depth : {2, 8}) {
      for (const bool pull : {false, true}) Rows(round, pull, depth);
    }
  }

 private:
  void Print(int round, const std::string& what, double value, const char* unit) {
    std::printf(
        "{\"round\": %d, \"what\": \"%s\", \"door\": \"ps-lite\", \"value\": %.6g, \"unit\": "
        "\"%s\"}\n",
        round, what.c_str(), value, unit);
  }

  int Issue(int table, const std::vector<ps::Key>& keys, bool pull, size_t slot) {
    const ps::SArray<ps::Key> all(const_cast<ps::Key*>(keys.data()), keys.size());
    const size_t floats = keys.size() * (table == kWideTable ? kWide : kDim);
    if (!pull) return worker_.ZPush(all, ps::SArray<float>(deltas_.data(), floats), {}, table);
    views_[slot] = ps::SArray<float>(out_[slot].data(), floats);
    return worker_.ZPull(all, &views_[slot], nullptr, table);
  }

  void RoundTrip(int round, bool pull, int pause_ms) {
    std::vector<double> took;
    const double begin = Now();
    while (Now() - begin < (pause_ms > 0 ? 3 : 1) * kSeconds) {
      if (pause_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
      const double sent = Now();
      worker_.Wait(Issue(kWideTable, wide_[0], pull, 0));
      took.push_back(Now() - sent);
    }
    std::sort(took.begin(), took.end());
    Print(round,
          std::string("4 KB ") + (pull ? "pull" : "push") + " round trip" +
              (pause_ms > 0 ? " after 5 ms of idling" : ""),
          took[took.size() / 2] * 1e6, "us");
  }

  double Pipeline(size_t depth, const std::function<int(size_t)>& issue) {
    std::vector<int> tickets(depth);
    for (size_t slot = 0; slot < depth; ++slot) tickets[slot] = issue(slot);
    size_t done = 0;
    const double begin = Now();
    do {
      for (size_t slot = 0; slot < depth; ++slot, ++done) {
        worker_.Wait(tickets[slot]);
        tickets[slot] = issue(slot);
      }
    } while (Now() - begin < kSeconds);
    const double took = Now() - begin;
    for (const int ticket : tickets) worker_.Wait(ticket);
    return static_cast<double>(done) / took;
  }

  void Stream(int round, size_t size, bool pull) {
    const auto& keys = wide_[size];
    const double rate =
        Pipeline(16, [&](size_t slot) { return Issue(kWideTable, keys, pull, slot); });
    const bool one = keys.size() == 1;
    Print(round,
          std::to_string(keys.size() * 4) + " KB " + (pull ? "pull" : "push") + ", 16 outstanding",
          one ? rate / 1e3 : rate * static_cast<double>(keys.size() * 4096) / 1e9,
          one ? "k msg/s" : "GB/s");
  }

  void Rows(int round, bool pull, size_t depth) {
    size_t n = 0;
    const double rate = Pipeline(depth, [&](size_t slot) {
      return Issue(kDenseTable, dense_[n++ % dense_.size()], pull, slot);
    });
    Print(round,
          std::string("rows of 100 floats, 1,000 a request, dense 200 MB, ") +
              (pull ? "pull" : "push") + ", " + std::to_string(depth) + " outstanding",
          rate * kRequest / 1e6, "M rows/s");
  }

  ps::KVWorker<float> worker_;
  std::vector<std::vector<ps::Key>> dense_{256};
  std::vector<std::vector<ps::Key>> wide_;
  std::vector<float> deltas_;
  std::vector<std::vector<float>> out_;
  std::vector<ps::SArray<float>> views_{16};
};

}  // namespace

int main() {
  const std::string role = std::getenv("DMLC_ROLE");
  Store* const store = role == "server" ? new Store : nullptr;
  ps::KVServer<float>* server = nullptr;
  ps::StartAsync(0);
  if (store != nullptr) {
    server = new ps::KVServer<float>(0);
    server->set_request_handle(
        [store](const auto& meta, const auto& data, auto* to) { store->Handle(meta, data, to); });
    ps::RegisterExitCallback([server] { delete server; });
  }
  if (!ps::Postoffice::Get()->is_recovery()) {
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup + ps::kServerGroup + ps::kScheduler);
  }
  if (role == "worker") {
    Worker worker;
    for (int round = 0; std::getchar() != EOF; ++round) {
      worker.Round(round);
      std::printf(
          "{\"round\": %d, \"what\": \"end\", \"door\": \"round\", \"value\": 0, "
          "\"unit\": \"\"}\n",
          round);
      std::fflush(stdout);
    }
    std::quick_exit(0);  // the caller ends the other processes
  }
  ps::Finalize(0, true);
  return 0;
}
