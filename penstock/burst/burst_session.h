// SPDX-License-Identifier: Apache-2.0
//
// BurstSession is a model::Session whose engine runs in another process, behind a few bursts: as
// many as runs are expected at once (SessionOptions::concurrent_runs).
//
//   auto session = BurstSession::connect({.path = socket, .model = "nanodet"}, device, options);
//   auto outputs = (*session)->run({tensor});
//
// Inputs in storage of a shareable `cpu` device (DeviceOptions::shareable) cross without a copy;
// others are copied once, and the ledger says so. Outputs lie where the service wrote them, but for
// bool and integers of 32 and 64 bits, which may become indices and are copied out of its reach.
//
// An output whose shape only a run can tell gets as much room as it needed before; a run that needs
// more is done a second time, with more room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/burst/burst_client.h"
#include "penstock/burst/burst_model.h"
#include "penstock/memory/device.h"
#include "penstock/model/session.h"

namespace penstock {

struct BurstSessionOptions {
  /// Opens the model, for the first time and, with `reconnect`, whenever a burst has broken.
  std::function<Result<std::shared_ptr<BurstModel>>()> open{};
  std::string name{};  ///< For messages: the socket, say.
  /// The artefact that is expected, as BurstModel::artefact_hash; empty: any.
  std::string artefact_hash{};
  /// After the service is gone: false, every later run fails at once. True, runs wait for it within
  /// their limit: connecting is tried in a back-off that doubles from first_backoff to
  /// last_backoff, and a run that was in the service then is done again, as a model has no memory
  /// of runs.
  bool reconnect = false;
  /// With `reconnect`: told that the service was lost, and what is done. From a thread that runs.
  std::function<void(const std::string&)> on_lost = nullptr;
  Nanoseconds first_backoff = Milliseconds(50);
  Nanoseconds last_backoff = std::chrono::seconds(2);
  Nanoseconds poll_window{0};  ///< See BurstClient::Options.
  std::uint32_t jitter_seed = std::random_device{}();
};

struct BurstAddress {
  std::filesystem::path path;
  std::string model;  ///< Empty: the only one that is served.
};

class BurstSession final : public Session {
 public:
  /// `device` is `cpu`: its ledger counts copies, and integer outputs come from its memory.
  /// kInvalidArgument when the artefact is another one; errors of `open` and of BurstClient.
  static Result<std::shared_ptr<Session>> open(DevicePtr device, BurstSessionOptions burst,
                                               const SessionOptions& options);
  /// The same over RemoteModel.
  static Result<std::shared_ptr<Session>> connect(const BurstAddress& address, DevicePtr device,
                                                  BurstSessionOptions burst,
                                                  const SessionOptions& options);
  ~BurstSession() override;

  const std::vector<TensorSpec>& inputs() const override;
  const std::vector<TensorSpec>& outputs() const override;
  /// As Session::run, and kDevice when the service is gone; whether it ran is then not known.
  /// kExhausted also when too many callers wait for a burst, kDeadline after run_limit.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override;
  void interrupt() override;

 private:
  class Lanes;
  explicit BurstSession(std::shared_ptr<Lanes> lanes);
  const std::shared_ptr<Lanes> lanes_;
};

}  // namespace penstock
