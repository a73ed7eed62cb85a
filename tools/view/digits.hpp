// A digit that is drawn by mouse, and the network that reads it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "files/files.hpp"
#include "view/digit_scene.hpp"

namespace glgemm::tools {

/// What the keys do, one line each, as --help prints them; and the keys themselves.
inline constexpr std::string_view digits_keys_text =
    "  left button   draws; the right one erases\n  0 to 9        an example of that digit\n  c             an empty paper\n"
    "  s             the next slice of a layer's product alone; space goes on\n  h             print this\n  esc           "
    "quit\n";
inline constexpr std::string_view digits_keys = "0123456789csh ";

struct DigitsArguments {
  std::string weights;  ///< a file; empty: the built-in ones
  Digit digit{};        ///< at first
  std::optional<int> example;
  std::chrono::nanoseconds budget{};
  int width = 1128, height = 476;
  std::optional<std::int64_t> frames;  ///< then it ends
  std::string keys;                    ///< pressed first
};

/// Shows it until its window is closed. With an `output`, ends when the network has read the digit, or the keys' slices are done,
/// or after the last frame, and writes that frame as .png.
/// @throws as GlWindow, Network and Engine
void show_digits(const DigitsArguments& arguments, std::optional<OutputFile>& output);

}  // namespace glgemm::tools
