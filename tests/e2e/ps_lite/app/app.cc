// A program as it would be written for ps-lite, but for its include. The first argument says which:
//   sum      servers add, workers push, pull and push-pull, each on keys of its own
//   lens     values of different lengths; a handle of the program's own, which answers a push only
//            when all workers have pushed; callbacks
//   simple   the scheduler asks everybody, itself included
//   early    the same a hundred times, each request sent before its receivers can be ready for it
//   threads  two customers in every worker
//   slow     workers wait for an answer that servers never give
//   short    workers pull with room for too few lengths
//   fork     workers fork children that use what is their parent's, and are refused
#include <shoal/ps_lite_compat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

using namespace ps;  // NOLINT: as ps-lite's programs do

namespace {

void RunSumWorker(int customer) {
  KVWorker<float> kv(0, customer);
  const int num = 10000, repeat = 20;
  std::vector<Key> keys(num);
  std::vector<float> vals(num);
  for (int i = 0; i < num; ++i) {
    keys[i] = kMaxKey / num * i + static_cast<Key>(MyRank() * 4 + customer);
    vals[i] = static_cast<float>((i * 37 + MyRank()) % 1000);
  }
  std::vector<int> ts;
  for (int i = 0; i < repeat; ++i) ts.push_back(kv.Push(keys, vals));
  for (int t : ts) kv.Wait(t);
  std::vector<float> rets;
  kv.Wait(kv.Pull(keys, &rets));
  std::vector<float> outs;
  for (int i = 0; i < repeat; ++i) kv.Wait(kv.PushPull(keys, vals, &outs));
  CHECK_EQ(rets.size(), vals.size());
  for (int i = 0; i < num; ++i) {
    CHECK_EQ(rets[i], vals[i] * repeat) << "pulled";
    CHECK_EQ(outs[i], vals[i] * repeat * 2) << "pushed and pulled";
  }
  SArray<Key> zkeys(keys);
  SArray<float> zouts;
  kv.Wait(kv.ZPull(zkeys.segment(10, 20), &zouts));
  CHECK_EQ(zouts.size(), 10u);
  CHECK_EQ(zouts[3], vals[13] * repeat * 2);
}

// ---- lens ---------------------------------------------------------------------------------------

struct Round {
  std::vector<KVMeta> waiting;
  std::map<Key, std::vector<float>> sums;
};

class Synchronous {
 public:
  void operator()(const KVMeta& meta, const KVPairs<float>& data, KVServer<float>* server) {
    if (meta.push) {
      CHECK_EQ(meta.cmd, 7);
      CHECK_EQ(data.lens.size(), data.keys.size());
      size_t at = 0;
      for (size_t k = 0; k < data.keys.size(); ++k) {
        std::vector<float>& sum = round->sums[data.keys[k]];
        sum.resize(static_cast<size_t>(data.lens[k]));
        for (float& value : sum) value += data.vals[at++];
      }
      round->waiting.push_back(meta);
      if (static_cast<int>(round->waiting.size()) < NumWorkers()) return;
      for (const KVMeta& one : round->waiting) server->Response(one);
      round->waiting.clear();
      return;
    }
    KVPairs<float> answer;
    answer.keys = data.keys;
    for (const Key key : data.keys) {
      const std::vector<float>& sum = round->sums[key];
      answer.lens.push_back(static_cast<int>(sum.size()));
      for (const float value : sum) answer.vals.push_back(value);
    }
    server->Response(meta, answer);
  }
  std::shared_ptr<Round> round = std::make_shared<Round>();
};

void RunLensWorker() {
  KVWorker<float> kv(0, 0);
  const std::vector<Key> keys = {1, kMaxKey / 2, kMaxKey - 5};
  const std::vector<int> lens = {1, 3, 2};
  const std::vector<float> vals = {1, 2, 3, 4, 5, 6};
  std::atomic<int> called{0};
  for (int round = 1; round <= 10; ++round) {
    kv.Wait(kv.Push(keys, vals, lens, 7, [&] { ++called; }));
    CHECK_EQ(called.load(), round) << "the callback comes before Wait returns";
    // Everybody has pushed once more.
    Postoffice::Get()->Barrier(0, kWorkerGroup);
    std::vector<float> got;
    std::vector<int> lengths;
    kv.Wait(kv.Pull(keys, &got, &lengths));
    CHECK(lengths == lens);
    for (size_t i = 0; i < vals.size(); ++i)
      CHECK_EQ(got[i], vals[i] * static_cast<float>(round * NumWorkers()));
    Postoffice::Get()->Barrier(0, kWorkerGroup);
  }
}

// ---- simple -------------------------------------------------------------------------------------

std::atomic<int> asked{0};

void RunSimple() {
  SimpleApp app(0, 0);
  app.set_request_handle([](const SimpleData& request, SimpleApp* self) {
    CHECK_EQ(request.head, 1);
    CHECK_EQ(request.body, "test");
    ++asked;
    self->Response(request, "ok");
  });
  if (IsScheduler()) {
    std::vector<int> ts;
    for (int i = 0; i < 100; ++i)
      ts.push_back(app.Request(1, "test", kScheduler + kServerGroup + kWorkerGroup));
    for (int t : ts) app.Wait(t);
  }
  Finalize(0, true);
  CHECK_EQ(asked.load(), 100);
}

void RunEarly() {
  constexpr int kApps = 100;
  constexpr int kEverybody = kScheduler + kServerGroup + kWorkerGroup;
  std::vector<std::unique_ptr<SimpleApp>> apps;
  for (int i = 0; i < kApps; ++i) {
    auto& app = *apps.emplace_back(std::make_unique<SimpleApp>(i, 0));
    const int ts = IsScheduler() ? app.Request(1, "test", kEverybody) : 0;
    app.set_request_handle([](const SimpleData& request, SimpleApp* self) {
      ++asked;
      self->Response(request, "ok");
    });
    if (IsScheduler()) app.Wait(ts);
  }
  Finalize(0, true);
  CHECK_EQ(asked.load(), kApps);
}

void RunThreads() {
  std::thread threads[2];
  for (int c = 0; c < 2; ++c) {
    threads[c] = std::thread([c] {
      if (c != 0) Start(c);
      RunSumWorker(c);
      Finalize(c, true);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// ---- fork ---------------------------------------------------------------------------------------

template <typename Call>
void ExpectRefused(const Call& call) {
  try {
    call();
  } catch (const shoal::ps::Error& error) {
    CHECK(std::strstr(error.what(), "a child that it forked") != nullptr) << error.what();
    return;
  }
  CHECK(false) << "a forked child was not refused";
}

void RunForkWorker() {
  auto* const kv = new KVWorker<float>(0, 0);
  const std::vector<Key> keys = {1 + static_cast<Key>(MyRank()), kMaxKey - 5 - MyRank()};
  const std::vector<float> ones = {1, 1};
  for (int round = 0; round < 20; ++round) {
    const int ts = kv->Push(keys, ones);
    const pid_t child = fork();
    if (child == 0) {
      std::vector<float> got;
      ExpectRefused([&] { kv->Wait(ts); });
      ExpectRefused([&] { kv->Push(keys, ones); });
      ExpectRefused([&] { kv->Pull(keys, &got); });
      ExpectRefused([] { Postoffice::Get()->Barrier(0, kWorkerGroup); });
      ExpectRefused([] { KVWorker<float> other(0, 1); });
      ExpectRefused([] { Start(0); });
      ExpectRefused([] { Finalize(0, true); });
      delete kv;
      std::exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    kv->Wait(ts);
  }
  std::vector<float> got;
  kv->Wait(kv->Pull(keys, &got));
  CHECK_EQ(got[0], 20) << "pushes were lost";
  CHECK_EQ(got[1], 20) << "pushes were lost";
  delete kv;
}

KVServer<float>* MakeServer(const std::string& what) {
  auto* const server = new KVServer<float>(0);
  if (what == "lens") {
    server->set_request_handle(Synchronous());
  } else if (what == "slow") {
    server->set_request_handle([](const KVMeta&, const KVPairs<float>&, KVServer<float>*) {});
  } else {
    server->set_request_handle(KVServerDefaultHandle<float>());
  }
  RegisterExitCallback([server] { delete server; });
  return server;
}

void RunWorker(const std::string& what) {
  if (what == "sum") RunSumWorker(0);
  if (what == "lens") RunLensWorker();
  if (what == "fork") RunForkWorker();
  if (what == "short") {
    KVWorker<float> kv(0, 0);
    std::vector<Key> keys(100000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    std::vector<float> vals;
    std::vector<int> lens(1);
    kv.Wait(kv.Pull(keys, &vals, &lens));
  }
  if (what == "slow") {
    KVWorker<float> kv(0, 0);
    LL << "waiting";
    kv.Wait(kv.Push({1}, {1}));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "sum";
  try {
    Start(0);
    if (what == "simple") return RunSimple(), 0;
    if (what == "early") return RunEarly(), 0;
    if (IsServer()) MakeServer(what);
    if (IsWorker() && what == "threads") return RunThreads(), 0;
    if (IsWorker()) RunWorker(what);
    Finalize(0, true);
  } catch (const shoal::ps::Error& error) {
    LL << "error: " << error.what();
    return 3;
  }
  return 0;
}
