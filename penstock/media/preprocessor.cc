// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/preprocessor.h"

#include <cmath>
#include <utility>
#include <vector>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"
#include "penstock/media/kernels/sampling.h"
#include "penstock/media/kernels/yuv420_to_tensor.h"
#include "penstock/media/padded_pool.h"

namespace penstock {
namespace {

Result<std::size_t> checked_input_bytes(const PreprocessSpec& spec) {
  if (spec.width < 1 || spec.height < 1 || spec.width > kMaxFrameSide ||
      spec.height > kMaxFrameSide) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("model input size {}x{} is not within 1..{}", spec.width, spec.height,
                           kMaxFrameSide));
  }
  const auto bytes =
      checked_product(size_of(spec.type), std::size_t{3}, static_cast<std::size_t>(spec.width),
                      static_cast<std::size_t>(spec.height));
  if (!bytes || *bytes > kMaxInputBytes) {
    return fail(ErrorKind::kExhausted,
                str_format("model input {}x{} exceeds the budget of {} bytes a tensor", spec.width,
                           spec.height, kMaxInputBytes));
  }
  return *bytes;
}

Result<void> check_normalisation(const PreprocessSpec& spec) {
  if (spec.layout == TensorLayout::kAny) {
    return fail(ErrorKind::kInvalidArgument, "the input's layout is neither NCHW nor NHWC");
  }
  if (spec.type != DataType::kFloat32 && spec.type != DataType::kFloat16 &&
      spec.type != DataType::kUint8) {
    return fail(ErrorKind::kUnsupported, str_format("pictures can be made as float32, float16 or "
                                                    "uint8, not as {}",
                                                    to_string(spec.type)));
  }
  const bool normalises = spec.scale != 1.0f || spec.mean != std::array{0.0f, 0.0f, 0.0f} ||
                          spec.std != std::array{1.0f, 1.0f, 1.0f};
  if (spec.type == DataType::kUint8 && normalises) {
    return fail(ErrorKind::kInvalidArgument,
                "a uint8 input takes the levels themselves: scale and std must be 1, mean 0");
  }
  if (!std::isfinite(spec.scale) || !std::isfinite(spec.pad_level)) {
    return fail(ErrorKind::kInvalidArgument, "scale and pad level must be finite");
  }
  for (std::size_t c = 0; c < 3; ++c) {
    if (!std::isfinite(spec.mean[c]) || !std::isfinite(spec.std[c]) || spec.std[c] == 0.0f) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("mean {} / std {} of channel {}: both must be finite, std not 0",
                             spec.mean[c], spec.std[c], c));
    }
  }
  return {};
}

TensorElement element_of(DataType type) {
  if (type == DataType::kUint8) return TensorElement::kUint8;
  return type == DataType::kFloat16 ? TensorElement::kFloat16 : TensorElement::kFloat32;
}

// The tensor as the spec wants it, without its address.
TensorTarget target_of(const PreprocessSpec& spec) {
  TensorTarget target;
  target.interleaved = spec.layout == TensorLayout::kNhwc;
  target.bgr = spec.order == ChannelOrder::kBgr;
  target.element = element_of(spec.type);
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t rgb = target.bgr ? 2 - c : c;  // the spec counts in the output's order
    target.gain[rgb] = spec.scale / spec.std[c];
    target.bias[rgb] = -spec.mean[c] / spec.std[c];
    target.padding[rgb] = (spec.pad_level * spec.scale - spec.mean[c]) / spec.std[c];
  }
  return target;
}

// Runs the host kernel as a job of any device whose jobs run on the host.
class HostPreprocessor final : public Preprocessor {
 public:
  HostPreprocessor(DevicePtr device, const PreprocessSpec& spec, std::size_t bytes)
      : device_(std::move(device)),
        spec_(spec),
        bytes_(bytes),
        target_(target_of(spec)),
        padded_(PaddedPool::create(device_)) {
    shape_ = spec.layout == TensorLayout::kNhwc ? Shape{1, spec.height, spec.width, 3}
                                                : Shape{1, 3, spec.height, spec.width};
  }

  ~HostPreprocessor() override { padded_->retire(); }

  Result<PreprocessedFrame> run(const FramePtr& frame, std::optional<RectI> roi) override;
  const PreprocessSpec& spec() const override { return spec_; }

 private:
  Result<void> accept(const FramePtr& frame) const;
  Result<std::shared_ptr<const SamplingPlan>> plan_for(const VideoFrame& frame, RectI roi);
  /// The memory of one tensor, padded already where that can be had.
  Result<PaddedPool::Lent> lend(const std::shared_ptr<const SamplingPlan>& plan);

  const DevicePtr device_;
  const PreprocessSpec spec_;
  const std::size_t bytes_;
  const TensorTarget target_;
  const std::shared_ptr<PaddedPool> padded_;
  Shape shape_;
  // The last geometry; streams rarely change theirs. Jobs in flight keep the one they started with.
  std::shared_ptr<const SamplingPlan> plan_;
  ChromaSite plan_site_ = ChromaSite::kLeft;
  PixelFormat plan_format_ = PixelFormat::kNv12;
};

Result<void> HostPreprocessor::accept(const FramePtr& frame) const {
  if (!frame) return fail(ErrorKind::kInvalidArgument, "no frame");
  PENSTOCK_TRY(validate(*frame));
  const DeviceId where = frame->planes[0].storage->device();
  if (where != device_->id()) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("the frame is in memory of device '{}', this preprocessor runs on '{}'",
                           to_string(where), to_string(device_->id())));
  }
  return {};
}

Result<std::shared_ptr<const SamplingPlan>> HostPreprocessor::plan_for(const VideoFrame& frame,
                                                                       RectI roi) {
  auto crop = grow_to_chroma(roi, frame.width, frame.height);
  if (!crop) return std::unexpected(std::move(crop).error());
  if (plan_ && plan_site_ == frame.color.site && plan_format_ == frame.format &&
      plan_->box.crop == *crop && plan_->box.frame_width == frame.width &&
      plan_->box.frame_height == frame.height) {
    return plan_;
  }
  auto box =
      Letterbox::plan(*crop, frame.width, frame.height, spec_.width, spec_.height, spec_.fit);
  if (!box) return std::unexpected(std::move(box).error());
  plan_ = std::make_shared<const SamplingPlan>(
      plan_sampling(*box, frame.color.site, frame.format == PixelFormat::kNv12));
  plan_site_ = frame.color.site;
  plan_format_ = frame.format;
  return plan_;
}

Result<PaddedPool::Lent> HostPreprocessor::lend(const std::shared_ptr<const SamplingPlan>& plan) {
  const Letterbox& box = plan->box;
  if (box.scaled_width != box.input_width || box.scaled_height != box.input_height) {
    return padded_->acquire(bytes_, plan);
  }
  auto storage = device_->allocate(bytes_);
  if (!storage) return std::unexpected(std::move(storage).error());
  return PaddedPool::Lent{.storage = *std::move(storage), .is_padded = false, .written = nullptr};
}

Result<PreprocessedFrame> HostPreprocessor::run(const FramePtr& frame, std::optional<RectI> roi) {
  const auto where = [this] {
    return str_format("preprocessing for input '{}' on device '{}'", spec_.input_name,
                      to_string(device_->id()));
  };
  if (auto accepted = accept(frame); !accepted) {
    return std::unexpected(std::move(accepted).error().context(where()));
  }
  auto plan = plan_for(*frame, roi.value_or(RectI{0, 0, frame->width, frame->height}));
  if (!plan) return std::unexpected(std::move(plan).error().context(where()));
  auto lent = lend(*plan);
  if (!lent) return std::unexpected(std::move(lent).error().context(where()));
  StoragePtr& storage = lent->storage;

  // Owners until the fence: `uses`. The job itself holds plain references to what they keep alive.
  std::vector<Device::Owner> uses{frame, *plan, storage};
  for (int p = 0; p < plane_count(frame->format); ++p) {
    uses.push_back(frame->planes[static_cast<std::size_t>(p)].storage);
  }
  auto job = [source_frame = frame.get(), plan = plan->get(), output = storage.get(),
              target = target_, is_padded = lent->is_padded, written = lent->written,
              ledger = &device_->ledger()](const Access& access) mutable -> Result<void> {
    Yuv420Source source;
    source.interleaved_chroma = source_frame->format == PixelFormat::kNv12;
    for (std::size_t p = 0; p < static_cast<std::size_t>(plane_count(source_frame->format)); ++p) {
      const Plane& plane = source_frame->planes[p];
      source.planes[p] =
          reinterpret_cast<const std::uint8_t*>(access.bytes(*plane.storage).data()) + plane.offset;
      source.strides[p] = plane.stride;
    }
    target.data = access.bytes(*output).data();
    target.has_padding = is_padded;
    yuv420_to_tensor(*plan, source,
                     yuv_coefficients(source_frame->color.matrix, source_frame->color.range),
                     target);
    if (written) written->store(true);
    ledger->record(CopyClass::kSweep, "media/preprocess", plan->bytes_read);
    return {};
  };
  auto fence = device_->submit(std::move(uses), {frame->ready}, std::move(job));
  if (!fence) return std::unexpected(std::move(fence).error().context(where()));

  return PreprocessedFrame{
      .tensor = {.name = spec_.input_name,
                 .type = spec_.type,
                 .shape = shape_,
                 .data = {.storage = std::move(storage), .offset = 0, .size = bytes_},
                 .ready = std::move(*fence)},
      .letterbox = (*plan)->box};
}

}  // namespace

std::vector<std::byte> padding_pixel(const PreprocessSpec& spec) {
  std::array<float, 3> level;
  for (std::size_t c = 0; c < 3; ++c) {
    level[c] = (spec.pad_level * spec.scale - spec.mean[c]) / spec.std[c];
  }
  std::vector<std::byte> pixel(3 * size_of(spec.type));
  store_elements(element_of(spec.type), level, pixel.data());
  return pixel;
}

Result<std::unique_ptr<Preprocessor>> Preprocessor::create(DevicePtr device,
                                                           const PreprocessSpec& spec) {
  if (!device) return fail(ErrorKind::kInvalidArgument, "preprocessing needs a device");
  const auto where = [&] { return str_format("preprocessing for input '{}'", spec.input_name); };
  const auto bytes = checked_input_bytes(spec);
  if (!bytes) return std::unexpected(bytes.error().context(where()));
  if (auto checked = check_normalisation(spec); !checked) {
    return std::unexpected(checked.error().context(where()));
  }
  switch (device->id().kind) {
    case DeviceKind::kCpu:
    case DeviceKind::kSim:
      return std::make_unique<HostPreprocessor>(std::move(device), spec, *bytes);
    case DeviceKind::kCuda:
    case DeviceKind::kHip:
      break;
  }
  return fail(
      ErrorKind::kUnsupported,
      str_format("no preprocessing kernel for device '{}' in this build", to_string(device->id())));
}

}  // namespace penstock
