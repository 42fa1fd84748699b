#include "ps/transport/ucx_pipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/bytes.h"
#include "base/id.h"
#include "base/mutex.h"
#include "ps/transport/ucx_library.h"

namespace shoal::ps {

uint64_t UcxTag(std::string_view token, const Nonces& nonces) {
  const std::string mac =
      HmacSha256Hex(token, fmt::format("shoal-ps ucx {} {}", nonces.server, nonces.client));
  return std::strtoull(mac.substr(0, 16).c_str(), nullptr, 16);
}

#if SHOAL_HAS_UCX

namespace {

// The lowest bit of a tag: a message holds bytes, or says how many messages were read.
enum Kind : uint64_t { kBytes = 0, kReadSoFar = 1 };
constexpr uint64_t kWholeTag = ~uint64_t{0};
// The sender is told after so many messages,
constexpr uint64_t kTellAfter = kUcxMessages / 4;
// and before it must have heard it there can be so many tellings under way.
constexpr size_t kTellings = kUcxMessages / kTellAfter + 1;
constexpr int kMovesALook = 64;
constexpr int kTriesToSleep = 4;
// What takes longer to be given up is of an end that is gone.
constexpr int kMovesAnEnd = 1000;

// A message and its memory, which stays while UCX has it.
struct Message {
  char* bytes = nullptr;
  void* request = nullptr;  // UCX has it
  bool here = false;        // received; of `size` bytes, of which `read` were read
  size_t size = 0;
  size_t read = 0;
};

Status Failure(const UcxLibrary& ucx, const char* what, ucs_status_t status) {
  return FailedPrecondition(
      fmt::format("transport ucx: {}: {} (UCX_TLS and UCX_NET_DEVICES say which ways UCX may take)",
                  what, ucx.status_string(status)));
}

// UCX's shared memory cannot tell of a peer that is gone, and where it is asked to it is no way at
// all. Where nothing else is allowed it goes without: the socket tells. Elsewhere a connection that
// breaks must be heard of, or UCX ends the process.
ucp_err_handling_mode_t ModeFor(const char* ways) {
  constexpr std::string_view kSilent[] = {"posix", "sysv", "mm", "sm", "shm", "self", "cma"};
  std::string_view rest = ways == nullptr ? "" : ways;
  if (rest.empty()) return UCP_ERR_HANDLING_MODE_PEER;
  while (!rest.empty()) {
    const std::string_view way = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), way.size() + 1));
    if (std::find(std::begin(kSilent), std::end(kSilent), way) == std::end(kSilent))
      return UCP_ERR_HANDLING_MODE_PEER;
  }
  return UCP_ERR_HANDLING_MODE_NONE;
}

Status BadAddress(std::string_view what) {
  return InvalidArgument(fmt::format("transport ucx: the other end's address {}", what));
}

}  // namespace

struct UcxPipe::Ends {
  explicit Ends(const UcxLibrary* library) : ucx(library) {}
  ~Ends();

  Status Make();
  Status Address(std::string* address) const;
  Status Connect(std::string_view peer);
  bool Sending() const;
  template <size_t n>
  void LetGo(std::array<Message, n>* messages, bool cancel);
  void DropUnasked();
  void Break(const Status& why) {
    if (end.ok()) end = why;
  }
  void Break(ucs_status_t status) {
    Break(Unavailable(fmt::format("UCX: {}", ucx->status_string(status))));
  }

  // Lays the message's memory out for one that comes.
  void Lay(Message* message, Kind kind, size_t room);
  // Whether it has come.
  bool Here(Message* message);
  void Post(Message* message, Kind kind, size_t size);
  bool IsFree(Message* message);
  // Lets UCX work, and looks at what that brought about the other direction.
  void Move();
  void Hear();
  // Says how much was read, if it is time to.
  void Tell();
  size_t SendOne(std::span<const iovec> pieces, size_t skip);

  const UcxLibrary* const ucx;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_ep_h ep = nullptr;
  uint64_t tag = 0;  // of bytes
  int event_fd = -1;

  mutable Mutex mu;  // guards all below, and every call of UCX
  Status end;
  ucs_status_t failed = UCS_OK;  // what UCX's callback heard
  std::unique_ptr<char[]> memory;
  std::array<Message, kUcxMessages> in, out;
  std::array<Message, kTellings> heard, told;
  // Messages since the beginning:
  uint64_t sent = 0;
  uint64_t sent_read = 0;  // of these, read at the other end
  uint64_t got = 0;        // read here
  uint64_t got_told = 0;   // of these, told
  uint64_t tellings = 0;   // sent
  uint64_t hearings = 0;   // received
};

Status UcxPipe::Ends::Make() {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucx->config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return Failure(*ucx, "its settings", status);
  // A message goes off without its receiver's help: its memory lies ready, and a sender that
  // computes need not be asked back.
  if (std::getenv("UCX_RNDV_THRESH") == nullptr) ucx->config_modify(config, "RNDV_THRESH", "inf");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  status = ucx->init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context);
  ucx->config_release(config);
  if (status != UCS_OK) {
    context = nullptr;
    return Failure(*ucx, "it does not start", status);
  }
  ucp_worker_params_t settings{};
  settings.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  settings.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  status = ucx->worker_create(context, &settings, &worker);
  if (status != UCS_OK) {
    worker = nullptr;
    return Failure(*ucx, "an end of a connection", status);
  }
  status = ucx->worker_get_efd(worker, &event_fd);
  if (status != UCS_OK) return Failure(*ucx, "waiting without a processor", status);
  constexpr size_t kTold = 2 * kTellings * sizeof(uint64_t);
  memory = std::make_unique_for_overwrite<char[]>(2 * kUcxMessages * kUcxMessage + kTold);
  char* at = memory.get();
  for (auto* messages : {&in, &out}) {
    for (Message& message : *messages) message.bytes = std::exchange(at, at + kUcxMessage);
  }
  for (auto* messages : {&heard, &told}) {
    for (Message& message : *messages) message.bytes = std::exchange(at, at + sizeof(uint64_t));
  }
  return Status::Ok();
}

// u16 major, u16 minor, u32 CRC-32C of the rest, UCX's own.
Status UcxPipe::Ends::Address(std::string* address) const {
  ucp_address_t* own = nullptr;
  size_t size = 0;
  const ucs_status_t status = ucx->worker_get_address(worker, &own, &size);
  if (status != UCS_OK) return Failure(*ucx, "its address", status);
  ByteWriter writer(address);
  writer.Put(static_cast<uint16_t>(ucx->major));
  writer.Put(static_cast<uint16_t>(ucx->minor));
  writer.Put(Crc32c(own, size));
  address->append(reinterpret_cast<const char*>(own), size);
  ucx->worker_release_address(worker, own);
  if (address->size() <= kMaxUcxAddress) return Status::Ok();
  return FailedPrecondition(
      fmt::format("transport ucx: an address of {} bytes, expected at most {}; name fewer devices "
                  "in UCX_NET_DEVICES",
                  address->size(), kMaxUcxAddress));
}

Status UcxPipe::Ends::Connect(std::string_view peer) {
  if (peer.size() > kMaxUcxAddress) return BadAddress("is too long");
  ByteReader reader(peer);
  uint16_t major = 0, minor = 0;
  uint32_t crc = 0;
  if (!reader.Get(&major).ok() || !reader.Get(&minor).ok() || !reader.Get(&crc).ok() ||
      reader.remaining() == 0) {
    return BadAddress("is too short");
  }
  if (major != ucx->major || minor != ucx->minor) {
    return FailedPrecondition(fmt::format(
        "transport ucx: the other end has UCX {}.{}, here it is {}.{}: install the same everywhere",
        major, minor, ucx->major, ucx->minor));
  }
  const std::string own(peer.substr(peer.size() - reader.remaining()));
  if (Crc32c(own.data(), own.size()) != crc) return BadAddress("does not match its checksum");
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(own.data());
  params.err_mode = ModeFor(std::getenv("UCX_TLS"));
  params.err_handler.cb = [](void* user, ucp_ep_h /*ep*/, ucs_status_t status) {
    static_cast<Ends*>(user)->failed = status;
  };
  params.err_handler.arg = this;
  const ucs_status_t status = ucx->ep_create(worker, &params, &ep);
  if (status == UCS_OK) return Status::Ok();
  ep = nullptr;
  return Failure(*ucx, "no way to the other end", status);
}

bool UcxPipe::Ends::Sending() const {
  const auto any = [](const auto& messages) {
    return std::any_of(messages.begin(), messages.end(),
                       [](const Message& message) { return message.request != nullptr; });
  };
  return any(out) || any(told);
}

// Gives up the messages that UCX still has; those that are through are let go of.
template <size_t n>
void UcxPipe::Ends::LetGo(std::array<Message, n>* messages, bool cancel) {
  for (Message& message : *messages) {
    if (message.request == nullptr) continue;
    if (cancel) ucx->request_cancel(worker, message.request);
    if (ucx->request_check_status(message.request) == UCS_INPROGRESS) continue;
    ucx->request_free(std::exchange(message.request, nullptr));
  }
}

// The other end is not asked. What UCX still has of the memory it gives back before that goes.
UcxPipe::Ends::~Ends() {
  void* closing = nullptr;
  if (ep != nullptr) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    closing = ucx->ep_close_nbx(ep, &param);
    if (UCS_PTR_IS_ERR(closing)) closing = nullptr;
  }
  for (int turn = 0; turn < kMovesAnEnd && (Sending() || closing != nullptr); ++turn) {
    ucx->worker_progress(worker);
    LetGo(&out, false);
    LetGo(&told, false);
    if (closing == nullptr || ucx->request_check_status(closing) == UCS_INPROGRESS) continue;
    ucx->request_free(std::exchange(closing, nullptr));
  }
  LetGo(&in, true);
  LetGo(&heard, true);
  DropUnasked();
  if (worker != nullptr) ucx->worker_destroy(worker);
  if (context != nullptr) ucx->cleanup(context);
}

void UcxPipe::Ends::DropUnasked() {
  if (worker == nullptr) return;
  ucp_tag_recv_info_t info{};
  const ucp_request_param_t param{};
  while (ucp_tag_message_h message = ucx->tag_probe_nb(worker, 0, 0, 1, &info)) {
    void* const request = ucx->tag_msg_recv_nbx(worker, in[0].bytes, 0, message, &param);
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) ucx->request_free(request);
  }
}

void UcxPipe::Ends::Lay(Message* message, Kind kind, size_t room) {
  ucp_tag_recv_info_t info{};
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO;
  param.recv_info.tag_info = &info;
  void* const request =
      ucx->tag_recv_nbx(worker, message->bytes, room, tag | kind, kWholeTag, &param);
  if (UCS_PTR_IS_ERR(request)) return Break(UCS_PTR_STATUS(request));
  message->request = request;
  message->here = request == nullptr;
  message->size = message->here ? info.length : 0;
  message->read = 0;
}

bool UcxPipe::Ends::Here(Message* message) {
  if (message->here || message->request == nullptr) return message->here;
  ucp_tag_recv_info_t info{};
  const ucs_status_t status = ucx->tag_recv_request_test(message->request, &info);
  if (status == UCS_INPROGRESS) return false;
  ucx->request_free(std::exchange(message->request, nullptr));
  if (status != UCS_OK) {
    Break(status);
    return false;
  }
  message->here = true;
  message->size = info.length;
  return true;
}

void UcxPipe::Ends::Post(Message* message, Kind kind, size_t size) {
  const ucp_request_param_t param{};
  void* const request = ucx->tag_send_nbx(ep, message->bytes, size, tag | kind, &param);
  if (UCS_PTR_IS_ERR(request)) return Break(UCS_PTR_STATUS(request));
  message->request = request;
}

bool UcxPipe::Ends::IsFree(Message* message) {
  if (message->request == nullptr) return true;
  if (ucx->request_check_status(message->request) == UCS_INPROGRESS) return false;
  ucx->request_free(std::exchange(message->request, nullptr));
  return true;
}

void UcxPipe::Ends::Move() {
  int moves = 0;
  while (moves < kMovesALook && ucx->worker_progress(worker) != 0) ++moves;
  if (failed != UCS_OK) Break(failed);
  if (moves > 0) {
    ucp_tag_recv_info_t info{};
    if (ucx->tag_probe_nb(worker, 0, 0, 0, &info) != nullptr)
      Break(DataLoss("an unexpected message over UCX"));
  }
  Hear();
}

void UcxPipe::Ends::Hear() {
  for (Message* next = &heard[hearings % kTellings]; end.ok() && Here(next);
       next = &heard[hearings % kTellings]) {
    uint64_t read = 0;
    if (next->size == sizeof read) std::memcpy(&read, next->bytes, sizeof read);
    // It may only grow, up to what was sent.
    if (read - sent_read > sent - sent_read) return Break(DataLoss("a malformed message over UCX"));
    sent_read = read;
    ++hearings;
    Lay(next, kReadSoFar, sizeof read);
  }
}

void UcxPipe::Ends::Tell() {
  Message* const next = &told[tellings % kTellings];
  if (got - got_told < kTellAfter || ep == nullptr || !end.ok() || !IsFree(next)) return;
  std::memcpy(next->bytes, &got, sizeof got);
  got_told = got;
  ++tellings;
  Post(next, kReadSoFar, sizeof got);
}

// One message of the pieces' bytes behind the first `skip`. Returns how many.
size_t UcxPipe::Ends::SendOne(std::span<const iovec> pieces, size_t skip) {
  Message* const message = &out[sent % kUcxMessages];
  if (sent - sent_read >= kUcxMessages || !IsFree(message)) return 0;
  size_t size = 0;
  for (const iovec& piece : pieces) {
    const size_t skipped = std::min(skip, piece.iov_len);
    skip -= skipped;
    const size_t step = std::min(piece.iov_len - skipped, kUcxMessage - size);
    if (step > 0)
      std::memcpy(message->bytes + size, static_cast<const char*>(piece.iov_base) + skipped, step);
    size += step;
  }
  if (size == 0) return 0;
  ++sent;
  Post(message, kBytes, size);
  return size;
}

UcxPipe::UcxPipe(std::unique_ptr<Ends> ends) : ends_(std::move(ends)) {}
UcxPipe::~UcxPipe() = default;

Status CheckUcxAvailable() { return Ucx().status(); }

Result<std::unique_ptr<UcxPipe>> UcxPipe::Make() {
  TRY_ASSIGN(const UcxLibrary* const ucx, Ucx());
  auto ends = std::make_unique<Ends>(ucx);
  TRY(ends->Make());
  std::unique_ptr<UcxPipe> pipe(new UcxPipe(std::move(ends)));
  TRY(pipe->ends_->Address(&pipe->address_));
  pipe->event_fd_ = pipe->ends_->event_fd;
  return pipe;
}

Status UcxPipe::Expect(uint64_t tag) {
  const MutexLock lock(ends_->mu);
  ends_->tag = tag & ~uint64_t{kReadSoFar};
  for (Message& message : ends_->in) ends_->Lay(&message, kBytes, kUcxMessage);
  for (Message& message : ends_->heard) ends_->Lay(&message, kReadSoFar, sizeof(uint64_t));
  return ends_->end;
}

Status UcxPipe::Connect(std::string_view peer) {
  const MutexLock lock(ends_->mu);
  return ends_->Connect(peer);
}

size_t UcxPipe::Send(std::span<const iovec> pieces) {
  const MutexLock lock(ends_->mu);
  size_t all = 0;
  for (const iovec& piece : pieces) all += piece.iov_len;
  size_t taken = 0;
  while (taken < all && ends_->end.ok()) {
    const size_t step = ends_->SendOne(pieces, taken);
    if (step == 0) break;
    taken += step;
  }
  return ends_->end.ok() ? taken : all;
}

size_t UcxPipe::Receive(char* to, size_t room) {
  const MutexLock lock(ends_->mu);
  ends_->Move();
  size_t size = 0;
  while (size < room && ends_->end.ok()) {
    Message* const next = &ends_->in[ends_->got % kUcxMessages];
    if (!ends_->Here(next)) break;
    const size_t step = std::min(next->size - next->read, room - size);
    std::memcpy(to + size, next->bytes + next->read, step);
    size += step;
    next->read += step;
    if (next->read < next->size) break;
    ++ends_->got;
    ends_->Lay(next, kBytes, kUcxMessage);
    ends_->Tell();
  }
  ends_->Tell();
  return size;
}

Status UcxPipe::status() const {
  const MutexLock lock(ends_->mu);
  return ends_->end;
}

UcxSleep UcxPipe::Sleep(bool deaf) {
  const MutexLock lock(ends_->mu);
  if (!ends_->end.ok()) return UcxSleep::kDataPending;
  if (!deaf && ends_->Here(&ends_->in[ends_->got % kUcxMessages])) return UcxSleep::kDataPending;
  for (int turn = 0; turn < kTriesToSleep; ++turn) {
    if (ends_->ucx->worker_arm(ends_->worker) == UCS_OK) return UcxSleep::kAsleep;
    // Whatever it was that is left to do: in the end something is here, or cannot go.
    ends_->Move();
    if (!deaf && ends_->Here(&ends_->in[ends_->got % kUcxMessages])) return UcxSleep::kDataPending;
  }
  return UcxSleep::kSending;
}

#else  // SHOAL_HAS_UCX

struct UcxPipe::Ends {};

Status CheckUcxAvailable() {
  return FailedPrecondition(
      "transport ucx: this Shoal was built without UCX; install its headers (Debian: libucx-dev) "
      "and build again, or leave the transport out");
}

UcxPipe::UcxPipe(std::unique_ptr<Ends> ends) : ends_(std::move(ends)) {}
UcxPipe::~UcxPipe() = default;
Result<std::unique_ptr<UcxPipe>> UcxPipe::Make() { return CheckUcxAvailable(); }
Status UcxPipe::Expect(uint64_t /*tag*/) { return CheckUcxAvailable(); }
Status UcxPipe::Connect(std::string_view /*peer*/) { return CheckUcxAvailable(); }
size_t UcxPipe::Send(std::span<const iovec> /*pieces*/) { return 0; }
size_t UcxPipe::Receive(char* /*to*/, size_t /*room*/) { return 0; }
Status UcxPipe::status() const { return CheckUcxAvailable(); }
UcxSleep UcxPipe::Sleep(bool /*deaf*/) { return UcxSleep::kAsleep; }

#endif  // SHOAL_HAS_UCX

}  // namespace shoal::ps
