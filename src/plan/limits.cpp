// Whether limits are some that a device can have.
#include "plan/limits.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <stdexcept>

namespace glgemm {

void validate(const Limits& limits) {
  struct Range {
    const char* name;
    std::int64_t value, min, max;
  };
  // Counts of OpenGL are ints, so that small multiples of them stay far from overflow.
  constexpr std::int64_t count = std::numeric_limits<std::int32_t>::max(), any = std::numeric_limits<std::int64_t>::max();
  const auto last_class = static_cast<std::int64_t>(device_classes().size()) - 1;
  for (const auto& [name, value, min, max] : {
           Range{"storage_block_bytes", limits.storage_block_bytes, 1, any},
           Range{"storage_offset_alignment", limits.storage_offset_alignment, 1, count},
           Range{"storage_blocks", limits.storage_blocks, 4, count},
           Range{"groups[0]", limits.groups[0], 1, count},
           Range{"groups[1]", limits.groups[1], 1, count},
           Range{"groups[2]", limits.groups[2], 1, count},
           Range{"groups_product", limits.groups_product, 1, count},
           Range{"workgroup_size[0]", limits.workgroup_size[0], 1, count},
           Range{"workgroup_size[1]", limits.workgroup_size[1], 1, count},
           Range{"workgroup_size[2]", limits.workgroup_size[2], 1, count},
           Range{"workgroup_invocations", limits.workgroup_invocations, 1, count},
           Range{"shared_bytes", limits.shared_bytes, 0, any},
           Range{"loop_iterations", limits.loop_iterations, 0, any},
           Range{"image_buffer_bytes", limits.image_buffer_bytes, 0, any},
           Range{"concurrent_groups", limits.concurrent_groups, 1, count},
           Range{"device_class", static_cast<std::int64_t>(limits.device_class), 0, last_class},
           Range{"language", static_cast<std::int64_t>(limits.language), 0, static_cast<std::int64_t>(ShadingLanguage::essl_320)},
       })
    if (value < min || value > max)
      throw std::invalid_argument(
          fmt::format("limits: {} is {}; it must be {}", name, value,
                      max == any ? fmt::format("at least {}", min) : fmt::format("from {} to {}", min, max)));
}

}  // namespace glgemm
