#!/usr/bin/env bash
# as_es.sh VALIDATOR FILE.comp VERSION: whether a shader is one in OpenGL ES as well: with its defaults, and with what most of its macros
# shut off.
set -euo pipefail
validator=$1 shader=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  printf '#version %s es\n' "$version"
  # What the tool puts before its own shaders.
  [[ $shader != */tools/* ]] || printf '#extension GL_EXT_texture_buffer : enable\nprecision highp float;\nprecision highp int;\n'
  echo '#line 2'
  tail -n +2 "$shader"
} >"$work/shader.comp"
others=('' '-DEPILOGUE=1 -DITEMS=1' '-DTYPE=2 -DTYPE_C=2 -DEPILOGUE=1 -DHALVES_BY_INTEGERS=1' '-DTYPE=6 -DTYPE_C=4' '-DTYPE=7 -DTYPE_C=7' '-DTYPE=9')
case $(basename "$shader") in
  blocked.comp) others+=('-DWIDE=1' '-DWIDE=2' '-DTYPE=6 -DTYPE_C=4 -DWIDE=1' '-DPANELS=2 -DPARTS=1') ;;
  gemv.comp) others+=('-DWIDE=1 -DPARTS=1' '-DWIDE=2 -DTYPE=3') ;;
  register.comp) others+=('-DPANELS=1' '-DPANELS=2 -DPARTS=1 -DITEMS=1') ;;
  reduce.comp | pack.comp) ;;
  *) others+=('-DPARTS=1 -DITEMS=1') ;;
esac
# OpenGL ES 3.1 lacks `precise`, and no OpenGL ES has doubles, which PRECISION=3 is.
case $version,$(basename "$shader") in
  320,naive.comp | 320,tiled.comp | 320,register.comp | 320,blocked.comp)
    others+=('-DPRECISION=1 -DPARTS=1' '-DPRECISION=1 -DPARTS=1 -DTYPE=3 -DTYPE_C=3' '-DPRECISION=2 -DPARTS=1' '-DPRECISION=2 -DPARTS=1 -DTYPE=2') ;;
  320,reduce.comp) others+=('-DPRECISION=1 -DEPILOGUE=1' '-DPRECISION=2 -DITEMS=1') ;;
esac
for macros in "${others[@]}"; do
  # shellcheck disable=SC2086
  log=$("$validator" -I"$(dirname "$shader")" $macros -l -S comp "$work/shader.comp") || {
    echo "$shader as $version es with '$macros':"
    echo "$log"
    exit 1
  }
done
