// SPDX-License-Identifier: Apache-2.0
//
// PreprocessorCache: one worker's preprocessors, one a stream (contract V06). Bounded: the least
// recently used goes when a stream more than the limit comes along. get() is for the worker;
// drop() may come from any thread, and leaves a preprocessor that is in use alive until its user
// lets go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "penstock/media/preprocessor.h"

namespace penstock {

class PreprocessorCache {
 public:
  static constexpr std::size_t kMaxStreams = 256;

  PreprocessorCache(DevicePtr device, PreprocessSpec spec)
      : device_(std::move(device)), spec_(std::move(spec)) {}

  Result<std::shared_ptr<Preprocessor>> get(const SourceId& source);
  void drop(const SourceId& source);
  std::size_t size() const;
  /// Preprocessors made so far.
  std::uint64_t made() const;

 private:
  using Entry = std::pair<SourceId, std::shared_ptr<Preprocessor>>;

  const DevicePtr device_;
  const PreprocessSpec spec_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // Most recently used first.
  std::uint64_t made_ = 0;
};

}  // namespace penstock
