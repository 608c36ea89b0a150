// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "bench/burst_packaged_peers.h"
#include "penstock/base/str_format.h"

namespace penstock::bench {
namespace {

bool read_all(int file, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::read(file, to.data(), to.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

PackagedPeer::PackagedPeer(std::string name, pid_t pid, UniqueFd socket)
    : name_(std::move(name)), pid_(pid), socket_(std::move(socket)) {}

PackagedPeer::~PackagedPeer() {
  // It ends by itself when there is nothing more to read, and takes what it started along.
  socket_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::unique_ptr<PackagedPeer>> PackagedPeer::start(const std::string& name) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "packaged_peer";
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(ErrorKind::kExhausted, "no sockets");
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, theirs.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, theirs.get(), STDOUT_FILENO);
  std::string path = program.string();
  std::string argument = name;
  std::array<char*, 3> arguments = {path.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, path.c_str(), &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    return fail(ErrorKind::kNotFound,
                str_format("{}: {}", path, std::generic_category().message(error)));
  }
  std::unique_ptr<PackagedPeer> peer(new PackagedPeer(name, pid, std::move(ours)));
  theirs.reset();
  if (auto tried = peer->measure(1); !tried) return std::unexpected(std::move(tried).error());
  return peer;
}

Result<std::vector<double>> PackagedPeer::measure(int count) {
  std::vector<double> times(static_cast<std::size_t>(count));
  const auto wanted = std::as_bytes(std::span(&count, 1));
  if (::send(socket_.get(), wanted.data(), wanted.size(), MSG_NOSIGNAL) != ssize_t(wanted.size()) ||
      !read_all(socket_.get(), std::as_writable_bytes(std::span(times)))) {
    return fail(ErrorKind::kDevice, name_ + " has ended");
  }
  return times;
}

}  // namespace penstock::bench
