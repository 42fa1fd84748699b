#include "controller/store/postgres/postgres_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/file.h"
#include "controller/store/postgres/postgres_connection.h"

namespace shoal::controller {
namespace {

constexpr int kReconnectMs = 200;

Result<std::unique_ptr<PostgresConnection>> Listen(const std::string& url) {
  TRY_ASSIGN(std::unique_ptr<PostgresConnection> connection, PostgresConnection::Open(url));
  TRY(connection->Execute((std::string("LISTEN ") + kNotificationChannel).c_str()));
  return connection;
}

class PostgresWatcher final : public Store::Watcher {
 public:
  PostgresWatcher(std::string url, std::unique_ptr<PostgresConnection> connection, UniqueFd stop,
                  std::function<void()> on_change)
      : url_(std::move(url)), connection_(std::move(connection)), stop_(std::move(stop)) {
    thread_ = std::thread([this, call = std::move(on_change)] {
      while (!stopped_) Once(call);
    });
  }
  ~PostgresWatcher() override {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  // Waits for a notification, a loss or the next attempt to connect.
  void Once(const std::function<void()>& on_change) {
    const bool connected = connection_ != nullptr;
    // poll ignores negative descriptors.
    pollfd fds[2] = {{stop_.get(), POLLIN, 0}, {connected ? connection_->socket() : -1, POLLIN, 0}};
    if (poll(fds, 2, connected ? -1 : kReconnectMs) < 0 && errno != EINTR) {
      stopped_ = true;
      return;
    }
    stopped_ = fds[0].revents != 0;
    if (stopped_) return;
    if (!connected) {
      Result<std::unique_ptr<PostgresConnection>> opened = Listen(url_);
      if (!opened.ok()) return;
      connection_ = std::move(*opened);
      on_change();  // for what was missed
      return;
    }
    if (fds[1].revents == 0) return;
    const bool told = connection_->TakeNotifications();
    if (connection_->IsLost()) connection_.reset();
    if (told) on_change();
  }

  const std::string url_;
  std::unique_ptr<PostgresConnection> connection_;  // null: lost; of the thread, as is the next
  bool stopped_ = false;
  const UniqueFd stop_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Store::Watcher>> WatchPostgres(const std::string& url,
                                                      std::function<void()> on_change) {
  TRY_ASSIGN(std::unique_ptr<PostgresConnection> connection, Listen(url));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return ErrnoStatus(errno, "eventfd");
  return std::unique_ptr<Store::Watcher>(std::make_unique<PostgresWatcher>(
      url, std::move(connection), std::move(stop), std::move(on_change)));
}

}  // namespace shoal::controller
