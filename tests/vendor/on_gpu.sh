#!/usr/bin/env bash
# Products by cuBLAS on a real GPU: on_gpu.sh GLGEMM [FOLDER]
#
# GLGEMM is the program, FOLDER has libcublas (default: PyTorch's, else where the system looks). Checks products of each type at 512
# and 4096, and measures the rate beside direct cuBLAS (where python3 has PyTorch) and what a call costs. Takes about two minutes.
# The status is 1 if a check failed or cublas did not run.
. "$(dirname "$0")/../../tools/usage.sh"
set -u
glgemm=${1:?usage: on_gpu.sh GLGEMM [FOLDER]}
folder=${2:-$(python3 - <<'PYTHON' 2>/dev/null
import glob, os, torch
site = os.path.dirname(os.path.dirname(torch.__file__))
found = sorted(glob.glob(site + "/nvidia/**/libcublas.so.1[1-9]", recursive=True))
print(os.path.dirname(found[-1]) if found else "allowed")
PYTHON
)}
folder=${folder:-allowed}
failed=0
bench() {  # the products are checked; status 1 if one is wrong
  echo "\$ glgemm bench --vendor $folder $*"
  "$glgemm" bench --vendor "$folder" --cpu-seconds 2 "$@" || failed=1
}
echo "== why, or why not"
"$glgemm" inspect --vendor "$folder" --size 4096 --type f16 | head -12
"$glgemm" inspect --vendor "$folder" --size 4096 --type f16 | grep -q '^kernel *cublas$' || { echo "the planner does not take cublas"; failed=1; }
echo "== right results of each type, by cublas and by our own"
for type in f16 bf16 f32 f64; do bench --size 512,4096 --type $type --kernel cublas,auto; done
bench --size 512,4096 --type i8 --op-b t --kernel cublas,auto
bench --size 512,4096 --type f32 --precision fast --kernel cublas
bench --size 512 --type f16 --kernel cublas --op-a n,t --op-b n,t --alpha 2 --beta 3
bench --shape 511,513,129 --type f16 --kernel cublas --batch 7
echo "== the rate at 8192"
bench --size 8192 --type f16 --kernel cublas,auto
echo "== what a call costs"
bench --size 64,4096 --type f16 --kernel cublas --enqueue
echo "== direct cuBLAS"
python3 - <<'PYTHON' || echo "left out: python3 has no PyTorch with CUDA"
import torch
torch.backends.cuda.matmul.allow_tf32 = False
for n, kind in ((4096, torch.float16), (8192, torch.float16), (4096, torch.float32), (8192, torch.float32)):
    a, b = (torch.randn(n, n, device="cuda", dtype=kind) for _ in range(2))
    for _ in range(5):
        a @ b
    times = []
    for _ in range(10):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(); a @ b; end.record(); end.synchronize()
        times.append(begin.elapsed_time(end))
    times.sort()
    print(f"{n} {kind}: {times[5]:.3f} ms, {2 * n**3 / times[5] * 1e-9:.1f} TFLOP/s")
PYTHON
exit $failed
