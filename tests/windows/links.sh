#!/bin/bash
# The cross build for Windows, quickly: the library, glgemm::headless and the C interface as DLLs with import libraries, and a program
# in C++ and one in C that link them. And the public headers as Visual C++ reads them, where clang is there. Nothing is run; wine.sh
# beside this runs all tests.
# Usage: links.sh BUILD   (an empty or missing folder to build in). Ends with 77 where there is no mingw-w64.
. "$(dirname "$0")/../../tools/usage.sh"
set -euo pipefail
source=$(realpath "$(dirname "$0")/../..")
build=$1
command -v x86_64-w64-mingw32-g++-posix >/dev/null || {
  echo "LEFT OUT: there is no x86_64-w64-mingw32-g++-posix (g++-mingw-w64-x86-64-posix)"
  exit 77
}
mkdir -p "$build"
# Files are compiled by the dozen, which is quicker. The compiler then warns of names that files share, so that warnings are off.
(cd "$source" && cmake --preset mingw-shared -B "$build" -D CMAKE_BUILD_TYPE=Debug "-D CMAKE_CXX_FLAGS_DEBUG=-O0 -w" \
  -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=16) >"$build.log" || {
  cat "$build.log"
  exit 1
}
cmake --build "$build" --parallel "$(nproc)" --target glgemm_headless glgemm_weights # glgemm::verify would take as long again

failed=0
# No name of glgemm::verify may be marked as another library's, or it would be taken from there.
! grep -nw GLGEMM_EXPORT "$source"/include/glgemm/verify.hpp "$source"/src/verify/* || {
  echo "FAILED: glgemm::verify marks what it exports by GLGEMM_VERIFY_EXPORT"
  failed=1
}
! grep -nw GLGEMM_EXPORT "$source"/src/weights/* "$source"/include/glgemm/quantize.hpp || {
  echo "FAILED: glgemm::weights marks what it exports by GLGEMM_WEIGHTS_EXPORT"
  failed=1
}

# What a DLL exports is glgemm's own.
for library in libglgemm libglgemm_headless libglgemm_weights; do
  names=$(x86_64-w64-mingw32-nm --defined-only --extern-only "$build/$library.dll.a" | awk '$2 == "T" && $3 !~ /^[.]/ {print $3}')
  [ "$(wc -l <<<"$names")" -gt 5 ] || {
    echo "FAILED: $library.dll exports next to nothing: $names"
    failed=1
  }
  foreign=$(grep -vE '^(glgemm_|_ZNK?6glgemm)' <<<"$names" || true)
  [ -z "$foreign" ] || {
    echo "FAILED: $library.dll exports what is not glgemm's: $(head -n 5 <<<"$foreign")"
    failed=1
  }
done
flags=(-I "$source/include" -I "$build/generated/include" -L "$build")
# As in a program that has seen windows.h, with all its macros, before glgemm. It catches what the library throws.
x86_64-w64-mingw32-g++-posix -std=c++20 -include windows.h "${flags[@]}" "$source/docs/examples/errors.cpp" -o "$build/errors.exe" \
  -lglgemm_headless -lglgemm
x86_64-w64-mingw32-gcc-posix "${flags[@]}" "$source/docs/examples/weights.c" -o "$build/consumer_c.exe" -lglgemm_headless -lglgemm

# A class that is exported has all its members made, a copy for example, which GCC does not: some cannot be. The compiler is clang,
# with the C++ library of mingw-w64, which needs a few of GCC's words for that.
if ! command -v clang >/dev/null; then
  echo "LEFT OUT: the public headers by Visual C++'s rules: there is no clang"
  exit $failed
fi
gcc=$(dirname "$(x86_64-w64-mingw32-g++-posix -print-libgcc-file-name)")
visual=(clang --target=x86_64-pc-windows-msvc -std=c++20 -fsyntax-only -w -nostdinc -isystem "$gcc/include/c++"
  -isystem "$gcc/include/c++/x86_64-w64-mingw32" -isystem "$(clang -print-resource-dir)/include" -isystem /usr/x86_64-w64-mingw32/include
  -fms-extensions -fms-compatibility -fgnuc-version=4.2.1 -U_MSC_VER -D__MINGW32__ -D__MINGW64__ -D__declspec=__declspec
  -D__GLIBCXX_TYPE_INT_N_0=__int128 -D__GLIBCXX_BITSIZE_INT_N_0=128 -I "$source/include" -I "$build/generated/include")
for header in "$source"/include/glgemm/*.h*; do
  case $header in
    */distributed.hpp | */glm.hpp) ;; # for Linux alone; of templates alone
    *) echo "#include <glgemm/${header##*/}>" ;;
  esac
done >"$build/headers.cpp"
printf '#include <memory>\n#include <vector>\nstruct __declspec(dllexport) X { std::vector<std::unique_ptr<int>> v; };\n' >"$build/planted.cpp"
for marks in -DGLGEMM_STATIC -DGLGEMM_NOT_BUILDING "-DGLGEMM_BUILDING -DGLGEMM_BUILDING_HEADLESS -DGLGEMM_BUILDING_VERIFY -DGLGEMM_BUILDING_WEIGHTS"; do
  "${visual[@]}" $marks "$build/headers.cpp" || {
    echo "FAILED: the public headers by Visual C++'s rules, with $marks"
    failed=1
  }
done
! "${visual[@]}" "$build/planted.cpp" 2>/dev/null || {
  echo "FAILED: a class that Visual C++ cannot export is not found"
  failed=1
}
exit $failed
