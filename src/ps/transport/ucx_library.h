// UCX (Unified Communication X), which reaches RDMA hardware: an option. Nothing is linked: the
// library is opened when the first connection wants it. Used by ucx_pipe.cc.
#pragma once

#include "base/status.h"

// SHOAL_NO_UCX: the build was told to do without.
#if __has_include(<ucp/api/ucp.h>) && !defined(SHOAL_NO_UCX)
#define SHOAL_HAS_UCX 1
#include <ucp/api/ucp.h>
#else
#define SHOAL_HAS_UCX 0
#endif

namespace shoal::ps {

#if SHOAL_HAS_UCX

// The functions that are called, under their names without "ucp_".
struct UcxLibrary {
  decltype(&ucp_get_version) get_version = nullptr;
  decltype(&ucp_config_read) config_read = nullptr;
  decltype(&ucp_config_modify) config_modify = nullptr;
  decltype(&ucp_config_release) config_release = nullptr;
  decltype(&ucp_init_version) init_version = nullptr;
  decltype(&ucp_cleanup) cleanup = nullptr;
  decltype(&ucp_worker_create) worker_create = nullptr;
  decltype(&ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&ucp_worker_progress) worker_progress = nullptr;
  decltype(&ucp_worker_arm) worker_arm = nullptr;
  decltype(&ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&ucp_ep_create) ep_create = nullptr;
  decltype(&ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&ucp_tag_send_nbx) tag_send_nbx = nullptr;
  decltype(&ucp_tag_recv_nbx) tag_recv_nbx = nullptr;
  decltype(&ucp_tag_probe_nb) tag_probe_nb = nullptr;
  decltype(&ucp_tag_recv_request_test) tag_recv_request_test = nullptr;
  decltype(&ucp_tag_msg_recv_nbx) tag_msg_recv_nbx = nullptr;
  decltype(&ucp_request_check_status) request_check_status = nullptr;
  decltype(&ucp_request_cancel) request_cancel = nullptr;
  decltype(&ucp_request_free) request_free = nullptr;
  decltype(&ucs_status_string) status_string = nullptr;

  unsigned major = 0;
  unsigned minor = 0;
};

// Opened from the file `name`, never closed. FailedPrecondition, one sentence: it is not there, or
// older than the one that this program was compiled for. Thread-safe.
Result<UcxLibrary> OpenUcx(const char* name);

// OpenUcx("libucp.so.0"), once a process. Constant, lives for ever.
Result<const UcxLibrary*> Ucx();

#endif  // SHOAL_HAS_UCX

}  // namespace shoal::ps
