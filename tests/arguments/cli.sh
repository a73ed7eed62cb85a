#!/usr/bin/env bash
# The command line of the tool as a whole: help, misspelt words, completion, JSON, progress bars, and signals.
. "$(dirname "$0")/../support/cli.sh"

verbs=$("$glgemm" complete '')
[ "$(wc -w <<<"$verbs")" -ge 7 ] || fail "the verbs are: $verbs"

# Help fits into 80 columns, and names every option that completion offers.
for verb in '' $verbs; do
  "$glgemm" $verb --help >stdout 2>stderr || fail "help of '$verb': status $?"
  awk 'length > 80 { print; bad = 1 } END { exit bad }' stdout >long || fail "help of '$verb' has long lines: $(cat long)"
  head -n 1 stdout | grep -q "^Usage: glgemm ${verb:-VERB}" || fail "help of '$verb' begins with: $(head -n 1 stdout)"
  for option in $("$glgemm" complete $verb -); do
    grep -qE -- "^  (-[a-z], )?$option( |$)|^  $option," stdout || fail "help of '$verb' does not name $option"
  done
done

# The same by the verb help.
for verb in '' $verbs; do
  cmp -s <("$glgemm" help $verb) <("$glgemm" $verb --help) || fail "'help $verb' is not '$verb --help'"
done
"$glgemm" >stdout 2>stderr
[ $? -eq 2 ] && [ ! -s stdout ] && [ "$(tail -n 1 stderr)" = 'glgemm: a verb is missing' ] && grep -q '^  bench ' stderr || fail "without a verb: $(cat stderr)"
for arguments in --help --version 'bench --help' help 'help bench' 'complete b' 'inspect --size 8 --no-device'; do
  "$glgemm" $arguments >/dev/full 2>stderr
  [ $? -eq 2 ] && grep -q 'cannot write to the standard output$' stderr || fail "'$arguments' to a full disk: $(cat stderr)"
done

exact=-x # here each line is known
bad 'help of no verb' "glgemm help: 'bnech' is not a verb: did you mean 'bench'? (--help lists them)" help bnech
bad 'help of two' "glgemm help: 'tune' is one argument too many (--help explains)" help bench tune
bad 'no such CSV' "glgemm bench: cannot write 'missing/x.csv': there is no folder 'missing'" bench --size 8 --csv missing/x.csv
bad 'a batch of none' "glgemm bench: --batch: '0' is not a positive integer" bench --size 8 --batch 0
bad 'a batch of none' "glgemm inspect: --batch: '0' is not a positive integer" inspect --size 8 --batch 0
bad 'a batch of none' "glgemm tune: --batch: '0' is not a positive integer" tune --size 8 --batch 0
bad 'a batch of none' "glgemm multiply: --batch: '0' is not a positive integer" multiply A.npy B.npy -o C.npy --batch 0
bad 'a misspelt verb' "glgemm: 'bnech' is not a verb: did you mean 'bench'? (--help lists them)" bnech --size 8
bad 'a word far from any verb' "glgemm: 'frobnicate' is not a verb (--help lists them)" frobnicate
bad 'letters that changed places' "glgemm bench: '--shpae' is not an option: did you mean '--shape'? (--help lists them)" bench --shpae 1,2,3
bad 'with a value' "glgemm tune: '--sizes' is not an option: did you mean '--size'? (--help lists them)" tune --sizes=8
bad 'instead of a required option' "glgemm transpose: '--ouptut' is not an option: did you mean '--output'? (--help lists them)" \
  transpose A.npy --ouptut B.npy
bad 'far from any option' "glgemm devices: '--frobnicate' is not an option (--help lists them)" devices --frobnicate
bad 'a value that is missing' 'glgemm bench: --check needs a value: auto|full|probe (--help explains)' bench --check
bad 'a number out of range' "glgemm bench: --budget: '0' is not a number from 0.01 to 1000000 (--help explains)" bench --budget 0
for number in nan -nan inf; do  # a comparison with NaN is false
  bad "$number" "glgemm bench: --budget: '$number' is not a number from 0.01 to 1000000 (--help explains)" bench --size 8 --budget=$number
  bad "$number" "glgemm inspect: --runs: '$number' is not a number from 1 to 1e+15 (--help explains)" inspect --size 8 --runs=$number
done
bad 'a whole number out of range' "glgemm tune: --patience: '1.5' is not a whole number from 1 to 1000000 (--help explains)" tune --patience 1.5
bad 'a word that is none of a few' "glgemm bench: --check: 'maybe' is not auto, full or probe (--help explains)" bench --check maybe
bad 'an unknown kernel' 'glgemm inspect: unknown kernel "fastest"; known kernels: outer, small, gemv, register, blocked, tiled, naive, cublas' \
  inspect --no-device --size 8 --kernel fastest
bad 'an unknown parameter' 'glgemm inspect: kernel naive has no parameter "tile"; it has workgroup_x, workgroup_y' \
  inspect --no-device --size 8 --kernel naive:tile=8
bad 'a parameter without a value' 'glgemm inspect: kernel tiled: "" is not a value for tile, which is 2, 4, 8, 16 or 32' \
  inspect --no-device --size 8 --kernel tiled:tile
bad 'a word too many' "glgemm bench: '8' is one argument too many (--help explains)" bench 8
bad 'two ways to say it' 'glgemm bench: --size excludes --shape (--help explains)' bench --size 8 --shape 1,2,3
bad 'no product' 'glgemm inspect: --shape M,N,K or --size N says which product' inspect --no-device
bad 'JSON to nowhere' "glgemm inspect: cannot write 'missing/x.json': there is no folder 'missing'" inspect --no-device --size 8 --json missing/x.json

bad 'a device that is there and not' 'glgemm inspect: --device excludes --as (--help explains)' inspect --size 8 --as cpu --device 0
bad 'no device, and one' 'glgemm inspect: --as excludes --no-device (--help explains)' inspect --size 8 --as cpu --no-device
bad 'a misspelt class' "glgemm inspect: --as: no device 'nvidia-amper' is known; the nearest: nvidia-ampere ('--as list' shows all)" \
  inspect --size 8 --as nvidia-amper
bad 'a maker without such a class' \
  "glgemm inspect: --as: no device 'adreno-31415926' is known; the nearest: adreno-5xx, adreno-6xx, adreno-7xx, adreno-8xx ('--as list' shows all)" \
  inspect --size 8 --as adreno-31415926
bad 'no device at all' "glgemm inspect: --as: no device 'frobnicator 3000' is known ('--as list' shows all)" \
  inspect --size 8 --as 'frobnicator 3000'

# A system without EGL: the loader meets a file that is no library before it.
mkdir no_egl && : >no_egl/libEGL.so.1
tool=(env "LD_LIBRARY_PATH=$work/no_egl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$glgemm")
bad 'no EGL' "glgemm devices: EGL cannot be loaded: $work/no_egl/libEGL.so.1: file too short" devices
bad 'no EGL' "glgemm bench: EGL cannot be loaded: $work/no_egl/libEGL.so.1: file too short" bench --size 8
tool=("$glgemm")

# Plans for devices that are not there.
"$glgemm" inspect --as list >classes 2>stderr || fail "inspect --as list: $(cat stderr)"
"$glgemm" inspect --as list --json >classes.json 2>stderr || fail "inspect --as list --json: $(cat stderr)"
[ "$(wc -l <classes)" -ge 20 ] && [ "$(grep -c '"class":' classes.json)" = "$(wc -l <classes)" ] || fail "the classes are: $(cat classes)"
for class in $(awk '{ print $1 }' classes); do
  "$glgemm" inspect --size 512 --as $class --json >plan 2>stderr || fail "inspect --as $class: $(cat stderr)"
  grep -qF "\"device_class\": \"$class\"" plan && grep -qF '"device_is_there": false' plan || fail "as $class: $(head -n 4 plan)"
done
"$glgemm" inspect --size 512 --as 'NVIDIA GeForce RTX 3070/PCIe/SSE2' >plan 2>stderr || fail "inspect --as NAME: $(cat stderr)"
grep -qE '^device +none; as on a usual nvidia-ampere: ' plan || fail "as a GeForce: $(head -n 1 plan)"
for named in 'A100 nvidia-ampere' 'RX 7900 XTX amd-rdna3' 'Raspberry Pi 5 broadcom-v3d7' 'Steam Deck amd-rdna2' 'UHD Graphics 630 intel-gen9'; do
  "$glgemm" inspect --size 512 --as "${named% *}" >plan 2>stderr || fail "inspect --as '${named% *}': $(cat stderr)"
  grep -qE "^  class +${named##* }\$" plan || fail "as '${named% *}': $(head -n 2 plan)"
done
# Each device that the list shows is one of its class.
while read -r class devices; do
  while read -r name; do
    case $class in unknown | cpu) continue ;; esac
    "$glgemm" inspect --size 8 --steps 0 --as "$name" >plan 2>stderr || fail "inspect --as '$name': $(cat stderr)"
    grep -qE "^  class +$class\$" plan || fail "as '$name', of $class: $(head -n 2 plan)"
  done < <(sed 's/ *[,()] */\n/g' <<<"$devices" | grep .)
done <classes
"$glgemm" inspect --size 8 --no-device --json | grep -qF '"device_is_there": true' && fail 'no device is there'

# One spelling for all verbs.
"$glgemm" inspect --no-device --size 8 --json >here 2>stderr || fail "inspect --json: $(cat stderr)"
"$glgemm" inspect --no-device --size 8 --json - >dash 2>stderr || fail "inspect --json -: $(cat stderr)"
"$glgemm" inspect --no-device --shape 8,8,8 --json file >text 2>stderr || fail "inspect --json FILE: $(cat stderr)"
cmp -s here dash && cmp -s here file || fail 'three ways of --json differ'
head -c 1 here | grep -qF '{' || fail "--json without a file prints: $(head -c 40 here)"
grep -q '^kernel ' text && grep -qF 'wrote file' text || fail "beside --json FILE it prints: $(cat text)"

# Completion, as bash asks for it.
# complete_line WORD...: COMPREPLY for the last word, which may be empty.
complete_line() {
  COMP_WORDS=("$glgemm" "$@")
  COMP_CWORD=$#
  _glgemm
}
# completes EXPECTED WORD...
completes() {
  local expected=$1
  shift
  complete_line "$@"
  [ "${COMPREPLY[*]}" = "$expected" ] || fail "completion of '$*' is '${COMPREPLY[*]}' instead of '$expected'"
}
. "$tests/../tools/arguments/glgemm.bash"
completes bench be
completes '--shape --shapes --shapes-of' bench --sha
completes 'f32 f64 f16 f8e4m3 f8e5m2' bench --type f
completes 'q4_0/f32 q4_0/f64 q4_0/f16 q4_0/f8e4m3 q4_0/f8e5m2' inspect --type q4_0/f
completes 'f32,bf16' tune --type f32,b
completes 'q4_0/f32,f16/bf16' tune --type q4_0/f32,f16/b
completes 'f16/f32,bf16' tune --type f16/f32,b
completes probe bench --check p
completes full bench --check = f
completes 'tiled' inspect --kernel t
completes 'nvidia-ampere nvidia-ada' inspect --as nvidia-a
completes 'list' inspect --as l
completes 'auto,tiled' bench --kernel auto,t
completes 'gemv' tune --class g
completes '' tune --seed ''
completes '' bench --kernel tiled : t
complete_line bench ''
case " ${COMPREPLY[*]} " in *' --shape '*' --json '*) ;; *) fail "the options of bench are: ${COMPREPLY[*]}" ;; esac
case " ${COMPREPLY[*]} " in *' --first-child '*) fail 'a hidden option is offered' ;; esac
completes tune tune
mkdir files
: >files/a.csv
completes files/a.csv bench --shapes files/
completes files/a.csv transpose files/

need_device

# A progress bar on a terminal, and nothing of it elsewhere.
if have_terminals 'progress bars on a terminal'; then
  script -qec "'$glgemm' bench --size 64 --kernel naive --repeats 1 >/dev/null" /dev/null >terminal </dev/null
  grep -qF '[....' terminal || fail "no progress bar on a terminal: $(cat -v terminal)"
  tail -c 5 terminal | grep -q "$(printf '\033')\[K" || fail "the progress bar stays: $(tail -c 100 terminal | cat -v)"
fi
# Tables keep to a terminal's width.
if have_terminals 'tables on a terminal'; then
  for what in '--size 64 --kernel auto,naive' '--convolution 1x9x9x8,16x3x3,padding=1' '--mlp 3,16,4 --samples 100' '--size 64 --kernel naive --enqueue' \
    '--size 64 --kernel naive --device-memory-limit 32K'; do
    script -qec "stty cols 80; '$glgemm' bench --repeats 1 $what 2>/dev/null" /dev/null </dev/null | tr -d '\r' >terminal
    grep -q 'Left out, for want of columns' terminal && awk 'length > 80 { print; bad = 1 } END { exit bad }' terminal >long ||
      fail "bench $what on 80 columns: $(cat long terminal)"
  done
fi
"$glgemm" bench --size 64 --kernel naive --repeats 1 >stdout 2>stderr </dev/null
grep -qF '[...' stdout stderr && fail 'a progress bar without a terminal'

# ended SIGNAL NAME ARGUMENTS...: a signal ends the verb while a child of its runs. Neither the child nor a folder stays.
ended() {
  local signal=$1 name=$2 tool children= folders
  shift 2
  rm -rf temporary && mkdir temporary
  TMPDIR=$work/temporary env --default-signal=INT,HUP "$glgemm" "$@" >stdout 2>stderr </dev/null &
  tool=$!
  for _ in $(seq 400); do
    children=$(cat "/proc/$tool/task/$tool/children" 2>/dev/null)
    [ -n "$children" ] && sleep 0.2 && break
    sleep 0.05
  done
  [ -n "$children" ] || fail "$name: no child has run: $(cat stderr)"
  kill "-$signal" $tool
  wait $tool 2>/dev/null
  status=$?
  [ $status -eq $((128 + $(kill -l "$signal"))) ] || fail "$name: status $status after SIG$signal: $(cat stderr)"
  for child in $children; do
    for _ in $(seq 60); do kill -0 "$child" 2>/dev/null && sleep 0.05; done
    kill -0 "$child" 2>/dev/null && fail "$name: the child is still there after SIG$signal"
  done
  [ "$(grep -c "^glgemm $1: interrupted" stderr)" -eq 1 ] || fail "$name: SIG$signal is not one line: $(cat stderr)"
  folders=$(ls temporary)
  [ -z "$folders" ] || fail "$name: after SIG$signal there is still $folders"
}
ended TERM 'bench --first' bench --first --size 512 --kernel naive --repeats 100
ended INT 'bench --first' bench --first --size 512 --kernel naive --repeats 100
ended HUP 'bench --first' bench --first --size 512 --kernel naive --repeats 100
ended INT 'tune' tune --size 512 --kernel naive --output table.json
if "$glgemm" bench --size 8 --kernel naive --repeats 1 --peer openblas >/dev/null 2>&1; then
  ended TERM 'bench --peer' bench --size 4096 --kernel naive --peer openblas --cpu-seconds 0.1
fi

finish
