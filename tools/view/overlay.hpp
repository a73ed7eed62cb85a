// The panel over the picture of glgemm-view, by Dear ImGui: what runs, how long it takes, how exact it is, and the controls.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/core.h>
#include <imgui.h>

#include "view/viewer.hpp"

namespace glgemm::tools {

/// In the current context, which must be the window's.
class Overlay {
 public:
  /// Pixels at the window's right that the panel takes.
  static constexpr int reserved = 338;

  /// After the program's own callbacks were set: Dear ImGui calls them before its own.
  explicit Overlay(GLFWwindow* window) : window_(window) {
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;  // nothing is written to the folder in which the program was started
    ImGui::StyleColorsDark();
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    ImGui_ImplOpenGL3_Init("#version 430");
  }
  ~Overlay() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImGui::DestroyContext();
  }
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  /// Lays the panel out and obeys its controls.
  void update(Viewer& viewer, bool& paused) {
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    ImGui::NewFrame();
    int width = 0, height = 0;
    glfwGetWindowSize(window_, &width, &height);
    const auto right = static_cast<float>(width), bottom = static_cast<float>(height);
    ImGui::SetNextWindowPos({std::max(0.f, right - panel_width - space), space});
    ImGui::SetNextWindowSize({std::min(panel_width, right), std::max(64.f, bottom - 2 * space)});
    ImGui::SetNextWindowBgAlpha(0.85f);
    ImGui::Begin("glgemm", nullptr, ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoTitleBar);
    ImGui::PushTextWrapPos(0);
    what_runs(viewer);
    ImGui::Separator();
    controls(viewer, paused);
    ImGui::Separator();
    curve("frame", viewer.frame_times());
    if (!viewer.settings().large) curve("kernel", viewer.times().history());  // a large product's kernel runs across frames
    ImGui::Separator();
    errors(viewer.errors());
    ImGui::PopTextWrapPos();
    ImGui::End();
    ImGui::Render();
  }

  /// Into the current framebuffer.
  static void draw() { ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData()); }

 private:
  static constexpr float space = 8, panel_width = reserved - space;

  static void line(const std::string& text) { ImGui::TextUnformatted(text.c_str()); }

  static void what_runs(const Viewer& viewer) {
    for (const std::string& text : viewer.description()) line(text);
  }

  void controls(Viewer& viewer, bool& paused) {
    const Settings now = viewer.settings();
    ImGui::PushItemWidth(-80);
    if (!n_held_) n_ = static_cast<int>(now.n);
    ImGui::SliderInt("N", &n_, 1, static_cast<int>(now.large ? largest_large_n : largest_n), "%d",
                     ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp);
    n_held_ = ImGui::IsItemActive();
    Settings wanted = now;
    const auto change = [&](auto Settings::*what, const auto& value) {
      wanted.*what = value;
      viewer.change(wanted);
    };
    if (ImGui::IsItemDeactivatedAfterEdit()) change(&Settings::n, n_);
    if (ImGui::BeginCombo("type", std::string(to_string(now.type)).c_str())) {
      for (const Type type : shown_types)
        if (ImGui::Selectable(std::string(to_string(type)).c_str(), type == now.type)) change(&Settings::type, type);
      ImGui::EndCombo();
    }
    if (ImGui::BeginCombo("kernel", now.kernel ? std::string(name(*now.kernel)).c_str() : "auto")) {
      if (ImGui::Selectable("auto", !now.kernel)) change(&Settings::kernel, std::optional<Kernel>());
      for (const Kernel& kernel : viewer.possible_kernels())
        if (ImGui::Selectable(std::string(name(kernel)).c_str(), now.kernel && name(*now.kernel) == name(kernel)))
          change(&Settings::kernel, kernel);
      ImGui::EndCombo();
    }
    auto budget = static_cast<float>(milliseconds(viewer.budget()));
    if (now.large && ImGui::SliderFloat("budget", &budget, static_cast<float>(milliseconds(min_budget)),
                                        static_cast<float>(milliseconds(max_budget)), "%.3g ms", ImGuiSliderFlags_Logarithmic))
      viewer.set_budget(std::chrono::duration_cast<std::chrono::nanoseconds>(Milliseconds(budget)));
    ImGui::PopItemWidth();
    bool large = now.large;
    if (ImGui::Checkbox("across frames", &large)) viewer.change_largeness();
    ImGui::SameLine();
    ImGui::Checkbox("pause", &paused);
    ImGui::SameLine();
    if (ImGui::Button("one slice")) viewer.step();
    if (now.large) ImGui::ProgressBar(static_cast<float>(viewer.progress()), {-1, 0}, viewer.progress_text().c_str());
  }

  static void curve(const char* title, const History& history) {
    const std::vector<float> values = history.in_order();
    if (values.empty()) {
      line(std::string(title) + ": no time yet");
      return;
    }
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    line(fmt::format("{} {:.3g} ms ({:.3g} to {:.3g})", title, values.back(), *least, *greatest));
    ImGui::PlotLines((std::string("##") + title).c_str(), values.data(), static_cast<int>(values.size()), 0, nullptr, 0,
                     1.1f * *greatest, {ImGui::GetContentRegionAvail().x, 44});
  }

  /// From no error to the greatest, or to the bound if that is passed, as tools::error_map.
  static void errors(const std::optional<Errors>& errors) {
    if (!errors) {
      line("error: nothing complete yet");
      return;
    }
    line("error " + errors->text() + ":");
    const std::int64_t rows = errors->ratios.rows(), columns = errors->ratios.columns();
    const float side = std::max(64.f, std::min(ImGui::GetContentRegionAvail().x, ImGui::GetContentRegionAvail().y - space));
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const double greatest = errors->worst > 0 && errors->worst <= 1 ? errors->worst : 1;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const auto at = [&](std::int64_t index, std::int64_t of) {
          return side * static_cast<float>(index) / static_cast<float>(of);
        };
        const float ratio = errors->ratios(i, j);
        const std::uint32_t rgb = ratio <= 1 ? colour(ratio / greatest) : out_of_range_colour;
        ImGui::GetWindowDrawList()->AddRectFilled({corner.x + at(j, columns), corner.y + at(i, rows)},
                                                  {corner.x + at(j + 1, columns), corner.y + at(i + 1, rows)},
                                                  IM_COL32(rgb >> 16, rgb >> 8 & 0xff, rgb & 0xff, 0xff));
      }
    ImGui::Dummy({side, side});
  }

  GLFWwindow* window_;
  int n_ = 0;  ///< of the slider: while it is held, the product stays as it is
  bool n_held_ = false;
};

}  // namespace glgemm::tools
