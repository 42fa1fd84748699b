// ps-lite's interface over Shoal: a program written for it compiles when it includes this instead
// of "ps/ps.h", and runs with the same DMLC_… variables, or as a Shoal job.
//
//   #include <shoal/ps_lite_compat.h>
//   int main() {
//     ps::Start(0);
//     if (ps::IsServer()) {
//       auto* server = new ps::KVServer<float>(0);
//       server->set_request_handle(ps::KVServerDefaultHandle<float>());
//       ps::RegisterExitCallback([server] { delete server; });
//     }
//     if (ps::IsWorker()) {
//       ps::KVWorker<float> worker(0, 0);
//       std::vector<float> rets;
//       worker.Wait(worker.Push({1, 3}, {0.5f, 2}));
//       worker.Wait(worker.Pull({1, 3}, &rets));
//     }
//     ps::Finalize(0);
//   }
//
// Requests and handlers are the program's own, so tables, optimizers and checkpoints of shoal/ps.h
// do not come in. What differs is in docs/ps.md: a node that dies ends the waits of all nodes with
// an Error that names it, connections prove a token, priorities are not looked at.
#pragma once

// ps-lite's own header brings these along, and programs rely on it.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <unordered_map>

#include <shoal/ps_lite_api/kv_pairs.h>
#include <shoal/ps_lite_api/kv_server.h>
#include <shoal/ps_lite_api/kv_worker.h>
#include <shoal/ps_lite_api/simple_app.h>
