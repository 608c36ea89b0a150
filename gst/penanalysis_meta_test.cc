// SPDX-License-Identifier: Apache-2.0
#include "gst/penanalysis_meta.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "gst/gst_ptr.h"

namespace penstock::gst {
namespace {

std::shared_ptr<const Analysis> analysis(std::uint64_t frame) {
  auto made = std::make_shared<Analysis>();
  made->result.source = "camera";
  made->result.frame = frame;
  made->result.generation = 3;
  made->result.pts_ns = 40;
  made->result.objects.push_back({0, "person", 0.5f, 1, 2, 3, 4});
  return made;
}

BufferPtr buffer_with(const std::shared_ptr<const Analysis>& content) {
  BufferPtr buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
  attach_analysis(buffer.get(), content);
  return buffer;
}

TEST(G02, GivenNoAnalysis_WhenRead_ThenNull) {
  const BufferPtr buffer(gst_buffer_new());
  EXPECT_EQ(read_analysis(buffer.get()), nullptr);
}

TEST(G02, GivenAnAnalysis_WhenTheBufferIsCopied_ThenTheCopyHasItAndOutlivesTheOriginal) {
  BufferPtr buffer = buffer_with(analysis(7));
  const BufferPtr copy(gst_buffer_copy(buffer.get()));
  buffer.reset();
  const Analysis* read = read_analysis(copy.get());
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->result.source, "camera");
  EXPECT_EQ(read->result.frame, 7u);
  EXPECT_EQ(read->result.generation, 3u);
  EXPECT_EQ(read->result.pts_ns, 40);
  ASSERT_EQ(read->result.objects.size(), 1u);
  EXPECT_EQ(read->result.objects[0].label, "person");
}

TEST(G02, GivenACopy_WhenItGetsANewAnalysis_ThenTheOriginalKeepsItsOwn) {
  const BufferPtr buffer = buffer_with(analysis(1));
  const BufferPtr copy(gst_buffer_copy(buffer.get()));
  attach_analysis(copy.get(), analysis(2));
  EXPECT_EQ(read_analysis(copy.get())->result.frame, 2u);
  EXPECT_EQ(read_analysis(buffer.get())->result.frame, 1u);
}

TEST(G02, GivenAnAnalysis_WhenARegionIsCopied_ThenTheRegionHasNone) {
  const BufferPtr buffer = buffer_with(analysis(7));
  const BufferPtr region(gst_buffer_copy_region(buffer.get(), GST_BUFFER_COPY_ALL, 0, 32));
  EXPECT_EQ(read_analysis(region.get()), nullptr);
}

TEST(G02, GivenTheLastBuffer_WhenItGoes_ThenTheAnalysisGoesToo) {
  auto content = analysis(7);
  const std::weak_ptr<const Analysis> watch = content;
  BufferPtr buffer = buffer_with(content);
  content.reset();
  auto shared = share_analysis(buffer.get());
  buffer.reset();
  EXPECT_FALSE(watch.expired());
  shared.reset();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace penstock::gst
