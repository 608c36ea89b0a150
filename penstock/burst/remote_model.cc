// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/remote_model.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/control_messages.h"
#include "penstock/burst/datum_file.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/peer_watch.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"
#include "penstock/burst/unix_address.h"

namespace penstock {
namespace {

constexpr Nanoseconds kSendLimit = std::chrono::seconds(1);
constexpr Nanoseconds kIdle = std::chrono::seconds(30);

Deadline in(Nanoseconds time) { return Deadline::after(Clock::system(), time); }

std::unexpected<Error> failed(const std::filesystem::path& path, int error) {
  ErrorKind kind = ErrorKind::kIo;
  if (error == ENOENT || error == ECONNREFUSED) kind = ErrorKind::kNotFound;
  if (error == EACCES || error == EPERM) kind = ErrorKind::kPermission;
  if (error == EMFILE || error == ENFILE || error == EAGAIN) kind = ErrorKind::kExhausted;
  return fail(kind, str_format("burst server at {}: {}", path.string(),
                               std::generic_category().message(error)));
}

Result<FdSocket> connect_to(const std::filesystem::path& path) {
  const auto address = UnixAddress::of(path);
  if (!address) return std::unexpected(address.error());
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_valid()) return failed(path, errno);
  // A server that does not accept must not hold this up: with a full queue this is EAGAIN.
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  while (::connect(socket.get(), address->get(), address->size()) != 0) {
    if (errno != EINTR) return failed(path, errno);
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return failed(path, errno);
  }
  if (peer.uid != ::geteuid() && peer.uid != 0) {
    return fail(ErrorKind::kPermission,
                str_format("burst server at {}: it is user {}'s", path.string(), peer.uid));
  }
  return FdSocket(std::move(socket));
}

ErrorKind kind_of(ErrorStatus status) {
  switch (status) {
    case ErrorStatus::kInvalidArgument:
      return ErrorKind::kInvalidArgument;
    case ErrorStatus::kResourceExhaustedTransient:
    case ErrorStatus::kResourceExhaustedPersistent:
      return ErrorKind::kExhausted;
    default:
      return ErrorKind::kDevice;
  }
}

/// Sends a question and takes the Configured that answers it.
Result<ConfiguredMessage> ask(const FdSocket& socket, const std::filesystem::path& path,
                              const ControlMessage& question, Nanoseconds limit) {
  const auto where = [&](Error error) {
    return fail(error.kind(), str_format("burst server at {}: {}", path.string(), error.message()));
  };
  if (auto sent = send_control(socket, question, in(limit)); !sent) return where(sent.error());
  auto answer = receive_control(socket, in(limit));
  if (!answer) return where(answer.error());
  auto* configured = std::get_if<ConfiguredMessage>(&answer->body);
  if (configured == nullptr || answer->id != question.id) {
    return where({ErrorKind::kCorrupt, "it answers something else than was asked"});
  }
  if (configured->status != ErrorStatus::kNone) {
    return where({kind_of(configured->status), "it refuses: " + configured->message});
  }
  return std::move(*configured);
}

/// One for all connections of this process, as long as there are some.
Result<std::shared_ptr<PeerWatch>> shared_watch() {
  static std::mutex mutex;
  static std::weak_ptr<PeerWatch> known;
  const std::lock_guard lock(mutex);
  auto watch = known.lock();
  if (watch != nullptr) return watch;
  auto made = PeerWatch::create();
  if (!made) return std::unexpected(std::move(made).error());
  watch = std::move(*made);
  known = watch;
  return watch;
}

/// The client's side of a connection.
class RemoteContext final : public BurstContext {
 public:
  RemoteContext(FdSocket socket, std::shared_ptr<BurstCallback> callback,
                std::shared_ptr<Lifeline> lifeline, std::shared_ptr<PeerWatch> watch,
                PeerWatch::Watched watched)
      : socket_(std::move(socket)),
        callback_(std::move(callback)),
        lifeline_(std::move(lifeline)),
        watch_(std::move(watch)),
        watched_(std::move(watched)) {}

  ~RemoteContext() override {
    lifeline_->cut(Lifeline::Cause::kStopped);
    // Reaches every copy of the socket, also in children.
    ::shutdown(socket_.fd(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    thread_ = std::thread([this] { run(); });
  }

  void free_memory(std::int32_t slot) override { send({.id = 0, .body = FreeMemoryMessage{slot}}); }

  BurstResult execute(const BurstRequest& request, Deadline deadline) override {
    const BurstResult failure{.status = ErrorStatus::kGeneralFailure, .shapes = {}, .timing = {}};
    const auto packet = serialise(request);
    if (packet.size() > kMaxDirectDatums) return failure;
    auto file = write_datum_file(std::as_bytes(std::span(packet)));
    if (!file) return failure;
    std::unique_lock lock(mutex_);
    if (waits_ || has_ended_) return failure;
    const std::uint32_t id = ++last_id_;
    waits_ = true;
    executed_.reset();
    if (send({.id = id, .body = ExecuteMessage{std::move(*file)}})) {
      come_.wait_until(lock, deadline.at(), [&] { return executed_ || has_ended_; });
    }
    waits_ = false;
    if (!executed_) {
      // Nothing says when its memory is free again.
      lifeline_->cut(Lifeline::Cause::kStopped);
      return {.status = ErrorStatus::kMissedDeadlineTransient, .shapes = {}, .timing = {}};
    }
    const auto datums = read_datums<FmqResultDatum>(executed_->result);
    executed_.reset();
    if (!datums) return failure;
    auto result = parse_result(*datums);
    return result ? std::move(*result) : failure;
  }

 private:
  bool send(const ControlMessage& message) {
    const std::lock_guard lock(send_mutex_);
    return send_control(socket_, message, in(kSendLimit)).has_value();
  }

  void run() {
    Lifeline::Cause cause = Lifeline::Cause::kPeerGone;
    while (true) {
      auto message = receive_control(socket_, in(kIdle));
      if (!message) {
        if (message.error().kind() == ErrorKind::kDeadline) continue;
        if (message.error().kind() == ErrorKind::kCorrupt) cause = Lifeline::Cause::kCorrupt;
        break;
      }
      if (const auto* closing = std::get_if<ClosingMessage>(&message->body)) {
        log("burst").info("the server ends the burst: {}", closing->reason);
        continue;  // Its end of the socket says when.
      }
      if (!handle(std::move(*message))) {
        cause = Lifeline::Cause::kCorrupt;
        break;
      }
    }
    lifeline_->cut(cause);
    ::shutdown(socket_.fd(), SHUT_RDWR);
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    come_.notify_all();
  }

  bool handle(ControlMessage message) {
    if (const auto* wanted = std::get_if<GetMemoriesMessage>(&message.body)) {
      auto found = callback_->get_memories(wanted->slots, in(kSendLimit));
      return send(
          {.id = message.id,
           .body = MemoriesMessage{.status = found.status, .memories = std::move(found.memories)}});
    }
    auto* executed = std::get_if<ExecutedMessage>(&message.body);
    if (executed == nullptr) return false;
    const std::lock_guard lock(mutex_);
    if (!waits_ || message.id != last_id_) return false;
    executed_ = std::move(*executed);
    come_.notify_all();
    return true;
  }

  const FdSocket socket_;
  const std::shared_ptr<BurstCallback> callback_;
  const std::shared_ptr<Lifeline> lifeline_;
  const std::shared_ptr<PeerWatch> watch_;
  PeerWatch::Watched watched_;
  std::mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable come_;
  std::uint32_t last_id_ = 0;
  bool waits_ = false;
  bool has_ended_ = false;
  std::optional<ExecutedMessage> executed_;
  std::thread thread_;
};

}  // namespace

Result<std::shared_ptr<RemoteModel>> RemoteModel::connect(std::filesystem::path path,
                                                          std::string model,
                                                          const RemoteModelOptions& options) {
  if (model.size() > kMaxModelName) {
    return fail(
        ErrorKind::kInvalidArgument,
        str_format("a model's name of {} bytes; {} are possible", model.size(), kMaxModelName));
  }
  const auto socket = connect_to(path);
  if (!socket) return std::unexpected(socket.error());
  auto answer = ask(*socket, path, {.id = 1, .body = DescribeMessage{model}}, options.answer_limit);
  if (!answer) return std::unexpected(std::move(answer).error());
  std::shared_ptr<RemoteModel> remote(new RemoteModel(std::move(path), std::move(model), options));
  remote->inputs_ = std::move(answer->inputs);
  remote->outputs_ = std::move(answer->outputs);
  remote->hash_ = std::move(answer->artefact_hash);
  return remote;
}

ConfiguredBurst RemoteModel::configure_burst(BurstConfiguration configuration) {
  const auto refuse = [](ErrorStatus status, std::string why) {
    return ConfiguredBurst{.status = status, .context = nullptr, .message = std::move(why)};
  };
  if (configuration.callback == nullptr || configuration.client_lifeline == nullptr) {
    return refuse(ErrorStatus::kInvalidArgument, "no callback or no lifeline");
  }
  auto socket = connect_to(path_);
  if (!socket) return refuse(ErrorStatus::kDeviceUnavailable, socket.error().message());
  const ControlMessage question{
      .id = 1,
      .body = ConfigureMessage{.model = model_,
                               .poll_window = configuration.poll_window,
                               .execution_limit = configuration.execution_limit,
                               .requests = std::move(configuration.requests),
                               .results = std::move(configuration.results)}};
  const auto answer = ask(*socket, path_, question, options_.answer_limit);
  if (!answer) {
    const ErrorKind kind = answer.error().kind();
    return refuse(kind == ErrorKind::kInvalidArgument ? ErrorStatus::kInvalidArgument
                  : kind == ErrorKind::kExhausted     ? ErrorStatus::kResourceExhaustedTransient
                                                      : ErrorStatus::kDeviceUnavailable,
                  answer.error().message());
  }
  if (answer->artefact_hash != hash_) {
    return refuse(ErrorStatus::kGeneralFailure,
                  str_format("burst server at {}: model '{}' is another one than before",
                             path_.string(), model_));
  }
  auto watch = shared_watch();
  if (!watch) return refuse(ErrorStatus::kResourceExhaustedTransient, watch.error().message());
  auto pidfd = peer_pidfd(*socket);
  if (!pidfd) return refuse(ErrorStatus::kDeviceUnavailable, pidfd.error().message());
  auto watched = (*watch)->add(socket->fd(), std::move(*pidfd), configuration.client_lifeline);
  if (!watched) return refuse(ErrorStatus::kResourceExhaustedTransient, watched.error().message());
  auto context = std::make_unique<RemoteContext>(
      std::move(*socket), std::move(configuration.callback),
      std::move(configuration.client_lifeline), std::move(*watch), std::move(*watched));
  try {
    context->start();
  } catch (const std::system_error& error) {
    return refuse(ErrorStatus::kResourceExhaustedTransient, error.code().message());
  }
  return {.status = ErrorStatus::kNone, .context = std::move(context), .message = {}};
}

}  // namespace penstock
