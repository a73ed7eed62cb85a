// Room in structs for what a later version adds.
#pragma once

#include <memory>

#include <glgemm/language.hpp>

namespace glgemm {

/// Holds what a later minor version adds to a struct, so that the struct keeps its size: functions of that version will set and
/// read it. Empty in this one.
class Reserved {
 public:
  friend bool operator==(const Reserved&, const Reserved&) = default;

 private:
  std::shared_ptr<const void> more_{};
};

}  // namespace glgemm
