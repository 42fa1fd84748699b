// As programs were written for ps-lite in 2016: Start and Finalize without arguments, workers and
// servers without a customer's number, the role asked for before Start, the servers made before it.
// With the argument "serverless" nobody makes a server.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
using namespace std;  // NOLINT: as programs of that time do

#include <model.h>

void StartServer() {
  if (!ps::IsServer()) return;
  auto server = new ps::KVServer<float>(0);
  server->set_request_handle(ps::KVServerDefaultHandle<float>());
  ps::RegisterExitCallback([server]() { delete server; });
}

int main(int argc, char** argv) {
  const char* role = ps::Environment::Get()->find("DMLC_ROLE");
  CHECK_NOTNULL(role);
  CHECK_EQ(ps::IsWorker(), string(role) == "worker");
  CHECK_EQ(ps::IsScheduler(), string(role) == "scheduler");
  CHECK(ps::Environment::Get()->find("NOT_THERE") == nullptr);
  CHECK_EQ(ps::GetEnv("DMLC_NUM_WORKER", 0), ps::NumWorkers());
  if (argc < 2) StartServer();
  ps::Start();
  if (ps::IsWorker()) {
    vector<float> xs, ys;
    srand(ps::MyRank() + 1);
    for (int i = 0; i < 2000; i++) {
      float x = static_cast<float>(rand() % 1000) / 500.0f - 1.0f;
      xs.push_back(x);
      ys.push_back(2.0f * x + 1.0f);
    }
    line::Model model(0.05f);
    model.Train(xs, ys);
    ps::Postoffice::Get()->Barrier(ps::kWorkerGroup);
    vector<float> weights = model.Weights();
    LOG(INFO) << "weights " << weights[0] << " " << weights[1];
    CHECK_LT(fabs(weights[0] - 2.0f), 0.01f);
    CHECK_LT(fabs(weights[1] - 1.0f), 0.01f);
  }
  ps::Finalize();
  cout << "finished" << endl;
  return 0;
}
