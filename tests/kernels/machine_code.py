#!/usr/bin/env python3
"""Tests of tools/gpu_code/machine_code.py, bounds.py and cache_lines.py, on small listings in the form of each driver."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from gpu_code import bounds, cache_lines, machine_code  # noqa: E402

failures = 0


def check(name, found, expected):
    global failures
    if found != expected:
        failures += 1
        print(f"{name}: {found!r}, and {expected!r} is right")


def describe(maker, text, products=0, programs=1):
    found = machine_code.read(text, maker)
    check(f"{maker}: programs", len(found), programs)
    return machine_code.describe(max(found, key=lambda program: len(program.instructions)), products)


AMD = """Shader main disassembly:
 BB0:
\ts_load_b128 s[0:3], s[2:3], 0x0                          ; f4080501 f8000200
\tscratch_store_b32 off, v1, off                           ; dc690000
BB1:
\tbuffer_load_b128 v[4:7], v0, s[0:3], null offen          ; e05c0000
\tbuffer_load_b128 v[8:11], v1, s[0:3], null offen         ; e05c0000
\tds_load_b64 v[12:13], v2                                 ; d9d80000
\tds_load_2addr_b32 v[14:15], v2 offset0:1 offset1:2       ; d8dc0000
\ts_waitcnt lgkmcnt(0)                                     ; bf89fc07
\tv_fmac_f32_e32 v20, v12, v13                             ; 56565b4e
\tv_fma_f32 v21, v12, v14, v21                             ; d6130000
{between}
\tv_fmac_f32_e32 v22, v14, v15                             ; 56565b4e
\tv_dual_fmac_f32 v23, v14, v15 :: v_dual_fmac_f32 v24, v12, v15 ; c8000000
\ts_waitcnt vmcnt(1)                                       ; bf8907f7
\tv_mad_u32_u24 v1, v1, 4, v3                              ; d60b0000
\tv_mov_b32_e32 v2, v3                                     ; 7e040303
\ts_cbranch_scc1 BB1                                       ; bfa2ff00
\ts_endpgm                                                 ; bfb00000
*** SHADER STATS ***
Shader Stats: SGPRS: 108 VGPRS: 120
"""
amd = describe("amd", AMD.replace("{between}\n", ""))
check("amd: instructions", amd["instructions"], 16)
check("amd: local", amd["local"], 1)
check("amd: loop", (amd["loop"]["instructions"], amd["loop"]["products"], amd["loop"]["kinds"]["multiply-add"]), (13, 5, 4))
check("amd: share", amd["loop"]["share"], 4 / 13)
check("amd: vectors", amd["loop"]["vector_share"], 4 / 6)  # of what is neither a load nor for all invocations at once
check("amd: shared", (amd["loop"]["shared_loads"], amd["loop"]["shared_bytes"]), (2 / 5, 16 / 5))
check("amd: global", (amd["loop"]["global_loads"], amd["loop"]["global_bytes"]), (2 / 5, 32 / 5))
check("amd: accesses to local memory in the loop", amd["loop"]["local"], 0)
# The first load is waited for after all five; the second in the next turn, after five more.
check("amd: overlap", amd["loop"]["overlap"], 1.0)
check("amd: overlap of an early wait", describe("amd", AMD.replace("{between}", "\ts_waitcnt vmcnt(0)"))["loop"]["overlap"], 2 / 5)
check("amd: one load of two is waited for", describe("amd", AMD.replace("{between}", "\ts_wait_loadcnt 0x1"))["loop"]["overlap"], 2 / 5)
check("amd: without a disassembler", describe("amd", """Shader main disassembly:
BB1
\t v4: %261:v[72-75] = buffer_load_dwordx4 %258:s[16-19], %260:v[72], 0 offen storage:buffer
\t v1: %340:v[4] = v_mac_f32 %4179:v[82], %4194:v[90], %251:v[4]
\ts_waitcnt vmcnt(0)
\ts_cbranch_scc0 block:BB1
""")["loop"]["kinds"], {"global load": 1, "multiply-add": 1, "wait": 1, "branch": 1})

NVIDIA = """NAK IR after opt_dce:
block 0 L0 [] -> {
 r0 = ffma r1 r2 r3
} -> []
NAK IR after calc_instr_deps:
block.u 0 L0 [] -> {
                 st.local.strong.cta.b128 [0x10] r4..8          // delay=2
} -> [1]
block 1 L1 [0, 3] -> {
      r4       = ld.global.a64.strong.gpu.b32 [r4..6+rZ], p0    // delay=2 wr:0
      r8..12   = ld.shared.strong.cta.b128 [r2]                 // delay=2 wr:1
      r12..16  = ld.shared.strong.cta.b128 [r3]                 // delay=2 wr:2
      r20      = ffma r8 r12 r20                                // delay=1 wt=000110
@!p0             bra pT L3                                      // delay=1
} -> [2, 3]
block 2 L2 [1] -> {
      r21      = ffma r9 r13 r21                                // delay=1
      r5       = iadd3 r5 0x10 rZ                               // delay=1
} -> [3]
block 3 L3 [1, 2] -> {
      r22      = hfma2 r9 r13 r21                               // delay=1
                 bar.sync                                       // delay=1 wt=000001
      p0       = isetp.lt.u32 r6 c[0x1][0x8]                    // delay=13
@p0              bra pT L1                                      // delay=1
} -> [1, 4]
block 4 L4 [3] -> {
                 exit                                           // delay=1
} -> []
Instruction count: 14
"""
nvidia = describe("nvidia", NVIDIA)
check("nvidia: instructions", (nvidia["instructions"], nvidia["local"]), (13, 1))
check("nvidia: loop", (nvidia["loop"]["instructions"], nvidia["loop"]["products"]), (11, 4))
check("nvidia: kinds", nvidia["loop"]["kinds"], {"multiply-add": 3, "shared load": 2, "branch": 2, "other": 2, "global load": 1, "barrier": 1})
check("nvidia: loads", (nvidia["loop"]["shared_bytes"], nvidia["loop"]["global_bytes"]), (8.0, 1.0))
check("nvidia: overlap", nvidia["loop"]["overlap"], 1.0)
check("nvidia: a wait at the first product", describe("nvidia", NVIDIA.replace("wt=000110", "wt=000111"))["loop"]["overlap"], 0)

ADRENO = """MESA: info: Native code for unnamed FRAG shader TTN1 with blake3 4471:
MESA: info: mad.f32 r0.x, r0.y, r0.z, r0.w
MESA: info: ; FRAG prog 1/1: 6 instr
MESA: info: Native code for unnamed CL shader GLSL3 with blake3 4471:
MESA: info: ; num_ubos:           0
MESA: info: l10:
MESA: info: isam.v.base0 (f32)(xyzw)r4.x, r24.y, s#0, t#1
MESA: info: l11:
MESA: info: ldl.u32 r8.x, l[r29.x], 4
MESA: info: (ss)(nop2)mad.f32 r0.x, r8.x, r8.y, r0.x
MESA: info: (rpt3)mad.f32 r1.x, (r)r8.x, r8.z, (r)r1.x
MESA: info: br p0.x, #l11
MESA: info: (rpt1)nop
MESA: info: ldp.u32 r0.x, p[r0.w+68], 1
MESA: info: (sy)mov.f32f32 r5.x, r4.x
MESA: info: br p0.x, #l10
MESA: info: end
MESA: info: ; CL prog 5/1: 6 instr
"""
adreno = describe("adreno", ADRENO)
check("adreno: instructions", (adreno["instructions"], adreno["local"]), (16, 1))
check("adreno: the inner loop", (adreno["loop"]["instructions"], adreno["loop"]["products"], adreno["loop"]["overlap"]), (9, 5, None))
# The inner loop has half of the 10 products of a turn: it runs twice.
adreno = describe("adreno", ADRENO, products=10)
check("adreno: the loop around", (adreno["loop"]["instructions"], adreno["loop"]["products"]), (2 * 9 + 6, 10))
check("adreno: loads", (adreno["loop"]["shared_bytes"], adreno["loop"]["global_bytes"], adreno["loop"]["local"]), (3.2, 1.6, 1))
check("adreno: overlap", adreno["loop"]["overlap"], 1.0)

apple = describe("apple", """   0: 0501000d00c07200       load     r0_r1_r2, du0, 0, i32, xyz, a
   8: 3800                   wait     a
   a: 69812402f4000038       lload    r96_r97_r98_r99, r82l, 0, i32, xyzw
  12: 69812402f4000038       load     r4_r5_r6_r7, du2, r9, i32, xyzw, b
  1a: ba81c04228840200       ffma     $r0, ^r0, $r2, $r2
  22: 3800                   wait     b
  24: 0501000d00c07200       stack_store r0, 4
  2c: ba81c04228840200       ffma     $r0, ^r0, $r2, $r2
  34: 20c02a040000           jmp_exec_any -42
  3a: 8800                   stop

""")
check("apple: instructions", (apple["instructions"], apple["local"]), (10, 1))
check("apple: loop", (apple["loop"]["instructions"], apple["loop"]["share"], apple["loop"]["local"]), (7, 2 / 7, 1))
check("apple: loads", (apple["loop"]["shared_bytes"], apple["loop"]["global_bytes"], apple["loop"]["overlap"]), (8.0, 8.0, 0.5))

INTEL = """Native code for unnamed compute shader GLSL2 (src_hash 0x00)
SIMD16 shader: 12 instructions. 1 loops. 0:0 spills:fills.
(W)     mad (8)                   r23           64:uw             r23:uw            4:uw {I@6}

L0:
        send.ugm (16)             r40     r84    null:0  0x00000000  0x02403500   {$3}  // wr:1+0, rd:4; load.ugm.d32x4.a32.bti[3]
        send.slm (16)             r23     r84    null:0  0x00000000  0x02403500   {$5}  // wr:1+0, rd:4; load.slm.d32x4.a32
(W)     sync.nop (1)                            null                              {$5.dst}
        mad (16)                  r64:f         r64:f             r27:f             r19:f {I@1}
        mad (16)                  r66:f         r66:f             r27:f             r21:f
        mov (16)                  r70:f         r40:f                             {$3.dst}
        mad (16)                  r68:f         r68:f             r27:f             r23:f
        send.ugm (16)             null    r116   r115:1  a0.4        0x42000504   {ExBSO,$1}  // wr:1+1, rd:0; store.ugm.d32.a32.ss[a0.4]
        while (16)                                    L0
        send.gtwy (1)             null    r127   null    0x00000000  0x02000000   {EOT,@1}
   CS SIMD16 shader: 12 inst
"""
intel = describe("intel", INTEL)
check("intel: instructions", (intel["instructions"], intel["local"], intel["width"]), (11, 1, 16))
check("intel: loop", (intel["loop"]["instructions"], intel["loop"]["products"], intel["loop"]["local"]), (9, 3, 1))
check("intel: loads", (intel["loop"]["shared_bytes"], intel["loop"]["global_bytes"], intel["loop"]["overlap"]), (16 / 3, 16 / 3, 2 / 3))
# A move of one lane takes half of the time of one of 16.
check("intel: vectors", (describe("intel", INTEL)["loop"]["vector_share"], describe("intel", INTEL.replace("mov (16)", "mov (1)"))["loop"]["vector_share"]),
      (6 / 8, 6 / 7))
# The generations that wait by themselves: for registers of what is loaded.
old = describe("intel", """Native code for unnamed compute shader GLSL2 (src_hash 0x00)
SIMD8 shader: 6 instructions. 1 loops.

L0:
        sends.hdc1 (8)            r1      r116   null    0x00000000  0x02406004  // wr:1+0, rd:4; untyped_read:xyzw simd8 (8) bti(4)
        sends.hdc1 (8)            r9      r116   null    0x00000000  0x02406004  // wr:1+0, rd:4; untyped_read:xyzw simd8 (8) bti(254)
        mad (8)                   r91:f         r92:f             r12:f             r31:f {Align16}
        mad (8)                   r91:f         r92:f             r4:f              r31:f {Align16}
        while (8)                             L0
   CS SIMD8 shader: 6 inst
""")
check("intel, by registers: loads", (old["loop"]["shared_bytes"], old["loop"]["global_bytes"], old["loop"]["overlap"]), (8.0, 8.0, 0.5))
oldest = describe("intel", """Native code for unnamed compute shader GLSL2 (src_hash 0x00)
SIMD8 shader: 5 instructions. 1 loops.
LABEL12:
send(8)         g97<1>UD        g45<8,8,1>UD    0x024060fe
                dp data 1 MsgDesc: (untyped surface read, Surface = 254, SIMD8, Mask = 0x8)  mlen 1 rlen 3 { align1 1Q };
mad(8)          g88<1>F         g89<4,4,1>F     g42<4,4,1>F     g122<4,4,1>F { align16 1Q };
send(8)         null<1>UW       g126<8,8,1>UD   0x040a02ff
                data MsgDesc: (DC OWORD block write, bti 255, owords = 2, aligned = 0)  mlen 2 rlen 0 { align1 1Q };
while(8)        JIP:  LABEL12                                   { align1 1Q };
   CS SIMD8 shader: 5 inst
""")
check("intel, older form", (oldest["loop"]["kinds"], oldest["loop"]["shared_bytes"]),
      ({"shared load": 1, "multiply-add": 1, "local store": 1, "branch": 1}, 12.0))

# The least of what instructions and shared memory allow: 128 bytes a clock for 128 lanes.
loop = {"issued_share": 0.85, "vector_share": 0.9, "shared_bytes": 1.0, "shared_store_bytes": 0.25}
check("bound by shared memory", bounds.bound("nvidia-ampere", loop), {"share": 0.8, "limit": "shared memory"})
check("bound by instructions", bounds.bound("nvidia-ampere", {**loop, "issued_share": 0.7}), {"share": 0.7, "limit": "instructions"})
check("64 lanes of 128 bytes", bounds.bound("nvidia-turing", {**loop, "issued_share": 0.4}), {"share": 0.8, "limit": "instructions"})
check("vectors alone", bounds.bound("amd-rdna2", loop), {"share": 0.9, "limit": "instructions"})
check("no such GPU", bounds.bound("amd-none", loop), None)

# What has no loop, and what holds no program.
check("no loop", "loop" in describe("apple", "   0: 8800                   stop\n\n"), False)
for maker in machine_code.MAKERS:
    check(f"{maker}: nothing", machine_code.read("Mesa: nothing to see\n\n", maker), [])

# Eight columns of f32, row- and column-major: 32 invocations read rows 4 apart, or the workgroup brings them.
alone = "gemv:tile_m=2,tile_n=8,lanes_k=32,workgroup=128,panels=0,shared_b=0"
shared = alone.replace("shared_b=0", "shared_b=1")
check("lines, each for itself", [cache_lines.of_b(alone, 8, 1), cache_lines.of_b(alone, 1, 4096)], [1024, 128])
check("lines, shared", [cache_lines.of_b(shared, 8, 1), cache_lines.of_b(shared, 1, 4096)], [32, 16])
check("lines, shared, two columns", cache_lines.of_b(shared.replace("tile_n=8", "tile_n=2"), 2, 1), 8)
check("lines, no room to share", cache_lines.of_b(shared.replace("lanes_k=32", "lanes_k=256").replace("workgroup=128", "workgroup=256"), 8, 1), 1024)
check("lines, elements of A of 16 bits", cache_lines.of_b(shared, 8, 1, 8), 64)
check("lines, panels", cache_lines.of_b(alone.replace("panels=0", "panels=1"), 8, 1), None)
check("lines, no gemv", cache_lines.of_b("tiled:tile=8", 8, 1), None)

print(f"{failures} failures")
sys.exit(1 if failures else 0)
