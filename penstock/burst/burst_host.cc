// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/burst_host.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/burst_connection.h"

namespace penstock {
namespace {

std::unexpected<Error> failed(const std::filesystem::path& path, const char* what, int error) {
  const bool exhausted = error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;
  return fail(exhausted ? ErrorKind::kExhausted : ErrorKind::kIo,
              str_format("burst socket {}: {}: {}", path.string(), what,
                         std::generic_category().message(error)));
}

}  // namespace

/// A connection and its thread.
class BurstHost::Connection {
 public:
  Connection(BurstHost& host, FdSocket socket, bool may_have_a_burst)
      : connection_(std::move(socket),
                    {.find = [&host](const std::string& name) { return host.find(name); },
                     .watch = host.watch_.get(),
                     .configure_limit = host.options_.configure_limit,
                     .may_have_a_burst = may_have_a_burst}),
        host_(host) {}
  ~Connection() {
    if (thread_.joinable()) thread_.join();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// std::system_error when there is no thread.
  void start() {
    thread_ = std::thread([this] {
      connection_.run();
      has_ended_ = true;
      host_.connection_ended();
    });
  }
  bool has_ended() const { return has_ended_; }
  bool is_configured() const { return connection_.is_configured(); }
  void close(const std::string& reason) { connection_.close(reason); }

 private:
  BurstConnection connection_;
  BurstHost& host_;
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

Result<std::unique_ptr<BurstHost>> BurstHost::listen(const std::filesystem::path& path,
                                                     Models models, BurstHostOptions options) {
  auto socket = SocketFile::listen(path);
  if (!socket) return std::unexpected(std::move(socket).error());
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_valid()) return failed(path, "eventfd", errno);
  auto watch = PeerWatch::create();
  if (!watch) return std::unexpected(std::move(watch).error());
  std::unique_ptr<BurstHost> host(new BurstHost(std::move(models), std::move(options),
                                                std::move(*socket), std::move(wake),
                                                std::move(*watch)));
  try {
    host->thread_ = std::thread([raw = host.get()] { raw->run(); });
  } catch (const std::system_error& error) {
    return failed(path, "thread", error.code().value());
  }
  return host;
}

BurstHost::BurstHost(Models models, BurstHostOptions options, SocketFile listening, UniqueFd wake,
                     std::unique_ptr<PeerWatch> watch)
    : models_(std::move(models)),
      options_(std::move(options)),
      listening_(std::move(listening)),
      wake_(std::move(wake)),
      watch_(std::move(watch)) {}

BurstHost::~BurstHost() { stop(); }

void BurstHost::stop() {
  if (stops_.exchange(true)) return;
  // First, so that nobody finds a name that nobody listens at any more.
  listening_.remove_name();
  wake();
  if (thread_.joinable()) thread_.join();
  {
    std::unique_lock lock(mutex_);
    for (const auto& connection : connections_) connection->close("the server stops");
    const auto all_ended = [&] {
      return std::ranges::all_of(connections_, [](const auto& one) { return one->has_ended(); });
    };
    const TimePoint until = Clock::system().now() + options_.drain_limit;
    if (!ended_.wait_until(lock, until, all_ended) && options_.on_overtime) {
      lock.unlock();
      options_.on_overtime();
    }
  }
  reap(true);
}

std::size_t BurstHost::clients() const {
  const std::lock_guard lock(mutex_);
  return connections_.size() + leaving_;
}

std::shared_ptr<BurstModel> BurstHost::find(const std::string& name) const {
  if (name.empty() && models_.size() == 1) return models_.begin()->second;
  const auto found = models_.find(name);
  return found == models_.end() ? nullptr : found->second;
}

void BurstHost::connection_ended() {
  {
    // Whoever waits has looked before, or will be woken.
    const std::lock_guard lock(mutex_);
  }
  ended_.notify_all();
  wake();
}

void BurstHost::wake() {
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void BurstHost::run() {
  std::array<pollfd, 2> wanted{};
  wanted[0] = {.fd = listening_.fd(), .events = POLLIN, .revents = 0};
  wanted[1] = {.fd = wake_.get(), .events = POLLIN, .revents = 0};
  const auto tick = std::chrono::ceil<std::chrono::milliseconds>(options_.tick).count();
  while (!stops_) {
    const int count = ::poll(wanted.data(), wanted.size(), static_cast<int>(tick));
    if (count > 0 && (wanted[1].revents & POLLIN) != 0) {
      std::uint64_t ignored = 0;
      while (::read(wake_.get(), &ignored, sizeof ignored) < 0 && errno == EINTR) {
      }
    }
    reap(false);
    if (count > 0 && (wanted[0].revents & POLLIN) != 0 && !stops_) accept_one();
    if (options_.on_tick) options_.on_tick();
  }
}

void BurstHost::accept_one() {
  UniqueFd accepted(::accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted.is_valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      // The newcomer waits in the queue: looked at again when a connection ends, at a tick at the
      // latest.
      log("burst").warn("a client waits: {}", std::generic_category().message(errno));
      pollfd wake{.fd = wake_.get(), .events = POLLIN, .revents = 0};
      const auto tick = std::chrono::ceil<std::chrono::milliseconds>(options_.tick).count();
      ::poll(&wake, 1, static_cast<int>(tick));
    }
    return;
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(accepted.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      (peer.uid != ::geteuid() && peer.uid != 0)) {
    log("burst").warn("a client of user {} was turned away", peer.uid);
    return;
  }
  const std::lock_guard lock(mutex_);
  std::size_t configured = 0;
  for (const auto& connection : connections_) configured += connection->is_configured() ? 1 : 0;
  const std::size_t newcomers = connections_.size() - configured;
  if (newcomers >= options_.max_newcomers) {
    log("burst").warn("a client was turned away: {} are not configured yet", newcomers);
    return;
  }
  auto connection = std::make_unique<Connection>(*this, FdSocket(std::move(accepted)),
                                                 connections_.size() < options_.max_clients);
  try {
    connection->start();
  } catch (const std::system_error& error) {
    log("burst").warn("a client was turned away: no thread: {}", error.code().message());
    return;
  }
  connections_.push_back(std::move(connection));
}

void BurstHost::reap(bool all) {
  std::list<std::unique_ptr<Connection>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto next = std::next(it);
      if (all || (*it)->has_ended()) ended.splice(ended.end(), connections_, it);
      it = next;
    }
    leaving_ += ended.size();
  }
  const std::size_t gone = ended.size();
  ended.clear();  // Joins, without the lock: a connection that ends takes it.
  // A place is free when all that its client had is gone.
  const std::lock_guard lock(mutex_);
  leaving_ -= gone;
}

}  // namespace penstock
