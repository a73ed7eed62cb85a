// texture.comp: copies between textures and images in a buffer.
#include "kernels/family.hpp"
#include "kernels/interface.hpp"

namespace glgemm::kernels {
namespace of_texture {

struct Texture {
  int workgroup_x = 8;
  int workgroup_y = 8;
  int texels = 0;
  int writes = 0;
  int array = 0;
};
constexpr Parameter<Texture> list[] = {
    {"workgroup_x", "WORKGROUP_X", &Texture::workgroup_x, powers_of_two(1, 32), "invocations along the width"},
    {"workgroup_y", "WORKGROUP_Y", &Texture::workgroup_y, powers_of_two(1, 32), "invocations along the height"},
    {"texels", "", &Texture::texels, integers(0, texel_formats - 1), "a texel's format, if it is written: rgba8 and so on"},
    {"writes", "WRITES", &Texture::writes, flag, "1: from the buffer to the texture"},
    {"array", "ARRAY", &Texture::array, flag, "1: a layer of an array is read; what is written is always one layer"}};

constexpr About about{.name = "texture", .summary = "copies between textures and images in a buffer"};

class TextureFamily final : public FamilyOf<Family, about, list> {
  std::array<int, 3> workgroup(const Kernel& kernel) const override {
    const Texture k = read(kernel);
    return {k.workgroup_x, k.workgroup_y, 1};
  }
  bool declares(const ProgramKey& key, unsigned buffer) const override {
    return buffer == binding_c || (buffer == binding_a && read(key.kernel).writes != 0);
  }
  std::vector<Macro> derived_macros(const Texture& k) const override {
#define GLGEMM_ROW(name, in_glsl, ...) #in_glsl,
    static constexpr const char* formats[] = {GLGEMM_TEXELS(GLGEMM_ROW)};
#undef GLGEMM_ROW
    return {{"TEXELS", formats[k.texels]}};
  }
  bool has_panels_uniform(const ProgramKey&) const override {
    return false;
  }
  bool has_parts_uniform(const ProgramKey&) const override {
    return false;
  }
};

}  // namespace of_texture

const Family& family_texture() {
  static constexpr of_texture::TextureFamily family;
  return family;
}

}  // namespace glgemm::kernels
