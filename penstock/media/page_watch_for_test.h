// SPDX-License-Identifier: Apache-2.0
//
// PageWatch proves in which order the pages of a frame are read (contract A03). Each plane is a
// memfd mapped twice: tests fill it through a read-write alias, the frame lies in the other
// mapping, which starts without any permission. A fault opens the page it hit for reading and
// closes those that hold nothing of the plane's two last rows. Page order is what it shows, not
// loads per pixel.
//
// One watch at a time; the frame must be read by the thread that the test waits for.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/base/unique_fd.h"
#include "penstock/memory/storage.h"

namespace penstock::testing {

class PageWatch {
 public:
  struct PlaneSize {
    std::size_t stride, rows;
  };

  explicit PageWatch(std::span<const PlaneSize> planes);
  ~PageWatch();
  PageWatch(const PageWatch&) = delete;
  PageWatch& operator=(const PageWatch&) = delete;

  /// The plane's bytes for the test.
  std::span<std::byte> alias(std::size_t plane) const;
  /// The guarded bytes, as a frame's memory.
  StoragePtr storage(std::size_t plane) const;
  /// Forgets what was seen and closes every page.
  void restart();

  int pages(std::size_t plane) const { return static_cast<int>(planes_[plane].states.size()); }
  int opened(std::size_t plane) const;
  /// Pages that were opened again after their rows had been left behind.
  int reopened() const;
  /// Stores into the guarded mapping.
  int writes() const;

 private:
  enum class PageState : std::uint8_t { kNever, kOpen, kClosed };
  struct GuardedPlane {
    UniqueFd fd;
    std::byte* guarded = nullptr;
    std::byte* alias = nullptr;
    std::size_t bytes = 0;  // whole pages
    std::size_t stride = 0;
    std::size_t rows = 0;
    std::size_t last_row = 0;
    std::vector<PageState> states;
    int opened = 0;
  };

  static void on_fault(int signal, siginfo_t* info, void* context);
  bool open_page(const std::byte* address);

  std::vector<GuardedPlane> planes_;
  int reopened_ = 0;
  int writes_ = 0;
};

}  // namespace penstock::testing
