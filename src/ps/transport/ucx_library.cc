#include "ps/transport/ucx_library.h"

#if SHOAL_HAS_UCX

#include <dlfcn.h>
#include <fmt/format.h>

namespace shoal::ps {
namespace {

constexpr const char* kName = "libucp.so.0";

template <typename Function>
void Find(void* library, const char* name, Function* function, const char** missing) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  if (*function == nullptr && *missing == nullptr) *missing = name;
}

// The first that is not there; null: all are.
const char* FindAll(void* library, UcxLibrary* ucx) {
  const char* missing = nullptr;
#define SHOAL_FIND(name) Find(library, "ucp_" #name, &ucx->name, &missing)
  SHOAL_FIND(get_version);
  SHOAL_FIND(config_read);
  SHOAL_FIND(config_modify);
  SHOAL_FIND(config_release);
  SHOAL_FIND(init_version);
  SHOAL_FIND(cleanup);
  SHOAL_FIND(worker_create);
  SHOAL_FIND(worker_destroy);
  SHOAL_FIND(worker_get_address);
  SHOAL_FIND(worker_release_address);
  SHOAL_FIND(worker_progress);
  SHOAL_FIND(worker_arm);
  SHOAL_FIND(worker_get_efd);
  SHOAL_FIND(ep_create);
  SHOAL_FIND(ep_close_nbx);
  SHOAL_FIND(tag_send_nbx);
  SHOAL_FIND(tag_recv_nbx);
  SHOAL_FIND(tag_probe_nb);
  SHOAL_FIND(tag_recv_request_test);
  SHOAL_FIND(tag_msg_recv_nbx);
  SHOAL_FIND(request_check_status);
  SHOAL_FIND(request_cancel);
  SHOAL_FIND(request_free);
#undef SHOAL_FIND
  // Of libucs, which libucp needs.
  Find(library, "ucs_status_string", &ucx->status_string, &missing);
  return missing;
}

}  // namespace

Result<UcxLibrary> OpenUcx(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return FailedPrecondition(
        fmt::format("transport ucx: UCX cannot be opened ({}); install it (Debian: libucx0) on "
                    "every host of the job, or leave the transport out",
                    why == nullptr ? name : why));
  }
  UcxLibrary ucx;
  const char* const missing = FindAll(library, &ucx);
  if (ucx.get_version != nullptr) {
    unsigned patch = 0;
    ucx.get_version(&ucx.major, &ucx.minor, &patch);
  }
  if (missing != nullptr || ucx.major != UCP_API_MAJOR || ucx.minor < UCP_API_MINOR) {
    return FailedPrecondition(fmt::format(
        "transport ucx: got UCX {}.{}{}{}, expected {}.{} or a later {}.x; install that, or leave "
        "the transport out",
        ucx.major, ucx.minor, missing == nullptr ? "" : " without ",
        missing == nullptr ? "" : missing, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR));
  }
  return ucx;
}

Result<const UcxLibrary*> Ucx() {
  static const Result<UcxLibrary> opened = OpenUcx(kName);
  if (!opened.ok()) return opened.status();
  return &*opened;
}

}  // namespace shoal::ps

#endif  // SHOAL_HAS_UCX
