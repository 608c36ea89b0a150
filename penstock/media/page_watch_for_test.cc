// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/page_watch_for_test.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace penstock::testing {
namespace {

// The signal handler has no argument of ours.
PageWatch* g_watch = nullptr;
struct sigaction g_previous;

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::abort();
}

}  // namespace

PageWatch::PageWatch(std::span<const PlaneSize> planes) {
  must(g_watch == nullptr, "one PageWatch at a time");
  for (const PlaneSize& size : planes) {
    GuardedPlane& plane = planes_.emplace_back();
    plane.stride = size.stride;
    plane.rows = size.rows;
    const std::size_t count = (size.stride * size.rows + page_size() - 1) / page_size();
    plane.bytes = count * page_size();
    plane.states.assign(count, PageState::kNever);
    plane.fd = UniqueFd(memfd_create("page-watch", MFD_CLOEXEC));
    must(plane.fd.is_valid(), "memfd_create");
    must(ftruncate(plane.fd.get(), static_cast<off_t>(plane.bytes)) == 0, "ftruncate");
    void* alias = mmap(nullptr, plane.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, plane.fd.get(), 0);
    must(alias != MAP_FAILED, "mmap");
    void* guarded = mmap(nullptr, plane.bytes, PROT_NONE, MAP_SHARED, plane.fd.get(), 0);
    must(guarded != MAP_FAILED, "mmap");
    plane.alias = static_cast<std::byte*>(alias);
    plane.guarded = static_cast<std::byte*>(guarded);
  }
  g_watch = this;
  struct sigaction action{};
  action.sa_sigaction = &PageWatch::on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  must(sigaction(SIGSEGV, &action, &g_previous) == 0, "sigaction");
}

PageWatch::~PageWatch() {
  sigaction(SIGSEGV, &g_previous, nullptr);
  g_watch = nullptr;
  for (const GuardedPlane& plane : planes_) {
    munmap(plane.alias, plane.bytes);
    munmap(plane.guarded, plane.bytes);
  }
}

std::span<std::byte> PageWatch::alias(std::size_t plane) const {
  return {planes_[plane].alias, planes_[plane].stride * planes_[plane].rows};
}

StoragePtr PageWatch::storage(std::size_t plane) const {
  return wrap_host_memory({planes_[plane].guarded, planes_[plane].stride * planes_[plane].rows},
                          nullptr);
}

void PageWatch::restart() {
  for (GuardedPlane& plane : planes_) {
    must(mprotect(plane.guarded, plane.bytes, PROT_NONE) == 0, "mprotect");
    std::ranges::fill(plane.states, PageState::kNever);
    plane.last_row = 0;
    plane.opened = 0;
  }
  reopened_ = 0;
  writes_ = 0;
}

// The fences: a plain load or store of the caller may have run the handler.
int PageWatch::opened(std::size_t plane) const {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return planes_[plane].opened;
}
int PageWatch::reopened() const {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return reopened_;
}
int PageWatch::writes() const {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return writes_;
}

// Async-signal-safe: mprotect and plain memory only. The faulting load or store is tried again on
// return.
void PageWatch::on_fault(int /*signal*/, siginfo_t* info, void* /*context*/) {
  if (g_watch != nullptr && g_watch->open_page(static_cast<std::byte*>(info->si_addr))) return;
  sigaction(SIGSEGV, &g_previous, nullptr);  // not ours: let it crash where it happened
}

bool PageWatch::open_page(const std::byte* address) {
  for (GuardedPlane& plane : planes_) {
    if (address < plane.guarded || address >= plane.guarded + plane.bytes) continue;
    const auto offset = static_cast<std::size_t>(address - plane.guarded);
    const std::size_t page = offset / page_size();
    if (plane.states[page] == PageState::kOpen) {
      // Open pages can be read: only a store still faults. It is let through, to be reported.
      ++writes_;
      return mprotect(plane.guarded + page * page_size(), page_size(), PROT_READ | PROT_WRITE) == 0;
    }
    if (plane.states[page] == PageState::kClosed) ++reopened_;
    plane.states[page] = PageState::kOpen;
    ++plane.opened;
    plane.last_row = std::max(plane.last_row, offset / plane.stride);
    const std::size_t kept_from = (plane.last_row == 0 ? 0 : plane.last_row - 1) * plane.stride;
    for (std::size_t p = 0; p < kept_from / page_size(); ++p) {
      if (plane.states[p] != PageState::kOpen) continue;
      plane.states[p] = PageState::kClosed;
      if (mprotect(plane.guarded + p * page_size(), page_size(), PROT_NONE) != 0) return false;
    }
    // A page of rows long left behind is closed at once when it comes again: let that one load
    // pass.
    plane.states[page] = PageState::kOpen;
    return mprotect(plane.guarded + page * page_size(), page_size(), PROT_READ) == 0;
  }
  return false;
}

}  // namespace penstock::testing
