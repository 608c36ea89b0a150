// SPDX-License-Identifier: Apache-2.0
//
// Layouts as published, and descriptors and files as a hostile peer would send them.
#include "penstock/burst/queue_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/queue_descriptor.h"

namespace penstock {
namespace {

constexpr auto kSync = QueueFlavor::kSynchronised;
constexpr auto kUnsync = QueueFlavor::kUnsynchronised;

QueueShape burst_shape() {
  return {.quantum = 24, .elements = 1024, .flavor = kSync, .event_flag = true};
}

QueueDescriptor descriptor_of(const QueueShape& shape) {
  auto memory = QueueMemory::create(shape);
  EXPECT_TRUE(memory) << memory.error().message();
  return std::move(memory->describe().value());
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

struct Place {
  std::uint64_t offset, extent;
  bool operator==(const Place&) const = default;
};

std::vector<Place> places_of(const QueueDescriptor& descriptor) {
  std::vector<Place> places;
  for (const Grantor& grantor : descriptor.grantors) {
    places.push_back({grantor.offset, grantor.extent});
  }
  return places;
}

TEST(Q01, GivenABurstsQueue_WhenLaidOut_ThenEverythingLiesWhereTheReferencePutsIt) {
  const QueueDescriptor descriptor = descriptor_of(burst_shape());
  EXPECT_EQ(descriptor.quantum, 24u);
  EXPECT_EQ(descriptor.flavor, 1u);
  EXPECT_EQ(places_of(descriptor), (std::vector<Place>{{0, 8}, {8, 8}, {16, 24576}, {24592, 4}}));
  struct stat info{};
  ASSERT_EQ(::fstat(descriptor.files.at(0).get(), &info), 0);
  EXPECT_EQ(info.st_size, 28672);
}

TEST(Q01, GivenARingOfOddSize_WhenLaidOut_ThenTheEventWordIsAligned) {
  QueueShape shape = burst_shape();
  shape.quantum = 1;
  shape.elements = 2049;
  EXPECT_EQ(places_of(descriptor_of(shape)),
            (std::vector<Place>{{0, 8}, {8, 8}, {16, 2049}, {2072, 4}}));
}

TEST(Q01, GivenAnUnsynchronisedQueue_WhenLaidOut_ThenItHasThreePartsAndFlavourTwo) {
  const auto descriptor =
      descriptor_of({.quantum = 2, .elements = 4, .flavor = kUnsync, .event_flag = false});
  EXPECT_EQ(places_of(descriptor), (std::vector<Place>{{0, 8}, {8, 8}, {16, 8}}));
  EXPECT_EQ(descriptor.flavor, 2u);
}

TEST(Q04, GivenShapesThatCannotBe_WhenCreated_ThenTheyAreRefusedAndNothingIsKept) {
  const std::size_t before = open_files();
  std::vector<QueueShape> shapes(6, burst_shape());
  shapes[0].elements = 0;
  shapes[1].quantum = 0;
  shapes[2].elements = SIZE_MAX / 24 + 2;
  shapes[3].elements = SIZE_MAX;
  shapes[4].elements = (std::size_t{256} << 20) / 24 + 1;
  shapes[5].flavor = kUnsync;
  for (const QueueShape& shape : shapes) {
    for (int i = 0; i < 20; ++i) {
      auto memory = QueueMemory::create(shape);
      ASSERT_FALSE(memory);
      EXPECT_EQ(memory.error().kind(), ErrorKind::kInvalidArgument);
    }
  }
  EXPECT_EQ(open_files(), before);
}

// Each lie is told a hundred times: nothing of it may stay open.
struct Lie {
  const char* name;
  std::function<void(QueueDescriptor&)> tell;
  const char* complaint;
};

UniqueFd unsealed(std::size_t size) {
  UniqueFd file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
  return file;
}

UniqueFd sealed(std::size_t size, int seals) {
  UniqueFd file = unsealed(size);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

class Q04_Descriptor : public ::testing::TestWithParam<Lie> {};

TEST_P(Q04_Descriptor, GivenALie_WhenAttaching_ThenItIsNamedAndNothingIsKept) {
  auto memory = QueueMemory::create(burst_shape());
  ASSERT_TRUE(memory) << memory.error().message();
  const std::size_t before = open_files();
  for (int i = 0; i < 20; ++i) {
    QueueDescriptor descriptor = std::move(memory->describe().value());
    GetParam().tell(descriptor);
    const auto attached = QueueMemory::attach(std::move(descriptor), 24, kSync);
    ASSERT_FALSE(attached);
    EXPECT_EQ(attached.error().kind(), ErrorKind::kCorrupt);
    EXPECT_NE(attached.error().message().find(GetParam().complaint), std::string::npos)
        << attached.error().message();
  }
  EXPECT_EQ(open_files(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Lies, Q04_Descriptor,
    ::testing::Values(
        Lie{"Quantum", [](auto& d) { d.quantum = 8; }, "elements of 8 bytes instead of 24"},
        Lie{"QuantumZero", [](auto& d) { d.quantum = 0; }, "elements of 0 bytes"},
        Lie{"Flavour", [](auto& d) { d.flavor = 2; }, "flavour 2 instead of 1"},
        Lie{"FewGrantors", [](auto& d) { d.grantors.resize(2); }, "2 grantors"},
        Lie{"ManyGrantors", [](auto& d) { d.grantors.resize(5); }, "5 grantors"},
        Lie{"NoFile", [](auto& d) { d.files.clear(); }, "0 files instead of one"},
        Lie{"ManyFiles", [](auto& d) { d.files.resize(3); }, "3 files instead of one"},
        Lie{"FileIndex", [](auto& d) { d.grantors[0].file = 5; }, "read counter: file 5 of one"},
        Lie{"Unaligned", [](auto& d) { d.grantors[3].offset += 4; }, "event word: offset 24596"},
        Lie{"CounterShort", [](auto& d) { d.grantors[1].extent = 4; }, "write counter: 4 bytes"},
        Lie{"CounterHuge", [](auto& d) { d.grantors[0].extent = 0xfffff041; }, "read counter"},
        Lie{"FlagShort", [](auto& d) { d.grantors[3].extent = 2; }, "event word: 2 bytes"},
        Lie{"RingEmpty", [](auto& d) { d.grantors[2].extent = 0; }, "ring: 0 bytes"},
        Lie{"RingOdd", [](auto& d) { d.grantors[2].extent -= 1; }, "no whole number of elements"},
        Lie{"RingHuge", [](auto& d) { d.grantors[2].extent = UINT64_MAX; }, "ring: 1844674407370"},
        Lie{"RingBeyondFile", [](auto& d) { d.grantors[2].extent = 24 * 1200; }, "ring: overlaps"},
        Lie{"FlagBeyondFile", [](auto& d) { d.grantors[3].offset = 28672; }, "28672 bytes where"},
        Lie{"OffsetHuge", [](auto& d) { d.grantors[3].offset = 0xfffffff8; }, "bytes where"},
        Lie{"Overlap", [](auto& d) { d.grantors[2].offset = 8; }, "write counter: overlaps"},
        Lie{"CountersSame", [](auto& d) { d.grantors[1].offset = 0; }, "read counter: overlaps"},
        Lie{"UnusedFile", [](auto& d) { d.files.push_back(sealed(4096, kSizeSeals)); },
            "2 files instead of one"},
        Lie{"ClosedFile", [](auto& d) { d.files[0].reset(); }, "it is no memfd"},
        Lie{"NotSealed", [](auto& d) { d.files[0] = unsealed(28672); }, "size is not sealed"},
        Lie{"MayShrink", [](auto& d) { d.files[0] = sealed(28672, F_SEAL_GROW); },
            "size is not sealed"},
        Lie{"Short", [](auto& d) { d.files[0] = sealed(8192, kSizeSeals); }, "it has 8192 bytes"},
        Lie{"HolesForEver", [](auto& d) { d.files[0] = sealed(28672, kSizeSeals | F_SEAL_SEAL); },
            "can't be sealed against holes"},
        Lie{"ReadOnly", [](auto& d) { d.files[0] = sealed(28672, kSizeSeals | F_SEAL_WRITE); },
            "may not be mapped for writing"},
        Lie{"DevZero", [](auto& d) { d.files[0].reset(::open("/dev/zero", O_RDWR | O_CLOEXEC)); },
            "it is no memfd"}),
    [](const auto& given) { return given.param.name; });

TEST(Q04, GivenAnUnsealedFileOfAnUnsynchronisedQueue_WhenAttaching_ThenItIsRefused) {
  QueueDescriptor descriptor =
      descriptor_of({.quantum = 2, .elements = 4, .flavor = kUnsync, .event_flag = false});
  descriptor.files[0] = sealed(4096, kSizeSeals);
  const auto attached = QueueMemory::attach(std::move(descriptor), 2, kUnsync);
  ASSERT_FALSE(attached);
  EXPECT_NE(attached.error().message().find("not sealed for writing"), std::string::npos);
}

/// What can still be done to a file by whoever has it.
void expect_pages_stay(int file) {
  EXPECT_EQ(::ftruncate(file, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::pwrite(file, "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST(Q04, GivenAnAttachedQueue_WhenItsFileIsTamperedWith_ThenItsPagesStay) {
  auto memory = QueueMemory::create(burst_shape());
  ASSERT_TRUE(memory) << memory.error().message();
  EXPECT_FALSE(memory->settle()) << "nobody has attached";
  QueueDescriptor kept = std::move(memory->describe().value());
  auto attached = QueueMemory::attach(std::move(memory->describe().value()), 24, kSync);
  ASSERT_TRUE(attached) << attached.error().message();
  expect_pages_stay(kept.files[0].get());
  EXPECT_TRUE(memory->settle());
  EXPECT_FALSE(memory->describe()) << "its file is still open";
  // The creator's mapping, which is writable, does not help either.
  EXPECT_NE(::madvise(memory->ring().read_counter, 4096, MADV_REMOVE), 0);
  EXPECT_FALSE(attached->describe()) << "only the creator describes";
}

TEST(Q04, GivenHolesBeforeAttaching_WhenAttached_ThenThePagesAreThere) {
  auto memory = QueueMemory::create(burst_shape());
  ASSERT_TRUE(memory) << memory.error().message();
  QueueDescriptor descriptor = std::move(memory->describe().value());
  const UniqueFd file(::fcntl(descriptor.files[0].get(), F_DUPFD_CLOEXEC, 0));
  ASSERT_EQ(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 28672), 0);
  struct stat info{};
  ASSERT_EQ(::fstat(file.get(), &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
  const auto attached = QueueMemory::attach(std::move(descriptor), 24, kSync);
  ASSERT_TRUE(attached) << attached.error().message();
  ASSERT_EQ(::fstat(file.get(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, 24596);
}

TEST(Q04, GivenASynchronisedQueue_WhenAttachedTwice_ThenTheSecondIsRefused) {
  auto memory = QueueMemory::create(burst_shape());
  ASSERT_TRUE(memory) << memory.error().message();
  QueueDescriptor again = std::move(memory->describe().value());
  ASSERT_TRUE(QueueMemory::attach(std::move(memory->describe().value()), 24, kSync));
  const auto second = QueueMemory::attach(std::move(again), 24, kSync);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("attached before"), std::string::npos);
}

TEST(Q04, GivenAnUnsynchronisedQueue_WhenReadersAttach_ThenTheirMapsAreReadOnly) {
  const QueueShape shape = {.quantum = 2, .elements = 4, .flavor = kUnsync, .event_flag = false};
  auto memory = QueueMemory::create(shape);
  ASSERT_TRUE(memory) << memory.error().message();
  QueueDescriptor kept = std::move(memory->describe().value());
  expect_pages_stay(kept.files[0].get());
  for (int i = 0; i < 3; ++i) {
    const auto attached = QueueMemory::attach(std::move(memory->describe().value()), 2, kUnsync);
    ASSERT_TRUE(attached) << attached.error().message();
    EXPECT_EQ(::mprotect(attached->ring().read_counter, 4096, PROT_READ | PROT_WRITE), -1);
    EXPECT_EQ(errno, EACCES);
  }
}

std::vector<UniqueFd> files(std::size_t count) {
  std::vector<UniqueFd> made;
  while (made.size() < count) made.push_back(unsealed(1));
  return made;
}

TEST(Q04, GivenAnEncodedDescriptor_WhenDecoded_ThenItIsTheSame) {
  QueueDescriptor descriptor = descriptor_of(burst_shape());
  const auto bytes = encode(descriptor);
  EXPECT_EQ(bytes.size(), 16u + 4 * 24);
  const auto decoded = decode_descriptor(bytes, std::move(descriptor.files));
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->quantum, 24u);
  EXPECT_EQ(decoded->flavor, 1u);
  EXPECT_EQ(places_of(*decoded), places_of(descriptor));
  EXPECT_EQ(decoded->files.size(), 1u);
}

TEST(Q04, GivenMalformedBytes_WhenDecoded_ThenTheyAreRefusedAndTheFilesClosed) {
  const std::size_t before = open_files();
  const auto good = encode(descriptor_of(burst_shape()));
  const auto refuses = [&](const std::vector<std::byte>& bytes, std::size_t count) {
    const auto decoded = decode_descriptor(bytes, files(count));
    return !decoded && decoded.error().kind() == ErrorKind::kCorrupt;
  };
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(refuses({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, 1))
        << size;
  }
  EXPECT_TRUE(refuses(good, 0));
  EXPECT_TRUE(refuses(good, 2));
  for (const std::size_t at : {0u, 12u, 14u, 16u, 28u, 16u + 3 * 24 + 12u}) {
    auto bad = good;
    bad.at(at) ^= std::byte{0x40};
    EXPECT_TRUE(refuses(bad, 1)) << at;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_TRUE(refuses(longer, 1));
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace penstock
