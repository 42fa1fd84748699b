// The extension module behind `import shoal.ps`: include/shoal/ps.h for Python.
//
// Nothing here blocks with the GIL held. Memory of arrays is held by the Pending object of a
// request until it is done. What people see, defaults and docstrings are in shoal/ps/__init__.py
// and _core.pyi.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <shoal/ps.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "no_gil.h"

namespace py = pybind11;
namespace ps = shoal::ps::v1;

namespace shoal::python {
namespace {

// Longer than any wait, and short enough to be added to any time.
constexpr double kForever = 1e9;

ps::Milliseconds Time(double seconds) {
  if (std::isnan(seconds)) throw py::value_error("timeout: got nan, expected seconds");
  return std::chrono::duration_cast<ps::Milliseconds>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, kForever)));
}

// Status codes become exceptions of Python's own kinds where there are such.
PyObject* exception_base = nullptr;  // shoal.ps.Error; lives as long as the module

unsigned long main_thread = 0;  // Python's, which alone handles signals

// Asked by threads that wait: whether Ctrl-C, or another signal whose handler raises, came.
bool Interrupted() {
  if (PyThread_get_thread_ident() != main_thread) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0;
}

[[noreturn]] void Raise(const ps::Status& status) {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  PyObject* kind = exception_base;
  switch (status.code()) {
    case ps::Code::kInvalidArgument:
    case ps::Code::kOutOfRange:
    case ps::Code::kAlreadyExists:
      kind = PyExc_ValueError;
      break;
    case ps::Code::kDeadlineExceeded:
      kind = PyExc_TimeoutError;
      break;
    case ps::Code::kUnavailable:
      kind = PyExc_ConnectionError;
      break;
    case ps::Code::kPermissionDenied:
    case ps::Code::kUnauthenticated:
      kind = PyExc_PermissionError;
      break;
    case ps::Code::kNotFound:
      kind = PyExc_KeyError;
      break;
    default:
      break;
  }
  PyErr_SetString(kind, status.message().c_str());
  throw py::error_already_set();
}

void Check(const ps::Status& status) {
  if (!status.ok()) Raise(status);
}

template <typename T>
T Value(ps::Result<T> result) {
  if (!result.ok()) Raise(result.status());
  return std::move(result).value();
}

// Ctrl-C that was heard (Interrupted) just when what was waited for came.
void RaiseInterrupt() {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
}

// Runs what may block, without the GIL.
template <typename Run>
auto Blocking(const Run& run) {
  auto result = [&run] {
    const NoGil no_gil;
    return run();
  }();
  RaiseInterrupt();
  return result;
}

// Waits in slices, so that Ctrl-C is heard.
constexpr double kSlice = 0.1;

class PyClient;

// One request and the memory it uses.
class Pending {
 public:
  Pending(std::shared_ptr<PyClient> client, py::object result)
      : client_(std::move(client)), result_(std::move(result)) {}
  ~Pending();
  py::object Wait(double timeout);
  bool Done() const;
  // It is done, or never began.
  void Forget() {
    held.clear();
    widened.clear();
    waited_ = true;
  }

  std::vector<Array> held;
  std::vector<uint64_t> widened;
  ps::Ticket ticket;

 private:
  std::shared_ptr<PyClient> client_;
  py::object result_;  // what wait() returns: the out array, or None
  bool waited_ = false;
};

// Raises shoal.ps.Error in a forked child of `maker`. (The library refuses the calls too; this says
// it in Python's terms, and for properties.)
void CheckProcess(const char* what, pid_t maker) {
  if (maker == ::getpid()) return;
  Raise({ps::Code::kFailedPrecondition,
         std::string(what) + " was made by process " + std::to_string(maker) +
             " and cannot be used in process " + std::to_string(::getpid()) +
             ", a child that it forked: the connections are the parent's; call shoal.ps.connect("
             "index=-1) in the child for an observer, or give it an index of its own"});
}

// Which servers came back, in order: kept here, for a thread of the library may not call Python.
class RestartLog {
 public:
  void Add(int server, int64_t checkpoint) {
    const std::lock_guard lock(mu_);
    restarts_.emplace_back(server, checkpoint);
  }
  std::vector<std::pair<int, int64_t>> All() const {
    const std::lock_guard lock(mu_);
    return restarts_;
  }

 private:
  mutable std::mutex mu_;
  std::vector<std::pair<int, int64_t>> restarts_;  // guarded by mu_
};

class PyClient : public std::enable_shared_from_this<PyClient> {
  struct Abandoned {
    ps::Ticket ticket;
    std::vector<Array> held;
    std::vector<uint64_t> widened;
  };
  std::vector<Abandoned> abandoned_;  // guarded by the GIL; outlives the client below

 public:
  PyClient(std::unique_ptr<ps::Client> made, std::shared_ptr<const RestartLog> log)
      : client(std::move(made)), restarts(std::move(log)) {}
  // A call under way keeps the client alive over a Close.
  std::shared_ptr<ps::Client> Get() const {
    if (client == nullptr) throw py::value_error("this client has been closed");
    CheckProcess("this client", maker_);
    return client;
  }
  void Close() {
    std::shared_ptr<ps::Client> last = std::move(client);
    const std::weak_ptr<ps::Client> gone = last;
    {
      const NoGil no_gil;
      last.reset();
    }
    if (gone.expired()) abandoned_.clear();  // else another thread is still at work with it
  }
  // Keeps the memory of a request without a waiter until the request is done.
  void Abandon(ps::Ticket ticket, std::vector<Array> held, std::vector<uint64_t> widened) {
    abandoned_.push_back({ticket, std::move(held), std::move(widened)});
  }
  // Lets go of the memory of those that are done.
  void Tidy() {
    if (abandoned_.empty() || client == nullptr) return;
    std::erase_if(abandoned_, [this](const Abandoned& one) {
      if (!client->Done(one.ticket)) return false;
      const ps::Status forgotten = client->Wait(one.ticket, ps::Milliseconds(0));
      return true;
    });
  }
  std::shared_ptr<ps::Client> client;  // guarded by the GIL
  const std::shared_ptr<const RestartLog> restarts;

 private:
  const pid_t maker_ = ::getpid();
};

Pending::~Pending() {
  const auto client = client_->client;
  if (waited_ || client == nullptr) return;
  // Wait was not called, or timed out: the memory may be read and written until the request is
  // done.
  client_->Abandon(ticket, std::move(held), std::move(widened));
  client_->Tidy();
}

py::object Pending::Wait(double timeout) {
  if (waited_) return result_;
  const auto client = client_->Get();
  const auto end = std::chrono::steady_clock::now() + Time(timeout);
  while (true) {
    ps::Status status;
    {
      const NoGil no_gil;
      const auto left =
          std::chrono::duration_cast<ps::Milliseconds>(end - std::chrono::steady_clock::now());
      status = client->Wait(ticket, std::clamp(left, ps::Milliseconds(0), Time(kSlice)));
    }
    if (status.ok()) break;
    const bool late = status.code() == ps::Code::kDeadlineExceeded;
    if (!late) {
      Forget();
      Raise(status);
    }
    if (std::chrono::steady_clock::now() >= end) Raise(status);
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  Forget();
  return result_;
}

bool Pending::Done() const {
  return waited_ || client_->client == nullptr || client_->client->Done(ticket);
}

// A table and the client that made it.
class PyTable {
 public:
  PyTable(std::shared_ptr<PyClient> client, ps::Table table, std::string name)
      : client_(std::move(client)), table_(table), name_(std::move(name)) {}

  std::shared_ptr<Pending> Pull(const py::object& keys, const py::object& out) {
    auto pending = std::make_shared<Pending>(client_, out);
    const auto k = TakeKeys(keys, pending.get());
    const auto o = TakeOut(out, k.size(), pending.get());
    return Issue(pending, [&](ps::Client& c) { return c.Pull(table_, k, o); });
  }
  std::shared_ptr<Pending> Push(const py::object& keys, const py::object& deltas) {
    auto pending = std::make_shared<Pending>(client_, py::none());
    const auto k = TakeKeys(keys, pending.get());
    const auto d = TakeDeltas(deltas, k.size(), pending.get());
    return Issue(pending, [&](ps::Client& c) { return c.Push(table_, k, d); });
  }
  std::shared_ptr<Pending> PushPull(const py::object& keys, const py::object& deltas,
                                    const py::object& out) {
    auto pending = std::make_shared<Pending>(client_, out);
    const auto k = TakeKeys(keys, pending.get());
    const auto d = TakeDeltas(deltas, k.size(), pending.get());
    const auto o = TakeOut(out, k.size(), pending.get());
    return Issue(pending, [&](ps::Client& c) { return c.PushPull(table_, k, d, o); });
  }
  std::shared_ptr<Pending> Call(const std::string& function, const py::object& keys,
                                const std::string& argument, const py::object& deltas,
                                const py::object& out) {
    auto pending = std::make_shared<Pending>(client_, out);
    const auto k = TakeKeys(keys, pending.get());
    ps::Client::CallRows rows;
    if (!deltas.is_none()) rows.deltas = TakeDeltas(deltas, k.size(), pending.get());
    if (!out.is_none()) rows.out = TakeOut(out, k.size(), pending.get());
    return Issue(pending,
                 [&](ps::Client& c) { return c.Call(table_, function, k, argument, rows); });
  }

  const std::string& name() const { return name_; }
  uint32_t dim() const { return table_.dim; }
  py::object rows() const {
    return table_.rows == 0 ? py::object(py::none()) : py::object(py::int_(table_.rows));
  }

 private:
  std::span<const uint64_t> TakeKeys(const py::object& keys, Pending* pending) {
    pending->held.push_back(View(keys, "keys"));
    return Keys(pending->held.back(), &pending->widened);
  }
  std::span<const float> TakeDeltas(const py::object& deltas, size_t n, Pending* pending) {
    pending->held.push_back(View(deltas, "deltas"));
    return Values(pending->held.back(), "deltas", n, table_.dim);
  }
  std::span<float> TakeOut(const py::object& out, size_t n, Pending* pending) {
    pending->held.push_back(View(out, "out"));
    return WritableValues(pending->held.back(), "out", n, table_.dim);
  }
  template <typename Start>
  std::shared_ptr<Pending> Issue(const std::shared_ptr<Pending>& pending, const Start& start) {
    const auto client = client_->Get();
    client_->Tidy();
    auto ticket = [&] {
      const NoGil no_gil;
      return start(*client);
    }();
    if (!ticket.ok()) {
      pending->Forget();
      Raise(ticket.status());
    }
    // It is under way, so its memory is kept whatever happens now.
    pending->ticket = *ticket;
    RaiseInterrupt();
    return pending;
  }

  const std::shared_ptr<PyClient> client_;
  const ps::Table table_;
  const std::string name_;
};

struct OptimizerKind {
  ps::Optimizer first;             // with the defaults of include/shoal/ps.h
  std::vector<std::string> takes;  // parameters
};

const std::map<std::string, OptimizerKind>& OptimizerKinds() {
  using ps::Optimizer;
  const float lr = Optimizer().lr;
  static const std::map<std::string, OptimizerKind> kinds = {
      {"add", {Optimizer::Add(), {}}},
      {"sgd", {Optimizer::Sgd(lr), {"lr"}}},
      {"adagrad", {Optimizer::Adagrad(lr), {"lr", "eps"}}},
      {"momentum", {Optimizer::Momentum(lr), {"lr", "momentum"}}},
      {"adam", {Optimizer::Adam(lr), {"lr", "beta1", "beta2", "eps"}}},
      {"ftrl", {Optimizer::Ftrl(lr, 1, 0, 0), {"lr", "beta", "l1", "l2"}}},
      {"combine", {Optimizer::Combine(), {}}},
      {"function", {Optimizer::Function(""), {"function", "argument", "state_planes"}}}};
  return kinds;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

ps::Optimizer OptimizerOf(const std::string& kind, const py::dict& fields) {
  const auto found = OptimizerKinds().find(kind);
  if (found == OptimizerKinds().end()) {
    throw py::value_error(
        "optimizer: got '" + kind +
        "', expected add, sgd, adagrad, momentum, adam, ftrl, combine or function");
  }
  const std::vector<std::string>& takes = found->second.takes;
  ps::Optimizer optimizer = found->second.first;
  const std::map<std::string, float*> floats = {
      {"lr", &optimizer.lr},       {"eps", &optimizer.eps},     {"momentum", &optimizer.momentum},
      {"beta1", &optimizer.beta1}, {"beta2", &optimizer.beta2}, {"beta", &optimizer.beta},
      {"l1", &optimizer.l1},       {"l2", &optimizer.l2}};
  for (const auto& [key, value] : fields) {
    const auto name = key.cast<std::string>();
    if (std::find(takes.begin(), takes.end(), name) == takes.end()) {
      throw py::type_error("optimizer " + kind + ": it has no parameter '" + name +
                           "', expected some of: " + Listed(takes));
    }
    if (const auto at = floats.find(name); at != floats.end()) {
      *at->second = Argument<float>(name, value);
    } else if (name == "function") {
      optimizer.function = Argument<std::string>(name, value);
    } else if (name == "argument") {
      optimizer.argument = Argument<std::string>(name, value);
    } else {
      optimizer.state_planes = Argument<uint32_t>(name, value);
    }
  }
  return optimizer;
}

ps::WireType WireOf(const std::string& name) {
  if (name == "f32") return ps::WireType::kF32;
  if (name == "bf16") return ps::WireType::kBf16;
  if (name == "int8") return ps::WireType::kInt8;
  throw py::value_error("wire: got '" + name + "', expected f32, bf16 or int8");
}

struct TableArguments {
  std::string name;
  uint32_t dim;
  std::optional<uint64_t> rows;
};

std::shared_ptr<PyTable> MakeTable(const std::shared_ptr<PyClient>& client, TableArguments what,
                                   const ps::Optimizer& optimizer, const py::dict& rest) {
  ps::TableSpec spec;
  spec.name = what.name;
  spec.dim = what.dim;
  if (what.rows && *what.rows == 0) throw py::value_error("rows: got 0, expected 1 or more");
  spec.rows = what.rows.value_or(0);
  spec.optimizer = optimizer;
  if (!rest["uniform"].is_none()) {
    const auto range = rest["uniform"].cast<std::pair<float, float>>();
    spec.initializer =
        ps::Initializer::Uniform(range.first, range.second, Field<uint64_t>(rest, "seed"));
  }
  spec.push = WireOf(Field<std::string>(rest, "push"));
  spec.pull = WireOf(Field<std::string>(rest, "pull"));
  const auto timeout = Time(Field<double>(rest, "timeout"));
  const auto inner = client->Get();
  auto made = Blocking([&] { return inner->CreateTable(spec, timeout); });
  return std::make_shared<PyTable>(client, Value(std::move(made)), what.name);
}

ps::Consistency ConsistencyOf(const std::string& name, uint32_t staleness) {
  using Kind = ps::Consistency::Kind;
  if (name == "asp") return {Kind::kAsp, 0};
  if (name == "bsp") return {Kind::kBsp, 0};
  if (name == "ssp") return {Kind::kSsp, staleness};
  throw py::value_error("consistency: got '" + name + "', expected bsp, ssp or asp");
}

std::shared_ptr<PyClient> Connect(const py::dict& arguments) {
  ps::ClientOptions options;
  if (arguments["servers"].is_none()) {
    options = Value(ps::ClientOptions::FromEnvironment(Field<std::string>(arguments, "role")));
  } else {
    options.servers = Field<std::vector<std::string>>(arguments, "servers");
  }
  if (arguments["token"].is_none() && !arguments["servers"].is_none())
    throw py::value_error("token: got None, expected the secret that the servers were given");
  if (!arguments["token"].is_none()) options.token = Field<std::string>(arguments, "token");
  if (!arguments["index"].is_none()) options.index = Field<int>(arguments, "index");
  options.consistency = ConsistencyOf(Field<std::string>(arguments, "consistency"),
                                      Field<uint32_t>(arguments, "staleness"));
  options.shared_memory = Field<bool>(arguments, "shared_memory");
  options.ucx = Field<bool>(arguments, "ucx");
  options.connect_timeout = Time(Field<double>(arguments, "timeout"));
  options.reconnect_timeout = Time(Field<double>(arguments, "reconnect_timeout"));
  options.window_bytes = Field<size_t>(arguments, "window_bytes");
  ps::ClientHooks hooks;
  hooks.accept_data_loss = Field<bool>(arguments, "accept_data_loss");
  const auto log = std::make_shared<RestartLog>();
  hooks.on_server_restart = [log](int server, int64_t checkpoint) { log->Add(server, checkpoint); };
  hooks.interrupted = Interrupted;
  auto client = Blocking([&] { return ps::Client::Connect(std::move(options), hooks); });
  return std::make_shared<PyClient>(Value(std::move(client)), log);
}

py::dict CountersOf(const ps::Counters& counters) {
  py::dict out;
  out["rows_pushed"] = counters.rows_pushed;
  out["rows_pulled"] = counters.rows_pulled;
  out["bytes_pushed"] = counters.bytes_pushed;
  out["bytes_pulled"] = counters.bytes_pulled;
  out["requests"] = counters.requests;
  return out;
}

// A server of this process.
class PyServer {
 public:
  explicit PyServer(const py::dict& arguments) {
    ps::ServerOptions options;
    options.index = Field<int>(arguments, "index");
    options.servers = Field<int>(arguments, "servers");
    options.workers = Field<int>(arguments, "workers");
    options.token = Field<std::string>(arguments, "token");
    options.host = Field<std::string>(arguments, "host");
    options.port = Field<uint16_t>(arguments, "port");
    options.threads = Field<int>(arguments, "threads");
    options.checkpoint_dir = Field<std::string>(arguments, "checkpoint_dir");
    options.keep_checkpoints = Field<int>(arguments, "keep_checkpoints");
    auto server = Blocking([&] { return ps::Server::Start(std::move(options)); });
    server_ = Value(std::move(server));
  }
  ps::Server& Get() {
    if (server_ == nullptr) throw py::value_error("this server has been closed");
    CheckProcess("this server", maker_);
    return *server_;
  }
  void Close() {
    const NoGil no_gil;
    server_.reset();
  }

 private:
  std::unique_ptr<ps::Server> server_;
  const pid_t maker_ = ::getpid();
};

void BindTable(py::module_& m) {
  py::class_<Pending, std::shared_ptr<Pending>>(m, "Request")
      .def("wait", &Pending::Wait, py::arg("timeout") = 60.0)
      .def("done", &Pending::Done);
  py::class_<PyTable, std::shared_ptr<PyTable>>(m, "Table")
      .def("_pull", &PyTable::Pull)
      .def("_push", &PyTable::Push)
      .def("_push_pull", &PyTable::PushPull)
      .def("_call", &PyTable::Call)
      .def_property_readonly("name", &PyTable::name)
      .def_property_readonly("dim", &PyTable::dim)
      .def_property_readonly("rows", &PyTable::rows);
}

void BindState(py::class_<PyClient, std::shared_ptr<PyClient>>* type) {
  (*type)
      .def("_put_blob",
           [](PyClient& c, const std::string& name, const std::string& bytes) {
             const auto client = c.Get();
             Check(Blocking([&] { return client->PutBlob(name, bytes); }));
           })
      .def("_get_blob",
           [](PyClient& c, const std::string& name) {
             const auto client = c.Get();
             return py::bytes(Value(Blocking([&] { return client->GetBlob(name); })));
           })
      .def("_set_progress",
           [](PyClient& c, const std::string& bytes) {
             const auto client = c.Get();
             Check(Blocking([&] { return client->SetProgress(bytes); }));
           })
      .def("_get_progress", [](PyClient& c, int worker) {
        const auto client = c.Get();
        return py::bytes(Value(Blocking([&] { return client->GetProgress(worker); })));
      });
}

void BindClient(py::module_& m) {
  auto type = py::class_<PyClient, std::shared_ptr<PyClient>>(m, "Client");
  BindState(&type);
  type.def("_table",
           [](const std::shared_ptr<PyClient>& c, std::string name, uint32_t dim,
              std::optional<uint64_t> rows, const std::string& kind, const py::dict& fields,
              const py::dict& rest) {
             return MakeTable(c, {std::move(name), dim, rows}, OptimizerOf(kind, fields), rest);
           })
      .def("_flush",
           [](PyClient& c, double t) {
             const auto client = c.Get();
             Check(Blocking([&] { return client->Flush(Time(t)); }));
           })
      .def("_clock",
           [](PyClient& c, uint64_t n, double t) {
             const auto client = c.Get();
             Check(Blocking([&] { return client->Clock(n, Time(t)); }));
           })
      .def("_barrier",
           [](PyClient& c, const std::string& name, double t) {
             const auto client = c.Get();
             Check(Blocking([&] { return client->Barrier(name, Time(t)); }));
           })
      .def("_checkpoint",
           [](PyClient& c, double t) {
             const auto client = c.Get();
             const auto info = Value(Blocking([&] { return client->Checkpoint(Time(t)); }));
             return py::make_tuple(info.id, info.bytes);
           })
      .def("_leave",
           [](PyClient& c, double t) {
             const auto client = c.Get();
             Check(Blocking([&] { return client->Leave(Time(t)); }));
           })
      .def("close", &PyClient::Close)
      .def_property_readonly("restored_checkpoint",
                             [](PyClient& c) { return c.Get()->restored_checkpoint(); })
      .def_property_readonly("_server_restarts", [](PyClient& c) { return c.restarts->All(); })
      .def_property_readonly("counters",
                             [](PyClient& c) { return CountersOf(c.Get()->counters()); });
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  main_thread =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  exception_base = PyErr_NewException("shoal.ps.Error", PyExc_RuntimeError, nullptr);
  m.attr("Error") = py::reinterpret_borrow<py::object>(exception_base);
  BindTable(m);
  BindClient(m);
  m.def("connect", &Connect);
  py::class_<PyServer>(m, "Server")
      .def(py::init<const py::dict&>())
      .def("close", &PyServer::Close)
      .def_property_readonly("address", [](PyServer& s) { return s.Get().address(); })
      .def_property_readonly("restored_checkpoint",
                             [](PyServer& s) { return s.Get().restored_checkpoint(); })
      .def_property_readonly("counters",
                             [](PyServer& s) { return CountersOf(s.Get().counters()); });
}

}  // namespace shoal::python
