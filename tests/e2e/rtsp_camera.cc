// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/rtsp_camera.h"

#include <gst/rtsp-server/rtsp-server.h>
#include <gtest/gtest.h>

#include <thread>

#include "penstock/base/str_format.h"

namespace penstock::e2e {

struct RtspCamera::State {
  GMainContext* context = g_main_context_new();
  GMainLoop* loop = g_main_loop_new(context, FALSE);
  GstRTSPServer* server = gst_rtsp_server_new();
  std::thread thread;
};

namespace {

/// Makes `server` ask for a password before it shows what `factory` makes.
void protect(GstRTSPServer* server, GstRTSPMediaFactory* factory, const std::string& user,
             const std::string& password) {
  constexpr const char* kRole = "viewer";
  GstRTSPAuth* auth = gst_rtsp_auth_new();
  GstRTSPToken* token =
      gst_rtsp_token_new(GST_RTSP_TOKEN_MEDIA_FACTORY_ROLE, G_TYPE_STRING, kRole, nullptr);
  gchar* basic = gst_rtsp_auth_make_basic(user.c_str(), password.c_str());
  gst_rtsp_auth_add_basic(auth, basic, token);
  g_free(basic);
  gst_rtsp_token_unref(token);
  gst_rtsp_server_set_auth(server, auth);
  g_object_unref(auth);
  gst_rtsp_media_factory_add_role(factory, kRole, GST_RTSP_PERM_MEDIA_FACTORY_ACCESS,
                                  G_TYPE_BOOLEAN, TRUE, GST_RTSP_PERM_MEDIA_FACTORY_CONSTRUCT,
                                  G_TYPE_BOOLEAN, TRUE, nullptr);
}

}  // namespace

RtspCamera::RtspCamera(int frames, const std::string& user, const std::string& password)
    : RtspCamera(str_format("videotestsrc is-live=true num-buffers={} ! "
                            "video/x-raw,format=I420,width=192,height=192,framerate=100/1 ! "
                            "openh264enc gop-size=10 ! h264parse ! rtph264pay name=pay0 pt=96",
                            frames == 0 ? -1 : frames),
                 user, password) {}

RtspCamera::RtspCamera(const std::string& description, const std::string& user,
                       const std::string& password)
    : state_(std::make_unique<State>()) {
  gst_rtsp_server_set_address(state_->server, "127.0.0.1");
  gst_rtsp_server_set_service(state_->server, "0");
  GstRTSPMediaFactory* factory = gst_rtsp_media_factory_new();
  gst_rtsp_media_factory_set_launch(factory, str_format("( {} )", description).c_str());
  gst_rtsp_media_factory_set_shared(factory, FALSE);
  if (!user.empty()) protect(state_->server, factory, user, password);
  GstRTSPMountPoints* mounts = gst_rtsp_server_get_mount_points(state_->server);
  gst_rtsp_mount_points_add_factory(mounts, "/camera", factory);
  g_object_unref(mounts);
  EXPECT_NE(gst_rtsp_server_attach(state_->server, state_->context), 0u);
  state_->thread = std::thread([state = state_.get()] {
    g_main_context_push_thread_default(state->context);
    g_main_loop_run(state->loop);
    g_main_context_pop_thread_default(state->context);
  });
}

RtspCamera::~RtspCamera() {
  // Quitting a loop that does not run yet is lost: do it from inside.
  g_main_context_invoke(
      state_->context,
      [](gpointer loop) -> gboolean {
        g_main_loop_quit(static_cast<GMainLoop*>(loop));
        return G_SOURCE_REMOVE;
      },
      state_->loop);
  state_->thread.join();
  g_object_unref(state_->server);
  g_main_loop_unref(state_->loop);
  g_main_context_unref(state_->context);
}

int RtspCamera::port() const { return gst_rtsp_server_get_bound_port(state_->server); }

std::string RtspCamera::address(const std::string& credentials) const {
  return address_at(port(), credentials);
}

std::string RtspCamera::address_at(int port, const std::string& credentials) const {
  return str_format("rtsp://{}{}127.0.0.1:{}/camera", credentials, credentials.empty() ? "" : "@",
                    port);
}

}  // namespace penstock::e2e
