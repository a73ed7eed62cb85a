#!/bin/bash
# Networks of fully connected layers of the tool from outside: inspect shows their plans, bench measures and checks them; and for each
# bad input one clear sentence and status 2. Usage: cli_mlp.sh GLGEMM   (bench needs a device with OpenGL 4.3)
. "$(dirname "$0")/../support/cli.sh"
export GLGEMM_TUNING= GLGEMM_PROGRAM_CACHE=$work/programs

# ---- inspect
has() { grep -qF -- "$2" "$1" || fail "'$2' is not in $1: $(cat "$1")"; }
plan() { "$glgemm" inspect --as nvidia-ampere --mlp "$@" >stdout 2>stderr || fail "inspect $*: status $?: $(cat stderr)"; }
plan 3,64,64,64,4 --samples 100000
for text in '3,64,64,64,4 in f32, 100,000 samples, 1.728 GFLOP' 'input       3 x 100,000' 'in 1 dispatch: 1 group of layers' \
  'multiply-adds for each byte' 'layers 1 to 4 one dispatch' 'kernel      mlp:'; do has stdout "$text"; done
plan 3,64,4 --source --json
has stdout '"dispatches": 1,'
has stdout '"multiply_adds": 29360128.0,'
has stdout '#version 430'
plan 64,4096,4096,64 --samples 1000 --type f16/f32 --image wide.svg
for text in 'layer 1 ' 'a product: ' '  apart '; do has stdout "$text"; done
for text in 'Network 64,4096,4096,64, 1,000 samples, in f16/f32' 'layer 2: 4,096 to 4,096, relu, ' 'input: 64 x 1,000' \
  'in the workspace: 4,096 x 1,000' 'output: 64 x 1,000'; do has wide.svg "$text"; done
[ "$(tail -n 1 wide.svg)" = '</svg>' ] || fail "the picture is not whole: $(tail -n 3 wide.svg)"
plan 3,64,64,64,4 --type q4_0/f32
"$glgemm" inspect --no-device --mlp 3,4 >stdout 2>stderr || fail "no device: status $?: $(cat stderr)"
has stdout 'layer 1'
for verb in bench inspect; do
  tool=("$glgemm" $verb)
  bad 'one width' "--mlp: '3' is not two widths or more, as in 3,64,64,4" --mlp 3
  bad 'a width that is missing' "--mlp: '' is not a positive integer" --mlp 3,,4
  bad 'a width that is none' "--mlp: '-4' is not a positive integer" --mlp 3,-4
  bad 'too many layers' 'has 17 layers, and networks have 16 at most' --mlp 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18
  bad 'no samples' "--samples: '0' is not a positive integer" --mlp 3,4 --samples 0
  bad 'samples of nothing' '--samples requires --mlp' --size 8 --samples 3
  bad 'doubles' '--type: the weights and the input of a network are summed in f32' --mlp 3,4 --type f64
  bad 'a quantised input' '--type: the weights and the input of a network are summed in f32' --mlp 32,4 --type f32/q4_0
  bad 'a size too' '--size excludes --mlp' --mlp 3,4 --size 12
  bad 'a convolution too' '--convolution excludes --mlp' --mlp 3,4 --convolution 1x5x5x3,4x3x3
  bad 'a kernel' '--kernel excludes --mlp' --mlp 3,4 --kernel naive
done
bad 'two networks' '--mlp is given 2 times; only --compiled takes several' --mlp 3,4 --mlp 3,5
bad 'an ending' "'plan.png' does not end in .svg" --mlp 3,4 --no-device --image plan.png

# ---- bench
tool=("$glgemm" bench)
bad 'two precisions' '--mlp is for one precision' --mlp 3,4 --precision standard,reproducible
need_device
bad 'no memory' 'the network 3,4 of 1000000000000000 samples needs ' --mlp 3,4 --samples 1000000000000000
"$glgemm" inspect --mlp 3,16,4 --mlp 3,4 --samples 100 --compiled --json >stdout 2>stderr || fail "--compiled: status $?: $(cat stderr)"
has stdout '"3,16,4"'
has stdout '"3,4"'
"$glgemm" bench --mlp 3,32,32,4 --samples 100,1000 --repeats 2 --json bench.json >stdout 2>stderr || fail "bench: status $?: $(cat stdout stderr)"
has stdout 'times as fast'
has stdout 'network over separate products, geometric mean of 2: '
[ "$(grep -c ' ok, ' stdout)" = 2 ] || fail "bench: not checked: $(cat stdout)"
for text in '"samples_checked": 100,' '"samples_checked": 1000,' '"separate_ms": ' '"runs": 2,'; do has bench.json "$text"; done
for type in f16 q4_0/f32 nbits:bits=4,group=32,zeros=1,scales=f16/f32; do
  "$glgemm" bench --mlp 40,64,5 --samples 70 --type $type --repeats 1 >stdout 2>stderr && grep -q ' ok, ' stdout || fail "$type: $(cat stdout stderr)"
done

finish
