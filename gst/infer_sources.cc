// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_sources.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "gst/storage_memory.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

GObject* display_on(GstBuffer* buffer) {
  return gst_buffer_n_memory(buffer) == 0 ? nullptr : display_of(gst_buffer_peek_memory(buffer, 0));
}

}  // namespace

InferSources::InferSources(Options options) : options_(std::move(options)), own_(begin("")) {}

IdentityPtr InferSources::new_identity(std::string stream_id, GObject* display) const {
  // The serial keeps apart two elements that see one stream (behind a tee, say) and share an
  // executor.
  static std::atomic<guint64> serial{0};
  auto identity = std::make_shared<Identity>();
  identity->id.name = str_format("{}#{}", stream_id, serial.fetch_add(1));
  identity->lanes = options_.lanes;
  identity->stream_id = std::move(stream_id);
  if (display != nullptr) identity->display.reset(G_OBJECT(g_object_ref(display)));
  return identity;
}

InferSources::Stream InferSources::begin(std::string stream_id) const {
  return {.identity = new_identity(std::move(stream_id), nullptr), .tasks = options_.make_tasks()};
}

void InferSources::start(const char* stream_id) {
  if (stream_id == nullptr || own_.identity->stream_id == stream_id) return;
  ended_.push_back(own_.identity);
  own_ = begin(stream_id);
}

InferSources::Ticket InferSources::next_frame(Stream& stream, GstBuffer* buffer) {
  GObject* display = display_on(buffer);
  if (display != stream.identity->display.get()) {
    IdentityPtr next = new_identity(stream.identity->stream_id, display);
    ended_.push_back(std::exchange(stream.identity, std::move(next)));
  }
  return {.identity = stream.identity, .number = stream.next_frame++, .tasks = stream.tasks};
}

InferSources::Ticket InferSources::next_frame(GstBuffer* buffer) {
  while (!children_.empty()) end(children_.begin());
  return next_frame(own_, buffer);
}

InferSources::Ticket InferSources::next_frame(const StreamKey& key, GstBuffer* buffer) {
  return next_frame(children_.at(key), buffer);
}

void InferSources::list(std::span<const StreamKey> streams) {
  ++containers_;
  for (const StreamKey& key : streams) {
    const auto found = children_.find(key);
    Stream& stream =
        found != children_.end() ? found->second : (children_[key] = begin(key.stream_id));
    stream.listed = containers_;
  }
  for (auto child = children_.begin(); child != children_.end();) {
    const auto current = child++;
    if (containers_ - current->second.listed >= kAbsentContainers) end(current);
  }
  while (children_.size() > kMaxStreams) {
    end(std::ranges::min_element(children_, {},
                                 [](const auto& child) { return child.second.listed; }));
  }
}

void InferSources::end(Children::iterator child) {
  ended_.push_back(std::move(child->second.identity));
  children_.erase(child);
}

void InferSources::forget_frames() {
  own_.tasks = options_.make_tasks();
  for (auto& [key, stream] : children_) stream.tasks = options_.make_tasks();
}

std::vector<IdentityPtr> InferSources::current() const {
  std::vector<IdentityPtr> all{own_.identity};
  for (const auto& [key, stream] : children_) all.push_back(stream.identity);
  return all;
}

}  // namespace penstock::gst
