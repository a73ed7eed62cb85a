# usage: only_room.sh SRC    fails if a file of the library outside of SRC/gl names anything of OpenGL's, and prints the lines
#
# gl::Api is incomplete outside of gl/, so the compiler refuses calls through it. This finds what would get around that.
set -euo pipefail

# Prints the lines of a source folder outside of gl/ that name OpenGL, without comments. EGL (headless/) is another interface.
lines_in() {
  local header='glad|gl/api\.hpp|\bGL/gl[a-z]*\.h'
  local type='\bGL(u?byte|u?short|u?int|u?int64|float|double|char|boolean|bitfield|enum|sizei|sizeiptr|intptr|sync)\b'
  local constant='\bGL_[A-Z0-9_]+' call='\bgl[A-Z][A-Za-z0-9]* *\('
  find "$1" -path "$1/gl" -prune -o \( -name '*.cpp' -o -name '*.hpp' \) -print | sort | while IFS= read -r file; do
    sed 's://.*$::' "$file" | grep -nE "$header|$type|$constant|$call" | sed "s:^:${file#"$1"/}\::" || true
  done
}

# It finds what is planted, and not in gl/ or in a comment.
planted=$(mktemp -d)
trap 'rm -r "$planted"' EXIT
mkdir "$planted/gl" "$planted/engine"
echo 'api.Flush(); glFlush(); GLuint x = GL_TRUE;' > "$planted/gl/context.cpp"
printf '%s\n' '#include <glad/gl.h>' '#include "gl/api.hpp"' 'GLuint buffer;' 'f(GL_TRUE);' 'glFlush();' '// glFlush(), GL_TRUE' \
  '#include "gl/gl.hpp"' > "$planted/engine/engine.cpp"
found=$(lines_in "$planted" | cut -d: -f1,2 | tr '\n' ' ')
expected=$(printf 'engine/engine.cpp:%d ' 1 2 3 4 5)
[ "$found" = "$expected" ] || { echo "found in what was planted: $found; expected: $expected"; exit 1; }

[ -f "$1/gl/api.hpp" ] || { echo "$1 is not the library's source folder"; exit 1; }
found=$(lines_in "$1")
[ -z "$found" ] || { printf '%s\n' "$found" "only src/gl/ may name OpenGL's functions, types and constants"; exit 1; }
