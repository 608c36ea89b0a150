// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/burst_host.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/burst_connection.h"
#include "penstock/burst/unix_address.h"

namespace penstock {
namespace {

std::unexpected<Error> failed(const std::filesystem::path& path, const char* what, int error) {
  ErrorKind kind = ErrorKind::kIo;
  if (error == EACCES || error == EPERM || error == EROFS) kind = ErrorKind::kPermission;
  if (error == ENOENT || error == ENOTDIR) kind = ErrorKind::kNotFound;
  if (error == EMFILE || error == ENFILE || error == ENOMEM) kind = ErrorKind::kExhausted;
  return fail(kind, str_format("burst socket {}: {}: {}", path.string(), what,
                               std::generic_category().message(error)));
}

/// Whether a file at `path` is in the way: a dead server's socket is taken away.
Result<void> make_way(const std::filesystem::path& path, const UnixAddress& address) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Result<void>() : failed(path, "looking at it", errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("burst socket {}: something else has this name", path.string()));
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_valid()) return failed(path, "socket", errno);
  if (::connect(probe.get(), address.get(), address.size()) == 0 || errno != ECONNREFUSED) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("burst socket {}: a server listens there", path.string()));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path, "taking it away", errno);
  return {};
}

Result<UniqueFd> listen_at(const std::filesystem::path& path) {
  const auto address = UnixAddress::of(path);
  if (!address) return std::unexpected(address.error());
  PENSTOCK_TRY(make_way(path, *address));
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_valid()) return failed(path, "socket", errno);
  // The file gets the socket's mode: it is never there with another one.
  if (::fchmod(socket.get(), 0600) != 0) return failed(path, "its mode", errno);
  if (::bind(socket.get(), address->get(), address->size()) != 0) {
    return failed(path, "bind", errno);
  }
  if (::listen(socket.get(), 64) != 0) return failed(path, "listen", errno);
  return socket;
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
  auto socket = listen_at(path);
  if (!socket) return std::unexpected(std::move(socket).error());
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_valid()) return failed(path, "eventfd", errno);
  auto watch = PeerWatch::create();
  if (!watch) return std::unexpected(std::move(watch).error());
  std::unique_ptr<BurstHost> host(new BurstHost(path, std::move(models), std::move(options),
                                                std::move(*socket), std::move(wake),
                                                std::move(*watch)));
  try {
    host->thread_ = std::thread([raw = host.get()] { raw->run(); });
  } catch (const std::system_error& error) {
    return failed(path, "thread", error.code().value());
  }
  return host;
}

BurstHost::BurstHost(std::filesystem::path path, Models models, BurstHostOptions options,
                     UniqueFd listening, UniqueFd wake, std::unique_ptr<PeerWatch> watch)
    : path_(std::move(path)),
      models_(std::move(models)),
      options_(std::move(options)),
      listening_(std::move(listening)),
      wake_(std::move(wake)),
      watch_(std::move(watch)) {}

BurstHost::~BurstHost() { stop(); }

void BurstHost::stop() {
  if (stops_.exchange(true)) return;
  // First, so that nobody finds a name that nobody listens at any more.
  ::unlink(path_.c_str());
  connection_ended();
  if (thread_.joinable()) thread_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& connection : connections_) connection->close("the server stops");
  }
  reap(true);
}

std::size_t BurstHost::clients() const {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

std::shared_ptr<BurstModel> BurstHost::find(const std::string& name) const {
  if (name.empty() && models_.size() == 1) return models_.begin()->second;
  const auto found = models_.find(name);
  return found == models_.end() ? nullptr : found->second;
}

void BurstHost::connection_ended() {
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void BurstHost::run() {
  std::array<pollfd, 2> wanted{};
  wanted[0] = {.fd = listening_.get(), .events = POLLIN, .revents = 0};
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
  UniqueFd accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
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
  }
  ended.clear();  // Joins, without the lock: a connection that ends takes it.
}

}  // namespace penstock
