// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/burst_connection.h"

#include <sys/socket.h>

#include <system_error>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/datum.h"
#include "penstock/burst/datum_file.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"

namespace penstock {
namespace {

constexpr Nanoseconds kSendLimit = std::chrono::seconds(1);
/// Nobody is waited for so long without looking round; nothing depends on it.
constexpr Nanoseconds kIdle = std::chrono::seconds(30);

Deadline in(Nanoseconds time) { return Deadline::after(Clock::system(), time); }

/// What a client is told of a model, if that fits into a message.
Result<ControlMessage> description(const BurstModel& model, std::uint32_t id) {
  ControlMessage message{.id = id,
                         .body = ConfiguredMessage{.status = ErrorStatus::kNone,
                                                   .message = {},
                                                   .artefact_hash = model.artefact_hash(),
                                                   .generation = 1,
                                                   .inputs = model.inputs(),
                                                   .outputs = model.outputs()}};
  if (auto encoded = encode(message); !encoded) return std::unexpected(std::move(encoded).error());
  return message;
}

}  // namespace

/// getMemories as a message to the client and the wait for its answer.
class BurstConnection::Callback final : public BurstCallback {
 public:
  explicit Callback(BurstConnection& connection) : connection_(&connection) {}

  Memories get_memories(std::span<const std::int32_t> slots, Deadline deadline) override {
    std::unique_lock lock(mutex_);
    if (connection_ == nullptr || is_asked_) return {};
    const std::uint32_t id = ++last_id_;
    is_asked_ = true;
    answer_.reset();
    // Under the lock: the connection can't go meanwhile, and sending has a deadline.
    const bool sent =
        connection_->send({.id = id, .body = GetMemoriesMessage{{slots.begin(), slots.end()}}});
    if (sent) {
      come_.wait_until(lock, deadline.at(), [&] { return answer_ || connection_ == nullptr; });
    }
    is_asked_ = false;
    if (!answer_) return {};
    Memories memories{.status = answer_->status, .memories = std::move(answer_->memories)};
    answer_.reset();
    return memories;
  }

  /// False for an answer to no question.
  bool answer(std::uint32_t id, MemoriesMessage message) {
    const std::lock_guard lock(mutex_);
    // One that comes after its deadline is nobody's, and no crime.
    if (id == 0 || id > last_id_) return false;
    if (!is_asked_ || id != last_id_) return true;
    answer_ = std::move(message);
    come_.notify_all();
    return true;
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    connection_ = nullptr;
    come_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable come_;
  BurstConnection* connection_;
  std::uint32_t last_id_ = 0;
  bool is_asked_ = false;
  std::optional<MemoriesMessage> answer_;
};

BurstConnection::BurstConnection(FdSocket socket, Host host)
    : socket_(std::make_shared<const FdSocket>(std::move(socket))),
      host_(std::move(host)),
      client_lifeline_(
          std::make_shared<Lifeline>([socket = socket_] { ::shutdown(socket->fd(), SHUT_RD); })),
      callback_(std::make_shared<Callback>(*this)) {}

BurstConnection::~BurstConnection() = default;

bool BurstConnection::send(const ControlMessage& message) {
  const std::lock_guard lock(send_mutex_);
  return send_control(*socket_, message, in(kSendLimit)).has_value();
}

void BurstConnection::run() {
  bool goes_on = false;
  if (auto first = receive_control(*socket_, in(host_.configure_limit))) {
    if (const auto* wanted = std::get_if<DescribeMessage>(&first->body)) {
      goes_on = describe(*wanted, first->id);
    } else if (auto* configuration = std::get_if<ConfigureMessage>(&first->body)) {
      goes_on = configure(std::move(*configuration), first->id);
    }
  } else {
    log("burst").warn("a client was given up: {}", first.error().message());
  }
  while (goes_on) {
    auto message = receive_control(*socket_, in(kIdle));
    if (message) {
      goes_on = handle(std::move(*message));
    } else if (message.error().kind() != ErrorKind::kDeadline) {
      if (message.error().kind() != ErrorKind::kNotFound) {
        log("burst").warn("a burst ends: {}", message.error().message());
      }
      goes_on = false;
    }
  }
  if (!client_lifeline_->check()) {
    send({.id = 0, .body = ClosingMessage{"the service has ended this burst"}});
  }
  // Nothing can be answered any more: executions that wait for memories, and waits at the queues.
  lifeline_->cut(Lifeline::Cause::kPeerGone);
  callback_->leave();
  if (direct_.joinable()) direct_.join();
  watched_ = {};
  context_.reset();
  model_.reset();
  ::shutdown(socket_->fd(), SHUT_RDWR);
}

bool BurstConnection::refuse(std::uint32_t id, ErrorStatus status, std::string why) {
  log("burst").warn("a burst was refused: {}", why);
  ConfiguredMessage message;
  message.status = status;
  message.message = std::move(why);
  send({.id = id, .body = std::move(message)});
  return false;
}

bool BurstConnection::describe(const DescribeMessage& message, std::uint32_t id) {
  const auto model = host_.find(message.model);
  if (model == nullptr) {
    return refuse(id, ErrorStatus::kInvalidArgument,
                  str_format("no model '{}' is served here", message.model));
  }
  const auto described = description(*model, id);
  if (!described) return refuse(id, ErrorStatus::kGeneralFailure, described.error().message());
  send(*described);
  return false;
}

bool BurstConnection::configure(ConfigureMessage message, std::uint32_t id) {
  model_ = host_.find(message.model);
  if (model_ == nullptr) {
    return refuse(id, ErrorStatus::kInvalidArgument,
                  str_format("no model '{}' is served here", message.model));
  }
  if (!host_.may_have_a_burst) {
    return refuse(id, ErrorStatus::kResourceExhaustedTransient, "there are too many clients");
  }
  const auto described = description(*model_, id);
  if (!described) return refuse(id, ErrorStatus::kGeneralFailure, described.error().message());
  auto pidfd = peer_pidfd(*socket_);
  if (!pidfd) return refuse(id, ErrorStatus::kGeneralFailure, pidfd.error().message());
  auto watched = host_.watch->add(socket_->fd(), std::move(*pidfd), lifeline_);
  if (!watched) {
    return refuse(id, ErrorStatus::kResourceExhaustedTransient, watched.error().message());
  }
  watched_ = std::move(*watched);
  auto configured = model_->configure_burst({.callback = callback_,
                                             .requests = std::move(message.requests),
                                             .results = std::move(message.results),
                                             .client_lifeline = client_lifeline_,
                                             .service_lifeline = lifeline_,
                                             .poll_window = message.poll_window,
                                             .execution_limit = message.execution_limit});
  if (configured.status == ErrorStatus::kNone && configured.context == nullptr) {
    configured.status = ErrorStatus::kGeneralFailure;
  }
  if (configured.status != ErrorStatus::kNone) {
    return refuse(id, configured.status, std::move(configured.message));
  }
  context_ = std::move(configured.context);
  is_configured_ = true;
  return send(*described);
}

bool BurstConnection::handle(ControlMessage message) {
  if (const auto* freed = std::get_if<FreeMemoryMessage>(&message.body)) {
    context_->free_memory(freed->slot);
    return true;
  }
  if (auto* memories = std::get_if<MemoriesMessage>(&message.body)) {
    return callback_->answer(message.id, std::move(*memories));
  }
  if (auto* request = std::get_if<ExecuteMessage>(&message.body)) {
    return execute(std::move(*request), message.id);
  }
  log("burst").warn("a burst ends: its client sent a message that has no place here");
  return false;
}

bool BurstConnection::execute(ExecuteMessage message, std::uint32_t id) {
  if (executes_) {
    log("burst").warn("a burst ends: its client asked for two executions at once");
    return false;
  }
  if (direct_.joinable()) direct_.join();
  executes_ = true;
  try {
    direct_ = std::thread([this, id, file = std::move(message.request)] {
      BurstResult result{.status = ErrorStatus::kGeneralFailure, .shapes = {}, .timing = {}};
      const auto datums = read_datums<FmqRequestDatum>(file);
      if (datums) {
        if (const auto request = parse_request(*datums)) {
          result = context_->execute(*request, Deadline::never());
        }
      }
      auto packet = serialise(result);
      if (packet.size() > kMaxDirectDatums) {
        packet = serialise(BurstResult{});
      }
      auto answer = write_datum_file(std::as_bytes(std::span(packet)));
      // Before the answer: who has it may ask again.
      executes_ = false;
      if (!answer || !send({.id = id, .body = ExecutedMessage{std::move(*answer)}})) {
        ::shutdown(socket_->fd(), SHUT_RDWR);
      }
    });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void BurstConnection::close(const std::string& reason) {
  // Whoever is being sent to does not take what he gets.
  if (const std::unique_lock lock(send_mutex_, std::try_to_lock); lock) {
    const auto told =
        send_control(*socket_, {.id = 0, .body = ClosingMessage{reason}}, in(Nanoseconds(0)));
    if (!told) log("burst").info("a client was not told why: {}", told.error().message());
  }
  // What has been sent stays readable for the client.
  ::shutdown(socket_->fd(), SHUT_RD);
}

}  // namespace penstock
