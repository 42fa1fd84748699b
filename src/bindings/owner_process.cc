#include "bindings/owner_process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>

namespace shoal::bindings {
namespace {

struct WorkerSlot {
  std::atomic<uint64_t> process{0};  // 0: free
  std::atomic<pid_t> pid{0};         // 0: being written
  std::atomic<int> index{0};
  std::atomic<uint64_t> job{0};
};
constexpr size_t kWorkerSlots = 64;  // workers beyond these are not looked after

// What a process shares with all its children, so that each number is used once and a client that
// one of them closes is closed for all. Without locks: another thread may hold one when a child is
// made.
struct Family {
  std::atomic<uint64_t> last_number{0};
  std::array<WorkerSlot, kWorkerSlots> workers;
};

void* Map(size_t bytes, int sharing) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return at;
}

Family& TheFamily() {
  static Family* const family = new (Map(sizeof(Family), MAP_SHARED)) Family;
  return *family;
}

using Number = std::atomic<uint64_t>;
Number* own_number = nullptr;

// In memory that the kernel empties in a child, however that was made; where it cannot (Linux
// before 4.14), fork() itself does.
Number* MakeNumber() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const at = Map(page, MAP_PRIVATE);
  own_number = new (at) Number(0);
  if (::madvise(at, page, MADV_WIPEONFORK) != 0)
    ::pthread_atfork(nullptr, nullptr, [] { own_number->store(0); });
  return own_number;
}

}  // namespace

uint64_t ThisProcess() {
  static Number* const number = MakeNumber();
  uint64_t now = number->load(std::memory_order_relaxed);
  if (now != 0) return now;
  const uint64_t fresh = TheFamily().last_number.fetch_add(1) + 1;
  return number->compare_exchange_strong(now, fresh) ? fresh : now;
}

OwnerProcess::OwnerProcess() : process_(ThisProcess()), pid_(::getpid()) {}

Status OwnerProcess::Refusal(std::string_view what, std::string_view instead) const {
  return FailedPrecondition(fmt::format(
      "{} was made by process {} and cannot be used in process {}, a child that it forked: the "
      "connections are the parent's; {}",
      what, pid_, ::getpid(), instead));
}

void Abandon(void* object) {
  struct Node {
    void* object;
    Node* next;
  };
  static std::atomic<Node*> abandoned{nullptr};
  Node* const node = new Node{object, abandoned};
  while (!abandoned.compare_exchange_weak(node->next, node)) {
  }
}

Status ConnectedWorker::Check(int index, uint64_t job) {
  const uint64_t own = ThisProcess();
  for (const WorkerSlot& slot : TheFamily().workers) {
    const uint64_t process = slot.process.load(std::memory_order_acquire);
    const pid_t pid = slot.pid.load(std::memory_order_acquire);
    if (process == 0 || process == own || pid == 0 || slot.index != index || slot.job != job)
      continue;
    if (::kill(pid, 0) != 0 && errno == ESRCH) continue;
    return FailedPrecondition(fmt::format(
        "index: process {} is worker {} of these servers already, and forked this process or was "
        "forked with it: the servers would drop its connection; expected another index, or -1 for "
        "an observer (it pulls and pushes, and takes no part in clocks, barriers and checkpoints)",
        pid, index));
  }
  return Status::Ok();
}

ConnectedWorker::ConnectedWorker(int index, uint64_t job) : slot_(0) {
  const uint64_t own = ThisProcess();
  for (; slot_ < kWorkerSlots; ++slot_) {
    WorkerSlot& slot = TheFamily().workers[slot_];
    uint64_t was = slot.process;
    const pid_t pid = slot.pid;
    const bool left = was != 0 && pid != 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
    if ((was != 0 && !left) || !slot.process.compare_exchange_strong(was, own)) continue;
    slot.pid = 0;
    slot.index = index;
    slot.job = job;
    slot.pid.store(::getpid(), std::memory_order_release);
    return;
  }
}

ConnectedWorker::~ConnectedWorker() {
  if (slot_ == kWorkerSlots) return;
  TheFamily().workers[slot_].pid = 0;
  TheFamily().workers[slot_].process = 0;
}

}  // namespace shoal::bindings
