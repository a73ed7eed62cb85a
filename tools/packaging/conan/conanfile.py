"""A recipe for Conan 2, of the clone that it lies in: conan create tools/packaging/conan -s compiler.cppstd=20

glad 2's generator must be in PATH (pip install glad2), or its path in the configuration user.glgemm:glad.
"""
import re
import shutil
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd, stdcpp_library
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

PARTS = ("CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "CHANGELOG.md", "include/*", "shaders/*", "src/*", "docs/*")


class Glgemm(ConanFile):
    name = "glgemm"
    description = "Multiplies matrices with OpenGL compute shaders"
    license = "MIT"
    topics = ("matrix-multiplication", "gemm", "opengl", "compute-shader")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def set_version(self):
        text = load(self, Path(self.recipe_folder) / "../../../CMakeLists.txt")
        self.version = re.search(r"project\(glgemm VERSION (\S+)", text)[1]

    def export_sources(self):
        for part in PARTS:
            copy(self, part, Path(self.recipe_folder) / "../../..", self.export_sources_folder)

    def requirements(self):  # compiled in, and in no header of ours
        self.requires("fmt/[>=9 <12]", visible=False)
        self.requires("nlohmann_json/[>=3.10 <4]", visible=False)
        if self.settings.os == "Linux":
            self.requires("egl/system", visible=False)  # its headers: it is loaded where a program runs

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os == "Macos":
            raise ConanInvalidConfiguration("macOS has OpenGL 4.1, which has no compute shaders")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        glad = self.conf.get("user.glgemm:glad") or shutil.which("glad")
        if not glad:
            raise ConanInvalidConfiguration("glad 2's generator is not in PATH: pip install glad2")
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["GLGEMM_GLAD"] = glad
        toolchain.cache_variables["GLGEMM_INSTALL"] = True
        toolchain.cache_variables["CMAKE_UNITY_BUILD"] = True
        for part in ("BLAS", "DISTRIBUTED", "TESTS", "TOOLS"):
            toolchain.cache_variables[f"GLGEMM_BUILD_{part}"] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")
        CMake(self).install()
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):
            rmdir(self, Path(self.package_folder) / folder)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "glgemm")
        for name in ("glgemm", "headless", "verify", "weights"):
            part = self.cpp_info.components[name]
            part.libs = ["glgemm" if name == "glgemm" else f"glgemm_{name}"]
            part.set_property("cmake_target_name", f"glgemm::{name}")
            part.set_property("pkg_config_name", "glgemm" if name == "glgemm" else f"glgemm-{name}")
            if not self.options.shared:
                part.defines = ["GLGEMM_STATIC"]
            if self.settings.os == "Linux":
                part.system_libs = ["pthread", "m", "dl"]
            if not self.options.shared and stdcpp_library(self):
                part.system_libs.append(stdcpp_library(self))  # for programs in C
        for name in ("headless", "weights"):
            self.cpp_info.components[name].requires = ["glgemm"]
        if self.settings.os != "Linux":
            self.cpp_info.components["headless"].system_libs = ["opengl32", "gdi32", "user32"]
