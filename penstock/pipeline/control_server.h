// SPDX-License-Identifier: Apache-2.0
//
// ControlServer answers lines on a Unix socket that only its own user and root reach: mode 0600, in
// a folder of that user's, and the kernel is asked who is at the other end.
//
//   auto server = ControlServer::open("/run/user/1000/p.sock", answer);
//   (*server)->start();
//
// A client that sends more than kMaxControlLine without an end, does not take its answers for
// kControlPatience, or says nothing for kControlIdle is dropped, so that it holds nobody up.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

inline constexpr std::size_t kMaxControlLine = std::size_t{64} << 10;
inline constexpr std::size_t kMaxControlClients = 8;
inline constexpr Nanoseconds kControlPatience = std::chrono::seconds(5);
inline constexpr Nanoseconds kControlIdle = std::chrono::seconds(60);

class ControlServer {
 public:
  /// The answer to a line, both without their ends. On the server's thread.
  using Answer = std::function<std::string(std::string_view line)>;

  /// Takes the path; clients wait until start(). A socket that a dead process left is replaced.
  /// kExhausted when a living one has it, kInvalidArgument for a path that is too long or something
  /// else than a socket, kPermission for a folder that is not the user's own or that others may
  /// write to, kNotFound without a folder.
  static Result<std::unique_ptr<ControlServer>> open(std::filesystem::path path, Answer answer,
                                                     Clock& clock = Clock::system());
  /// Ends the thread and takes the socket away, if it is still this one's.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// kExhausted: no thread is left.
  Result<void> start();

 private:
  struct Client {
    UniqueFd fd;
    std::string in;   ///< At most kMaxControlLine and one reading.
    std::string out;  ///< One answer.
    TimePoint active;
    bool closing = false;  ///< Once `out` is gone.
    bool at_end = false;   ///< It sends no more, and may still take answers.
  };

  ControlServer(std::filesystem::path path, Answer answer, Clock& clock)
      : path_(std::move(path)), answer_(std::move(answer)), clock_(clock) {}

  Result<void> listen();
  void serve();
  void accept();
  /// False when the client is to be dropped.
  bool read(Client& client);
  void answer_line(Client& client);
  bool write(Client& client);
  static bool wants_input(const Client& client);
  /// That can be answered.
  static bool has_line(const Client& client);
  bool is_too_slow(const Client& client) const;

  const std::filesystem::path path_;
  const Answer answer_;
  Clock& clock_;
  UniqueFd listener_;
  UniqueFd wake_;
  std::uint64_t inode_ = 0;  ///< Of the socket's file.
  std::vector<Client> clients_;
  TimePoint accept_after_{};  ///< No descriptor was left for one more.
  std::thread thread_;
};

/// Sends `line` to the server at `path` and answers its line. kNotFound when nobody has the path,
/// kPermission, kDeadline after `timeout`, kIo.
Result<std::string> ask_control(const std::filesystem::path& path, std::string_view line,
                                Nanoseconds timeout);

}  // namespace penstock
