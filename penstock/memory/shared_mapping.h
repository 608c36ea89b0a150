// SPDX-License-Identifier: Apache-2.0
//
// A file of shared memory and what makes it safe to touch: it can't shrink (seals), and its pages
// are there and stay (no holes). docs/design/burst.md says why each step is taken.
#pragma once

#include <cstddef>
#include <cstdint>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

enum class MapAccess { kRead, kReadWrite };

/// Owns one shared mapping from a file's start.
class SharedMapping {
 public:
  SharedMapping() = default;
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  ~SharedMapping();

  static Result<SharedMapping> map(const UniqueFd& file, std::size_t size, MapAccess access);

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  SharedMapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A memfd of `size` bytes, all zero and allocated, that can neither shrink nor grow. kExhausted
/// when there is no memory or descriptor.
Result<UniqueFd> create_shared_file(std::size_t size);

/// Of a file from elsewhere: kCorrupt unless it is a memfd that can't shrink and has `size` bytes.
Result<void> check_shared_file(const UniqueFd& file, std::uint64_t size);

/// From here on nobody can write to the file but through mappings that exist, punch holes into it,
/// or seal it otherwise.
Result<void> seal_writers(const UniqueFd& file);
/// Whether that has been done.
bool writers_are_sealed(const UniqueFd& file);

/// Allocates the pages of the first `size` bytes, as far as they are not there. An error where a
/// touch would have been a SIGBUS.
Result<void> allocate_pages(const UniqueFd& file, std::size_t size);

}  // namespace penstock
