// SPDX-License-Identifier: Apache-2.0
//
// RemoteModel is a BurstModel in another process, behind a BurstHost's socket.
//
//   auto model = RemoteModel::connect("/run/user/1000/penstock.burst", "nanodet");
//   auto client = BurstClient::create(*model);
//
// Each burst has a connection of its own. The other process is not trusted: what it says is
// checked, and its death or anything unexpected ends the burst (its client_lifeline is cut).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/burst/burst_model.h"

namespace penstock {

struct RemoteModelOptions {
  Nanoseconds answer_limit = std::chrono::seconds(10);  ///< For Describe and Configure.
};

class RemoteModel final : public BurstModel {
 public:
  /// Asks what the model is. kNotFound: nobody listens there; kPermission; kInvalidArgument: no
  /// such model, with the server's words; kDeadline, kCorrupt, kExhausted.
  static Result<std::shared_ptr<RemoteModel>> connect(std::filesystem::path path, std::string model,
                                                      const RemoteModelOptions& options = {});

  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  const std::string& artefact_hash() const override { return hash_; }
  /// Refused (kGeneralFailure) when another model has come under this name meanwhile.
  ConfiguredBurst configure_burst(BurstConfiguration configuration) override;

  const std::filesystem::path& path() const { return path_; }

 private:
  RemoteModel(std::filesystem::path path, std::string model, const RemoteModelOptions& options)
      : path_(std::move(path)), model_(std::move(model)), options_(options) {}

  const std::filesystem::path path_;
  const std::string model_;
  const RemoteModelOptions options_;
  std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
  std::string hash_;
};

}  // namespace penstock
