// Requests a second of linear scoring, batch 64, beside the same HTTP server that answers the same
// bytes without looking at the request; and with versions that are exchanged meanwhile.
#include <benchmark/benchmark.h>

#include <atomic>
#include <thread>
#include <vector>

#include "net/http/http_server.h"
#include "net/http/test_raw_peer.h"
#include "serving/endpoint/model_server.h"
#include "serving/inference/test_models.h"

namespace shoal::serving {
namespace {

constexpr int kConnections = 4;
constexpr int kBatch = 64;
constexpr int kRequests = 4000;  // of a connection, in one measurement

// Rows of four columns.
std::string Body(bool tensors) {
  std::string ages;
  std::string zips;
  std::string towns;
  std::string rows;
  for (int i = 0; i < kBatch; ++i) {
    const std::string end = i + 1 < kBatch ? "," : "";
    ages += fmt::format("{}.25{}", 20 + i, end);
    zips += fmt::format("{}{}", 1000 + i, end);
    towns += fmt::format("\"town{}\"{}", i % 9, end);
    rows += fmt::format("{{\"age\":{}.25,\"zip\":{},\"town\":\"town{}\"}}{}", 20 + i, 1000 + i,
                        i % 9, end);
  }
  if (!tensors) return "{\"instances\":[" + rows + "]}";
  return fmt::format(
      "{{\"inputs\":[{{\"name\":\"age\",\"shape\":[{0}],\"datatype\":\"FP64\",\"data\":[{1}]}},"
      "{{\"name\":\"zip\",\"shape\":[{0}],\"datatype\":\"INT64\",\"data\":[{2}]}},"
      "{{\"name\":\"town\",\"shape\":[{0}],\"datatype\":\"BYTES\",\"data\":[{3}]}}]}}",
      kBatch, ages, zips, towns);
}

std::string Request(bool tensors) {
  const std::string body = Body(tensors);
  return fmt::format("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}",
                     tensors ? "/v2/models/m/infer" : "/v1/models/m:predict", body.size(), body);
}

// Sends the request over all connections, one after the other's answer; the number of answers that
// are not 200.
int Load(uint16_t port, const std::string& request) {
  std::atomic<int> failed{0};
  std::vector<std::thread> peers;
  for (int p = 0; p < kConnections; ++p) {
    peers.emplace_back([&] {
      net::RawPeer peer(port);
      for (int i = 0; i < kRequests; ++i) {
        peer.Send(request);
        failed += net::StatusOf(peer.ReadUntil("]}\n")) != "200";
      }
    });
  }
  for (std::thread& peer : peers) peer.join();
  return failed;
}

std::unique_ptr<ModelServer> StartModel(const std::string& path) {
  SaveTableModel(path, "logistic");
  return ModelServer::Start({}, {LoadedModel(path)}).value();
}

void Finish(benchmark::State& state, int64_t failed) {
  state.SetItemsProcessed(state.iterations() * kConnections * kRequests);
  state.counters["failed"] = static_cast<double>(failed);
}

void Linear(benchmark::State& state) {
  const TempDir directory = TempDir::Create().value();
  const auto server = StartModel((directory.path() / "m").string());
  const std::string request = Request(state.range(0) != 0);
  int64_t failed = 0;
  for (auto _ : state) failed += Load(server->port(), request);
  Finish(state, failed);
}

// Without HTTP: of one thread.
void Answer(benchmark::State& state) {
  const TempDir directory = TempDir::Create().value();
  const std::string path = (directory.path() / "m").string();
  SaveTableModel(path, "logistic");
  const auto model = LoadedModel(path);
  const std::string body = Body(state.range(0) != 0);
  for (auto _ : state) {
    const auto reply =
        state.range(0) != 0 ? InferV2(*model, body, {}) : PredictV1(*model, body, {});
    if (!reply.ok()) return state.SkipWithError(reply.status().message().c_str());
  }
  state.SetItemsProcessed(state.iterations());
}

void ConstantBytes(benchmark::State& state) {
  std::string body = "{\"predictions\":[";
  for (int i = 0; i < kBatch; ++i) body += i == 0 ? "0.123456" : ",0.123456";
  body += "]}\n";
  net::HttpServerOptions options;
  options.handler = [&body](const std::shared_ptr<net::HttpExchange>& exchange) {
    net::HttpServerReply reply;
    reply.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
    reply.body = body;
    (void)exchange->Reply(std::move(reply));
  };
  const auto server = net::HttpServer::Start(std::move(options)).value();
  const std::string request = Request(state.range(0) != 0);
  int64_t failed = 0;
  for (auto _ : state) failed += Load(server->port(), request);
  Finish(state, failed);
}

// A swap each millisecond.
void LinearWithSwaps(benchmark::State& state) {
  const TempDir directory = TempDir::Create().value();
  const std::string path = (directory.path() / "m").string();
  const auto server = StartModel(path);
  const std::string request = Request(false);
  std::atomic<bool> ending{false};
  std::atomic<int64_t> swaps{0};
  std::thread swapper([&] {
    const std::string other = (directory.path() / "other").string();
    SaveTableModel(other, "logistic", 0, 0, 8);
    const std::vector versions{LoadedModel(path, "m", 1), LoadedModel(other, "m", 2)};
    for (; !ending; ++swaps) {
      if (!server->Swap(versions[static_cast<size_t>(swaps) % 2]).ok()) std::abort();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  int64_t failed = 0;
  for (auto _ : state) failed += Load(server->port(), request);
  ending = true;
  swapper.join();
  Finish(state, failed);
  state.counters["swaps"] = static_cast<double>(swaps);
}

BENCHMARK(Answer)->Arg(0)->Arg(1);
BENCHMARK(ConstantBytes)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Linear)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(LinearWithSwaps)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shoal::serving
