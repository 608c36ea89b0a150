// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the descriptor of a queue, with files of several kinds: refused, or attached so that
// the queue can be used to its bounds. The first byte says which files come.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "penstock/burst/queue_descriptor.h"
#include "penstock/burst/queue_memory.h"
#include "penstock/burst/ring.h"

namespace penstock {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

UniqueFd file_of_kind(unsigned kind) {
  UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool is_large = kind != 2;
  if (!file.is_valid() || ::ftruncate(file.get(), is_large ? 8192 : 64) != 0) std::abort();
  const int seals = kind == 1 ? 0 : kind == 3 ? kSizeSeals | F_SEAL_FUTURE_WRITE : kSizeSeals;
  if (::fcntl(file.get(), F_ADD_SEALS, seals) != 0) std::abort();
  return file;
}

void use(const QueueMemory& memory, QueueFlavor flavor) {
  const RingView& ring = memory.ring();
  auto reader = RingReader::open(ring, flavor);
  if (!reader) return;
  std::vector<std::byte> items(ring.bytes);
  if (flavor == QueueFlavor::kSynchronised) {
    auto writer = RingWriter::open(ring, flavor);
    if (!writer) return;
    const auto room = writer->available();
    if (room && !writer->write(items.data(), *room)) std::abort();
    if (const auto flag = memory.flag()) flag->wake(EventFlag::kNotEmpty);
  }
  const auto there = reader->available();
  if (there && !reader->read(items.data(), *there)) std::abort();
}

void try_to_attach(std::span<const std::byte> bytes, unsigned kinds, QueueFlavor flavor) {
  std::vector<UniqueFd> files;
  for (unsigned i = 0; i < kinds % 3; ++i) files.push_back(file_of_kind(kinds >> (2 * i + 2) & 3));
  auto descriptor = decode_descriptor(bytes, std::move(files));
  if (!descriptor) {
    if (descriptor.error().message().empty()) std::abort();
    return;
  }
  const std::size_t quantum = descriptor->quantum;
  const auto memory = QueueMemory::attach(std::move(*descriptor), quantum, flavor);
  if (memory) use(*memory, flavor);
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  try_to_attach(bytes, data[0], QueueFlavor::kSynchronised);
  try_to_attach(bytes, data[0], QueueFlavor::kUnsynchronised);
  return 0;
}
