// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/peer_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

std::unexpected<Error> watch_failed(const char* what, int error) {
  return fail(ErrorKind::kExhausted, str_format("watching a burst's peer: {}: {}", what,
                                                std::generic_category().message(error)));
}

int add_to(const UniqueFd& epoll, int fd, std::uint32_t events, std::uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

Result<std::unique_ptr<PeerWatch>> PeerWatch::create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_valid()) return watch_failed("epoll", errno);
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop.is_valid()) return watch_failed("eventfd", errno);
  if (add_to(epoll, stop.get(), EPOLLIN, 0) != 0) return watch_failed("epoll", errno);
  std::unique_ptr<PeerWatch> watch(new PeerWatch(std::move(epoll), std::move(stop)));
  try {
    watch->thread_ = std::thread([raw = watch.get()] { raw->run(); });
  } catch (const std::system_error& error) {
    return watch_failed("thread", error.code().value());
  }
  return watch;
}

PeerWatch::PeerWatch(UniqueFd epoll, UniqueFd stop)
    : owner_(::getpid()), epoll_(std::move(epoll)), stop_(std::move(stop)) {}

PeerWatch::~PeerWatch() {
  if (!thread_.joinable()) return;
  if (::getpid() != owner_) {
    thread_.detach();
    return;
  }
  const std::uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

Result<PeerWatch::Watched> PeerWatch::add(int socket, UniqueFd pidfd,
                                          std::shared_ptr<Lifeline> lifeline) {
  const std::lock_guard lock(mutex_);
  if (peers_.size() >= kMaxPeers) {
    return fail(ErrorKind::kExhausted, str_format("{} peers are watched already", kMaxPeers));
  }
  const std::uint64_t id = next_id_++;
  // Both are seen at once if they have happened before. What waits in the socket is not of
  // interest.
  if (add_to(epoll_, socket, EPOLLRDHUP, id) != 0) return watch_failed("its socket", errno);
  if (add_to(epoll_, pidfd.get(), EPOLLIN, id) != 0) {
    const int error = errno;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
    return watch_failed("its process", error);
  }
  peers_.emplace(id, Peer{socket, std::move(pidfd), std::move(lifeline)});
  return Watched(this, id);
}

void PeerWatch::run() {
  std::array<epoll_event, 16> events{};
  while (true) {
    // The one wait without a deadline: it is what ends the others, and stop_ ends it.
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events.at(static_cast<std::size_t>(i)).data.u64;
      if (id == 0) return;
      peer_gone(id);
    }
  }
}

void PeerWatch::peer_gone(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;  // Its other descriptor came first, or it was just removed.
  found->second.lifeline->cut(Lifeline::Cause::kPeerGone);
  forget(found->second);
  peers_.erase(found);
}

void PeerWatch::remove(std::uint64_t id) {
  // What the parent's epoll watches is not this process's to take out.
  if (::getpid() != owner_) return;
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  forget(found->second);
  peers_.erase(found);
}

void PeerWatch::forget(const Peer& peer) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket, nullptr);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.pidfd.get(), nullptr);
}

}  // namespace penstock
