# Completion of glgemm's command line in bash. The tool itself says what fits, so that this file has no list of its own.
_glgemm() {
  local word=${COMP_WORDS[COMP_CWORD]} list status
  list=$("${COMP_WORDS[0]/#\~/$HOME}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  status=$?
  COMPREPLY=()
  if [ "$status" -eq 3 ]; then # the name of a file
    [ "$word" != = ] || word=
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  elif [ -n "$list" ]; then
    mapfile -t COMPREPLY <<<"$list"
  fi
}
complete -F _glgemm glgemm
