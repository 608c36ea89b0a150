// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/records.h"

#include "penstock/base/json_text.h"

namespace penstock {
namespace {

template <typename T>
void append_member(std::string& out, std::string_view key, T value) {
  out += key;
  append_json_number(out, value);
}

void append_object(std::string& out, const Detection& object) {
  out += R"({"label":)";
  append_json_string(out, object.label);
  append_member(out, R"(,"class_id":)", object.class_id);
  append_member(out, R"(,"confidence":)", object.confidence);
  append_member(out, R"(,"x":)", object.x);
  append_member(out, R"(,"y":)", object.y);
  append_member(out, R"(,"w":)", object.width);
  append_member(out, R"(,"h":)", object.height);
  out += '}';
}

}  // namespace

std::string to_json_line(const FrameResult& result) {
  std::string out;
  out.reserve(160 + result.source.size() + 128 * result.objects.size());
  out += R"({"source":)";
  append_json_string(out, result.source);
  append_member(out, R"(,"frame":)", result.frame);
  append_member(out, R"(,"pts_ns":)", result.pts_ns);
  append_member(out, R"(,"width":)", result.width);
  append_member(out, R"(,"height":)", result.height);
  out += R"(,"objects":[)";
  for (const Detection& object : result.objects) {
    if (&object != result.objects.data()) out += ',';
    append_object(out, object);
  }
  out += "]}";
  return out;
}

}  // namespace penstock
