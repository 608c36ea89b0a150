// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/session_model.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/burst/burst_server.h"
#include "penstock/burst/session_executor.h"

namespace penstock {
namespace {

bool same(const Dimension& a, const Dimension& b) {
  return a.minimum == b.minimum && a.maximum == b.maximum && a.symbol == b.symbol;
}

bool same(const TensorSpec& a, const TensorSpec& b) {
  return a.name == b.name && a.type == b.type && a.layout == b.layout &&
         std::ranges::equal(a.dims, b.dims,
                            [](const Dimension& x, const Dimension& y) { return same(x, y); });
}

bool same(const std::vector<TensorSpec>& a, const std::vector<TensorSpec>& b) {
  return std::ranges::equal(a, b,
                            [](const TensorSpec& x, const TensorSpec& y) { return same(x, y); });
}

/// A context with something that lives as long.
template <typename Held>
class HoldingContext final : public BurstContext {
 public:
  HoldingContext(Held held, std::unique_ptr<BurstContext> context)
      : held_(std::move(held)), context_(std::move(context)) {}
  void free_memory(std::int32_t slot) override { context_->free_memory(slot); }
  BurstResult execute(const BurstRequest& request, Deadline deadline) override {
    return context_->execute(request, deadline);
  }

 private:
  Held held_;  // Goes after the context, whose thread uses the session.
  std::unique_ptr<BurstContext> context_;
};

}  // namespace

/// A burst's share in keeping the model hot.
class SessionModel::Hold {
 public:
  explicit Hold(std::shared_ptr<SessionModel> model) : model_(std::move(model)) {}
  Hold(Hold&&) = default;
  Hold& operator=(Hold&&) = delete;
  ~Hold() {
    if (model_ != nullptr) model_->release();
  }

 private:
  std::shared_ptr<SessionModel> model_;
};

Result<std::shared_ptr<SessionModel>> SessionModel::create(DevicePtr device, Opener opener,
                                                           SessionModelOptions options) {
  auto session = opener();
  if (!session) return std::unexpected(std::move(session).error());
  return std::shared_ptr<SessionModel>(new SessionModel(std::move(device), std::move(opener),
                                                        std::move(options), std::move(*session)));
}

SessionModel::SessionModel(DevicePtr device, Opener opener, SessionModelOptions options,
                           std::shared_ptr<Session> session)
    : device_(std::move(device)),
      opener_(std::move(opener)),
      options_(std::move(options)),
      inputs_(session->inputs()),
      outputs_(session->outputs()),
      session_(std::move(session)),
      idle_since_(options_.clock->now()) {}

Result<std::shared_ptr<Session>> SessionModel::hold() {
  const std::lock_guard lock(mutex_);
  if (session_ == nullptr) {
    auto session = opener_();
    if (!session) return std::unexpected(std::move(session).error());
    if (!same((*session)->inputs(), inputs_) || !same((*session)->outputs(), outputs_)) {
      return fail(ErrorKind::kDevice,
                  str_format("model '{}' was let go of, and has other inputs or outputs now; "
                             "restart the server",
                             options_.name));
    }
    session_ = std::move(*session);
  }
  if (++holds_ == 1) {
    // The request holds as long as the file is open.
    latency_.reset(::open(options_.latency_file.c_str(), O_WRONLY | O_CLOEXEC));
    const std::int32_t microseconds = 0;
    if (latency_.is_valid() &&
        ::write(latency_.get(), &microseconds, sizeof microseconds) != sizeof microseconds) {
      latency_.reset();
    }
  }
  return session_;
}

void SessionModel::release() {
  const std::lock_guard lock(mutex_);
  if (--holds_ > 0) return;
  latency_.reset();
  idle_since_ = options_.clock->now();
}

void SessionModel::interrupt() {
  const std::lock_guard lock(mutex_);
  if (session_ != nullptr) session_->interrupt();
}

bool SessionModel::is_loaded() const {
  const std::lock_guard lock(mutex_);
  return session_ != nullptr;
}

int SessionModel::holds() const {
  const std::lock_guard lock(mutex_);
  return holds_;
}

bool SessionModel::asks_for_latency() const {
  const std::lock_guard lock(mutex_);
  return latency_.is_valid();
}

bool SessionModel::let_go_if_idle() {
  std::shared_ptr<Session> gone;
  const std::lock_guard lock(mutex_);
  if (options_.idle_limit <= Nanoseconds(0) || holds_ > 0 || session_ == nullptr) return false;
  if (options_.clock->now() - idle_since_ < options_.idle_limit) return false;
  session_.swap(gone);
  return true;
}

ConfiguredBurst SessionModel::configure_burst(BurstConfiguration configuration) {
  auto session = hold();
  if (!session) {
    return {.status = ErrorStatus::kDeviceUnavailable,
            .context = nullptr,
            .message = session.error().message()};
  }
  Hold hold(shared_from_this());
  auto executor = std::make_unique<SessionExecutor>(
      device_, std::move(*session), BurstQuota::create(options_.quota, options_.total_quota),
      options_.clock);
  auto configured = BurstServer::create(std::move(configuration), std::move(executor),
                                        {.execution_limit = options_.execution_limit,
                                         .metrics = options_.metrics,
                                         .clock = options_.clock});
  if (configured.context != nullptr) {
    configured.context =
        std::make_unique<HoldingContext<Hold>>(std::move(hold), std::move(configured.context));
  }
  return configured;
}

}  // namespace penstock
