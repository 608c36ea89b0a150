// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/preprocessor_cache.h"

#include <algorithm>

namespace penstock {

Result<std::shared_ptr<Preprocessor>> PreprocessorCache::get(const SourceId& source) {
  // Declared before the lock: what falls out of the cache is destroyed after it.
  std::shared_ptr<Preprocessor> evicted;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, source, &Entry::first);
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().second;
  }
  auto made = Preprocessor::create(device_, spec_);
  if (!made) return std::unexpected(std::move(made).error());
  ++made_;
  entries_.emplace_front(source, std::move(*made));
  if (entries_.size() > kMaxStreams) {
    evicted = std::move(entries_.back().second);
    entries_.pop_back();
  }
  return entries_.front().second;
}

void PreprocessorCache::drop(const SourceId& source) {
  std::shared_ptr<Preprocessor> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, source, &Entry::first);
  if (found == entries_.end()) return;
  dropped = std::move(found->second);
  entries_.erase(found);
}

std::size_t PreprocessorCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::uint64_t PreprocessorCache::made() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace penstock
