# Each script sources this first. Its help is the comment at its beginning: --help prints that and ends, and an option that is not in there
# ends it with 2, before anything is built. Where its usage has OPTION... or COMMAND..., options may be another program's.
its_help=$(sed -n '2,/^[^#]/{s/^# \{0,1\}//p}' "$0")
this_script=$(basename "$(cd "$(dirname "$0")" && pwd)")/${0##*/}
bad() {
  echo "$this_script: $*" >&2
  exit 2
}
for argument; do
  case $argument in
    -h | --help) [ "$argument" != "${1:-}" ] || { echo "$its_help" && exit 0; } ;;
    -?*)
      grep -qwF -- "${argument%%=*}" <<<"$its_help" || grep -qE "${0##*/} .*(OPTION|COMMAND)\.\.\." <<<"$its_help" ||
        bad "'$argument' is not an option (--help explains)"
      ;;
  esac
done
