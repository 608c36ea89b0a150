// SPDX-License-Identifier: Apache-2.0
//
// Weights in other files (contract M06): what runs are the bytes that the manifest's hash is of,
// whatever happens to the files, and the engine opens none by itself.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/media/test_frames.h"
#include "penstock/model/session.h"
#include "penstock/model/testing/session_support.h"
#include "penstock/model/testing/temporary_folder.h"

namespace penstock {
namespace {

using model_testing::floats;
using model_testing::OnnxBuilder;
using model_testing::rows_of_two;
using model_testing::values_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// y = a + what stands in each of the locations, [1, 2] each.
std::string adder(const std::vector<std::string>& locations) {
  OnnxBuilder model;
  model.input("a", DataType::kFloat32, {"N", 2}).output("y", DataType::kFloat32, {"N", 2});
  std::string sum = "a";
  for (std::size_t i = 0; i < locations.size(); ++i) {
    const std::string weight = str_format("w{}", i);
    const std::string next = i + 1 == locations.size() ? "y" : str_format("sum{}", i);
    model.external_constant(weight, {1, 2}, locations[i]).node("Add", {sum, weight}, {next});
    sum = next;
  }
  return model.build();
}

class M06 : public ::testing::Test {
 protected:
  /// As load_manifest gives it for a folder with these data files.
  Manifest manifest_of(const std::string& onnx, const std::vector<std::string>& data) {
    Manifest manifest =
        model_testing::bare_manifest(folder_, onnx, {rows_of_two("a")}, {rows_of_two("y")});
    for (const std::string& path : data) {
      manifest.data.push_back({.path = path, .sha256 = sha256_file(folder_.path() / path).value()});
    }
    return manifest;
  }
  /// y for a = (1, 2).
  Result<std::vector<float>> answer(const Manifest& manifest, const SessionOptions& options = {}) {
    auto session = open_session(device_, manifest, options);
    if (!session) return std::unexpected(session.error());
    const auto outputs = (*session)->run(std::vector{floats(*device_, "a", {1, 2}, {1, 2})});
    if (!outputs) return std::unexpected(outputs.error());
    return values_of(*device_, outputs->front());
  }

  const model_testing::TemporaryFolder folder_;
  const DevicePtr device_ = testing::make_device("cpu");
};

TEST_F(M06, GivenFilesUnderSeveralNames_WhenRun_ThenEachNameIsItsFile) {
  folder_.write("w.bin", bytes_of({10, 20}));
  std::filesystem::create_directory(folder_.path() / "below");
  folder_.write("below/v.bin", bytes_of({100, 200}));
  const auto manifest = manifest_of(
      adder({"w.bin", "./w.bin", "below/../w.bin", ".//w.bin", "./below//v.bin", "below/v.bin"}),
      {"w.bin", "below/v.bin"});
  const auto values = answer(manifest);
  ASSERT_TRUE(values) << values.error().message();
  EXPECT_THAT(*values, ElementsAre(241, 482));
}

TEST_F(M06, GivenADataFileThatChangedAfterItsManifestWasRead_WhenOpened_ThenItIsRefused) {
  folder_.write("w.bin", bytes_of({10, 20}));
  const auto manifest = manifest_of(adder({"w.bin"}), {"w.bin"});
  folder_.write("w.bin", bytes_of({10, 21}));
  const auto values = answer(manifest);
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().kind(), ErrorKind::kCorrupt);
  EXPECT_THAT(values.error().message(),
              AllOf(HasSubstr("w.bin"), HasSubstr("changed since its manifest was read")));
}

TEST_F(M06, GivenADataFileThatIsSwappedWhileTheModelLoads_WhenRun_ThenTheHashedBytesAre) {
  setenv("PENSTOCK_SHIM_ORT", PENSTOCK_ONNXRUNTIME_DEFAULT, 1);
  void* library = dlopen(PENSTOCK_ORT_SHIM, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  const auto before_session =
      reinterpret_cast<void (*)(void (*)(void*), void*)>(dlsym(library, "ort_shim_before_session"));
  const auto path = folder_.write("w.bin", bytes_of({10, 20}));
  const auto manifest = manifest_of(adder({"w.bin"}), {"w.bin"});
  const std::string other = bytes_of({70, 80});
  for (const bool replace : {true, false}) {
    folder_.write("w.bin", bytes_of({10, 20}));
    std::function<void()> swap = [&] {
      // Another file under the name, or other bytes in the same file.
      if (replace) std::filesystem::remove(path);
      std::ofstream(path, std::ios::binary | std::ios::in | std::ios::out |
                              (replace ? std::ios::trunc : std::ios::openmode{}))
          << other;
    };
    before_session([](void* call) { (*static_cast<std::function<void()>*>(call))(); }, &swap);
    const auto values = answer(manifest, {.engine_library = PENSTOCK_ORT_SHIM});
    before_session(nullptr, nullptr);
    ASSERT_TRUE(values) << values.error().message();
    EXPECT_THAT(*values, ElementsAre(11, 22));
    std::ifstream now(path, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(now), {}), other) << "it was swapped";
  }
}

TEST_F(M06, GivenExternalDataThatIsNoInitialiser_WhenOpened_ThenItIsRefusedUnread) {
  folder_.write("w.bin", bytes_of({10, 20}));
  OnnxBuilder model;
  model.input("a", DataType::kFloat32, {"N", 2})
      .output("y", DataType::kFloat32, {"N", 2})
      .external_constant_node("w", {1, 2}, "w.bin")
      .node("Add", {"a", "w"}, {"y"});
  const auto values = answer(manifest_of(model.build(), {"w.bin"}));
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(values.error().message(), HasSubstr("tensor 'w' has external data"));
}

TEST_F(M06, GivenADataFileThatIsTooShort_WhenOpened_ThenItIsAnError) {
  for (const std::string& bytes : {bytes_of({10}), std::string()}) {
    folder_.write("w.bin", bytes);
    const auto values = answer(manifest_of(adder({"w.bin"}), {"w.bin"}));
    ASSERT_FALSE(values) << bytes.size();
  }
}

TEST_F(M06, GivenMoreExternalDataThanTheLimit_WhenOpened_ThenItIsRefusedUnread) {
  const auto path = folder_.write("w.bin", bytes_of({10, 20}));
  const auto manifest = manifest_of(adder({"w.bin"}), {"w.bin"});
  // 16 GiB and a byte, of which the disk has none.
  std::filesystem::resize_file(path, (std::uintmax_t{16} << 30) + 1);
  const auto values = answer(manifest);
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(values.error().message(), HasSubstr("at most 17179869184 bytes"));
}

TEST_F(M06, GivenADataFileBehindALink_WhenItsManifestIsLoaded_ThenTheModelFindsItByItsName) {
  std::filesystem::create_directory(folder_.path() / "below");
  folder_.write("below/w.bin", bytes_of({10, 20}));
  std::filesystem::create_symlink("below/w.bin", folder_.path() / "w.bin");
  const auto model = folder_.write("model.onnx", adder({"w.bin"}));
  folder_.write("manifest.json", str_format(R"({{"schema": 2, "name": "tiny", "artefacts": [
        {{"path": "model.onnx", "sha256": "{}", "role": "model"}},
        {{"path": "./w.bin", "sha256": "{}", "role": "data"}}],
        "engine": {{"name": "onnxruntime"}},
        "inputs": [{{"name": "a", "type": "float32", "dims": [1, 3, 1, 2]}}],
        "outputs": [{{"name": "y", "type": "float32", "dims": ["N", 2]}}],
        "task": "raw", "family": "raw", "labels": [],
        "preprocess": {{"input": "a", "width": 2, "height": 1, "order": "RGB", "fit": "stretch"}},
        "postprocess": {{}}, "licence": {{"spdx": "MIT", "confidence": "a test's"}}}})",
                                            sha256_file(model).value(),
                                            sha256_file(folder_.path() / "w.bin").value()));
  auto manifest = load_manifest(folder_.path());
  ASSERT_TRUE(manifest) << manifest.error().message();
  ASSERT_EQ(manifest->data.size(), 1u);
  EXPECT_EQ(manifest->data[0].path, "w.bin");
  manifest->inputs = {rows_of_two("a")};
  const auto values = answer(*manifest);
  ASSERT_TRUE(values) << values.error().message();
  EXPECT_THAT(*values, ElementsAre(11, 22));
}

}  // namespace
}  // namespace penstock
