// Copies from and to textures in every state that makes OpenGL give a level to no shader, without a word: right, or refused by
// name, with all as it was.
#include <fmt/core.h>

#include <algorithm>

#include "support/application.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using test::gl_functions;

namespace {

constexpr int edge = 4, levels_of_edge = 3, depth = 2;

int edge_of(int level) {
  return std::max(1, edge >> level);
}

/// How an application made a texture of 4x4 texels, whose levels would be three.
struct Storage {
  const char* name;
  bool immutable;
  std::vector<int> levels;  ///< those that there are
  int odd_level = -1;       ///< one that does not fit the others
};
const Storage storages[] = {{"three levels, immutable", true, {0, 1, 2}},
                            {"two levels, immutable", true, {0, 1}},
                            {"one level, immutable", true, {0}},
                            {"all levels", false, {0, 1, 2}},
                            {"two of three levels", false, {0, 1}},
                            {"the first level alone", false, {0}},
                            {"the second level alone", false, {1}},
                            {"the second level missing", false, {0, 2}},
                            {"a second level of the first's size", false, {0, 1, 2}, 1}};

struct Parameters {
  int base, max;
  GLint min_filter, mag_filter;
  bool before_storage;  ///< they were set before there were levels
};

/// Another test's application may have left other ones.
void usual_transfers() {
  const gl::Api& gl = gl_functions();
  for (const GLenum target : test::Enums{GL_PIXEL_PACK_BUFFER, GL_PIXEL_UNPACK_BUFFER}) gl.BindBuffer(target, 0);
  for (const GLenum name : test::Enums{GL_UNPACK_ROW_LENGTH, GL_UNPACK_IMAGE_HEIGHT, GL_UNPACK_SKIP_ROWS, GL_UNPACK_SKIP_PIXELS,
                                       GL_UNPACK_SKIP_IMAGES, GL_PACK_ROW_LENGTH, GL_PACK_SKIP_ROWS, GL_PACK_SKIP_PIXELS})
    gl.PixelStorei(name, 0);
  if (!gl.es)
    for (const GLenum name : test::Enums{GL_UNPACK_SWAP_BYTES, GL_PACK_SWAP_BYTES, GL_PACK_IMAGE_HEIGHT, GL_PACK_SKIP_IMAGES})
      gl.PixelStorei(name, 0);
}

/// A texture of GL_R32F whose texel i of layer l of a level has 100 * level + 20 * l + i.
class States {
 public:
  States(const Storage& storage, bool is_array, const Parameters& parameters) : storage_(storage), is_array_(is_array) {
    const gl::Api& gl = gl_functions();
    usual_transfers();
    gl.GenTextures(1, &name_);
    gl.BindTexture(target(), name_);
    for (const GLenum name : test::Enums{GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T})
      gl.TexParameteri(target(), name, GL_CLAMP_TO_EDGE);
    if (parameters.before_storage) set(parameters);
    const int images = is_array ? depth : 1;
    const auto count = static_cast<int>(storage.levels.size());
    if (storage.immutable && is_array) gl.TexStorage3D(target(), count, GL_R32F, edge, edge, images);
    if (storage.immutable && !is_array) gl.TexStorage2D(target(), count, GL_R32F, edge, edge);
    for (const int level : storage.levels) {
      const int size = size_of(level);
      const std::vector<float> texels = first_texels(level);
      if (storage.immutable && is_array)
        gl.TexSubImage3D(target(), level, 0, 0, 0, size, size, images, GL_RED, GL_FLOAT, texels.data());
      else if (storage.immutable)
        gl.TexSubImage2D(target(), level, 0, 0, size, size, GL_RED, GL_FLOAT, texels.data());
      else if (is_array)
        gl.TexImage3D(target(), level, GL_R32F, size, size, images, 0, GL_RED, GL_FLOAT, texels.data());
      else
        gl.TexImage2D(target(), level, GL_R32F, size, size, 0, GL_RED, GL_FLOAT, texels.data());
    }
    if (!parameters.before_storage) set(parameters);
    gl.BindTexture(target(), 0);
  }
  ~States() { gl_functions().DeleteTextures(1, &name_); }
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  unsigned name() const { return name_; }
  bool has(int level) const { return std::find(storage_.levels.begin(), storage_.levels.end(), level) != storage_.levels.end(); }
  int size_of(int level) const { return edge_of(level == storage_.odd_level ? 0 : level); }
  std::vector<float> first_texels(int level) const {
    std::vector<float> texels;
    for (int layer = 0; layer < (is_array_ ? depth : 1); ++layer)
      for (int i = 0; i < size_of(level) * size_of(level); ++i)
        texels.push_back(static_cast<float>(100 * level + 20 * layer + i));
    return texels;
  }

  /// All texels of a level.
  std::vector<float> texels(int level) const {
    const gl::Api& gl = gl_functions();
    const int size = size_of(level);
    std::vector<float> result(first_texels(level).size());
    gl.BindTexture(target(), name_);
    if (gl.GetTexImage) gl.GetTexImage(target(), level, GL_RED, GL_FLOAT, result.data());
    gl.BindTexture(target(), 0);
    if (gl.GetTexImage) return result;
    result.clear();
    const std::map<GLenum, GLint> before = parameters();
    const auto range = [&](int base, int max) {  // a framebuffer takes levels that are inside
      gl.BindTexture(target(), name_);
      gl.TexParameteri(target(), GL_TEXTURE_BASE_LEVEL, base);
      gl.TexParameteri(target(), GL_TEXTURE_MAX_LEVEL, max);
      gl.BindTexture(target(), 0);
    };
    range(level, level);
    unsigned framebuffer = 0;
    gl.GenFramebuffers(1, &framebuffer);
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
    for (int layer = 0; layer < (is_array_ ? depth : 1); ++layer) {
      if (is_array_)
        gl.FramebufferTextureLayer(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, name_, level, layer);
      else
        gl.FramebufferTexture2D(GL_READ_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, target(), name_, level);
      REQUIRE(gl.CheckFramebufferStatus(GL_READ_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE);
      std::vector<float> pixels(static_cast<std::size_t>(size * size * 4));
      gl.ReadPixels(0, 0, size, size, GL_RGBA, GL_FLOAT, pixels.data());
      for (std::size_t i = 0; i < pixels.size(); i += 4) result.push_back(pixels[i]);
    }
    gl.BindFramebuffer(GL_READ_FRAMEBUFFER, 0);
    gl.DeleteFramebuffers(1, &framebuffer);
    range(before.at(GL_TEXTURE_BASE_LEVEL), before.at(GL_TEXTURE_MAX_LEVEL));
    return result;
  }

  /// What the application has set. OpenGL keeps what was set before immutable storage was made, and takes it for the last level:
  /// so it is counted here.
  std::map<GLenum, GLint> parameters() const {
    const gl::Api& gl = gl_functions();
    gl.BindTexture(target(), name_);
    std::map<GLenum, GLint> result;
    for (const GLenum name : test::Enums{GL_TEXTURE_BASE_LEVEL, GL_TEXTURE_MAX_LEVEL, GL_TEXTURE_MIN_FILTER,
                                         GL_TEXTURE_MAG_FILTER, GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T}) {
      gl.GetTexParameteriv(target(), name, &result[name]);
    }
    if (storage_.immutable) {
      const auto last = static_cast<GLint>(storage_.levels.size()) - 1;
      GLint &base = result[GL_TEXTURE_BASE_LEVEL], &max = result[GL_TEXTURE_MAX_LEVEL];
      base = std::min(base, last);
      max = std::clamp(max, base, last);
    }
    gl.BindTexture(target(), 0);
    return result;
  }

 private:
  GLenum target() const { return is_array_ ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D; }
  void set(const Parameters& parameters) const {
    const gl::Api& gl = gl_functions();
    gl.TexParameteri(target(), GL_TEXTURE_BASE_LEVEL, parameters.base);
    gl.TexParameteri(target(), GL_TEXTURE_MAX_LEVEL, parameters.max);
    gl.TexParameteri(target(), GL_TEXTURE_MIN_FILTER, parameters.min_filter);
    gl.TexParameteri(target(), GL_TEXTURE_MAG_FILTER, parameters.mag_filter);
  }

  const Storage& storage_;
  const bool is_array_;
  unsigned name_ = 0;
};

/// The names of what is no 2D texture, one of each other kind.
std::vector<std::pair<std::string, unsigned>> other_kinds() {
  const gl::Api& gl = gl_functions();
  std::vector<std::pair<std::string, unsigned>> result{{"a name that was never given", 987654}, {"0", 0}};
  const auto add = [&](const char* kind, unsigned target) {
    unsigned name = 0;
    gl.GenTextures(1, &name);
    if (target != 0) gl.BindTexture(target, name), gl.BindTexture(target, 0);
    result.emplace_back(kind, name);
  };
  add("a name without a texture", 0);
  add("a cube", GL_TEXTURE_CUBE_MAP);
  add("a 3D texture", GL_TEXTURE_3D);
  add("one of several samples", GL_TEXTURE_2D_MULTISAMPLE);
  if (!gl.es) {
    add("a 1D texture", GL_TEXTURE_1D);
    add("a 1D array", GL_TEXTURE_1D_ARRAY);
    add("a rectangle", GL_TEXTURE_RECTANGLE);
    add("an array of cubes", GL_TEXTURE_CUBE_MAP_ARRAY);
    add("a buffer's texture", GL_TEXTURE_BUFFER);
  }
  add("a deleted texture", GL_TEXTURE_2D);
  gl.DeleteTextures(1, &result.back().second);
  return result;
}

TensorView images_of(const DeviceMatrix& matrix, int size, int count) {
  return {.buffer = matrix.view().buffer, .batch = count, .size = {size, size}, .channels = 1};
}

/// Reads and writes each level of a texture.
void check_levels(const Storage& storage, bool is_array, const Parameters& parameters) {
  Engine& engine = test::engine();
  CAPTURE(fmt::format("{}, {}, levels {} to {}, filters {:#x} and {:#x}, set {} storage", storage.name,
                      is_array ? "an array" : "2D", parameters.base, parameters.max, parameters.min_filter, parameters.mag_filter,
                      parameters.before_storage ? "before" : "after"));
  States texture(storage, is_array, parameters);
  const std::map<GLenum, GLint> before = texture.parameters();
  const bool is_written = !gl_functions().es || storage.immutable;
  for (int level = 0; level < levels_of_edge; ++level) {
    CAPTURE(level);
    const TextureView view{.texture = texture.name(), .is_array = is_array, .level = level};
    const std::vector<float> right = texture.first_texels(level);
    const auto count = static_cast<std::int64_t>(right.size());
    Matrix<float> other(count, 1);
    for (std::int64_t i = 0; i < count; ++i) other(i, 0) = static_cast<float>(-1000 * level - i - 1);
    DeviceMatrix matrix(engine, other);
    const TensorView tensor = images_of(matrix, texture.size_of(level), is_array ? depth : 1);
    const std::string read = test::refusal_of([&] { engine.read_texture(view, tensor); });
    const Matrix<float> got = matrix.download();
    matrix.upload(other);
    const std::string written = test::refusal_of([&] { engine.write_texture(tensor, view); });
    CHECK(texture.parameters() == before);
    if (!texture.has(level)) {
      CHECK_MESSAGE(contains(read, "has no level"), read);
      CHECK_MESSAGE(contains(written, "has no level"), written);
      continue;
    }
    CHECK_MESSAGE(read.empty(), read);
    CHECK_RESULT(std::equal(right.begin(), right.end(), got.data()));
    if (!is_written) {
      CHECK_MESSAGE(contains(written, "is not immutable (glTexStorage)"), written);
      continue;
    }
    CHECK_MESSAGE(written.empty(), written);
    const std::vector<float> now = texture.texels(level);
    CHECK_RESULT(std::equal(now.begin(), now.end(), other.data(), other.data() + count));
    // Mesa loses a level that does not fit as soon as any shader uses another.
    for (const int another : storage.levels)
      if (another > level && storage.odd_level < 0) CHECK_RESULT(texture.texels(another) == texture.first_texels(another));
  }
}

}  // namespace

TEST_CASE("textures: each level that there is is copied, in every state of the storage, the range of levels and the filters") {
  for (const Storage& storage : storages)
    for (const bool is_array : {false, true})
      for (const int base : {0, 1, 2, 5})
        for (const int max : {0, 1, 2, 1000})
          for (const GLint min_filter : {GL_NEAREST, GL_NEAREST_MIPMAP_LINEAR}) {
            check_levels(storage, is_array, {base, max, min_filter, GL_LINEAR, false});
            if (storage.immutable && min_filter == GL_NEAREST)
              check_levels(storage, is_array, {base, max, min_filter, GL_NEAREST, true});
          }
}

TEST_CASE("textures: what is no level, no layer, no 2D texture or no known format is refused, and a pending error stays") {
  Engine& engine = test::engine();
  const gl::Api& gl = gl_functions();
  const DeviceMatrix matrix(engine, Matrix<float>(edge * edge, 4));
  const TensorView tensor = images_of(matrix, edge, 1);
  const auto refused = [&](const TextureView& view, const char* why) {
    for (const GLenum pending : test::Enums{GL_NO_ERROR, GL_INVALID_OPERATION, GL_INVALID_VALUE}) {
      const std::string read = test::refusal_of([&] { engine.read_texture(view, tensor); }, pending);
      CHECK_MESSAGE(contains(read, why), read);
      const std::string written = test::refusal_of([&] { engine.write_texture(tensor, view); }, pending);
      CHECK_MESSAGE(contains(written, why), written);
    }
  };
  const States flat(storages[0], false, {0, 1000, GL_NEAREST, GL_NEAREST, false}),
      array(storages[0], true, {0, 1000, GL_NEAREST, GL_NEAREST, false});
  for (const int level : {3, 31, 1000, std::numeric_limits<int>::max()}) refused({flat.name(), false, level}, "has no level");
  refused({flat.name(), false, -1}, "level -1 and first layer 0; none is negative");
  refused({flat.name(), false, 0, 1}, "has 0 layers from layer 1 on");
  refused({array.name(), true, 0, depth}, "has 0 layers from layer 2 on");
  refused({array.name(), true, 0, std::numeric_limits<int>::max()}, "has 0 layers from layer 2147483647 on");
  refused({array.name(), false}, "is not the name of a 2D texture");
  refused({flat.name(), true}, "is not the name of a 2D array texture");
  for (const auto& [kind, name] : other_kinds()) {
    CAPTURE(kind);
    refused({name, false}, "is not the name of a 2D texture");
    refused({name, true}, "is not the name of a 2D array texture");
    gl.DeleteTextures(1, &name);
  }
  // Formats of which there are images, or whose texels have as many bytes, and others.
  for (const GLenum format : test::Enums{GL_RGBA8UI, GL_RGBA8I, GL_R32UI, GL_R32I, GL_RGBA32UI, GL_RGBA16UI,
                                         GL_DEPTH_COMPONENT32F, GL_DEPTH24_STENCIL8}) {
    CAPTURE(format);
    unsigned name = 0;
    gl.GenTextures(1, &name);
    gl.BindTexture(GL_TEXTURE_2D, name);
    gl.TexStorage2D(GL_TEXTURE_2D, 1, format, edge, edge);
    gl.BindTexture(GL_TEXTURE_2D, 0);
    refused({name, false}, "whose texels no shader sees as red, green, blue and alpha in floats");
    gl.DeleteTextures(1, &name);
  }
}
