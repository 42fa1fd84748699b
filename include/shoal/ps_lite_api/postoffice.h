// The base of shoal/ps_lite_compat.h: one node of a ps-lite job (scheduler, server or worker),
// its connections to the others, and the queues of messages received.
//
// ps-lite's programs know one node a process, so there is one, Postoffice::Get(). Its role and
// address come from DMLC_ROLE, DMLC_NUM_WORKER, DMLC_NUM_SERVER, DMLC_PS_ROOT_URI,
// DMLC_PS_ROOT_PORT, DMLC_NODE_HOST and PORT, or, in a task of a Shoal job with the roles
// scheduler, server and worker, from that. Every connection proves the job's token
// (SHOAL_TOKEN_FILE). Waits end with an Error that names the node that is gone. Wire:
// docs/formats/lite-wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <shoal/status.h>

namespace shoal::ps {
SHOAL_PS_INLINE namespace v1 {
  namespace lite {

  // Bytes with a shared owner; never copied.
  struct Bytes {
    std::shared_ptr<void> owner;
    const void* data = nullptr;
    size_t size = 0;
  };

  struct Message {
    int sender = 0;  // node ids: scheduler 1, server rank r 8 + 2 r, worker rank r 9 + 2 r
    int recver = 0;
    int app = 0;
    int customer = 0;
    int timestamp = 0;
    int head = 0;
    bool request = false;
    bool push = false;
    bool pull = false;
    bool simple = false;
    std::string body = {};          // at most 64 MiB
    std::vector<Bytes> parts = {};  // at most 3: keys, values, lengths
  };

  inline constexpr int kSchedulerId = 1;  // and groups are sums of these
  inline constexpr int kServers = 2;
  inline constexpr int kWorkers = 4;

  class Postoffice {
   public:
    static Postoffice& Get();

    // Variables that count instead of the process's own. Before Start.
    void SetVariables(std::map<std::string, std::string> variables);
    // Joins the job; returns when all of its nodes have. Throws Error that names the missing node
    // or variable.
    void Start(int customer, bool barrier);
    // Waits for all nodes (if `barrier`), leaves, runs the callback.
    void Finalize(int customer, bool barrier);
    void RegisterExitCallback(std::function<void()> callback);
    // Returns when all nodes of the group are in it.
    void Barrier(int customer, int group);

    // Also before Start, from the variables. Throw Error with the variable that is missing.
    int num_workers() const;
    int num_servers() const;
    bool is_worker() const;
    bool is_server() const;
    bool is_scheduler() const;
    // Since Start.
    int id() const;
    int rank() const;  // within its role
    // Ids of a group's nodes, or the id itself.
    std::vector<int> IdsOf(int group) const;

    // Any thread; returns when the bytes are on their way. Throws Error if the receiver is gone.
    void Send(const Message& message);

   private:
    friend class Customer;
    Postoffice();
    ~Postoffice();
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

  // Gets the messages of one (app, customer) in a thread of its own, and knows which requests have
  // been answered, and by which nodes.
  class Customer {
   public:
    using Handler = std::function<void(const Message&)>;
    Customer(int app, int customer, Handler handler);
    ~Customer();
    Customer(const Customer&) = delete;
    Customer& operator=(const Customer&) = delete;

    // False in a forked child of the process that made it: there nothing of it may be used.
    bool IsOfThisProcess() const;
    int app_id() const;
    int customer_id() const;
    int id() const { return app_id(); }  // as it was called in 2016
    // A request to all nodes of a group; its number.
    int NewRequest(int group);
    // Waits for all answers. Throws Error when a node is gone.
    void WaitRequest(int timestamp);
    int NumResponse(int timestamp);
    void AddResponse(int timestamp, int count = 1);

    struct Impl;  // the library's

   private:
    friend class Postoffice;
    std::unique_ptr<Impl> impl_;
  };

  }  // namespace lite
}  // namespace v1
}  // namespace shoal::ps
