"""moderngl-window: a product between two triangles.

GLGEMM_STATE is the library that reads OpenGL's state; products.hpp tells of the other variables.
"""

import ctypes
import os
import subprocess
import sys

import moderngl
import moderngl_window
import numpy as np

import glgemm

LAST_FRAME = 4
read_state = ctypes.CDLL(os.environ["GLGEMM_STATE"]).glgemm_toolkits_state
read_state.restype = ctypes.c_char_p
faults = []


class Frames(moderngl_window.WindowConfig):
    gl_version = (4, 3)  # 3.3 is the default, and gives a context of the newest version on Mesa
    window_size = (240, 160)
    products = 0

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.program = self.ctx.program(
            vertex_shader="""
                #version 430
                uniform float x;
                void main() { gl_Position = vec4(x + gl_VertexID % 2 * .6, gl_VertexID / 2 - .5, 0, 1); }
            """,
            fragment_shader="""
                #version 430
                uniform float x;
                out vec4 colour;
                void main() { colour = vec4(1, x + 1, 0, 1); }
            """,
        )
        self.triangle = self.ctx.vertex_array(self.program, [])
        self.engine = None
        if "GLGEMM_PRODUCTS" in os.environ:
            self.engine = glgemm.Engine.current()  # moderngl-window has made the window's context current
            print(f"  context 1: {self.ctx.info['GL_VERSION']}, {self.ctx.info['GL_RENDERER']}")
            self.a, self.b = (np.random.default_rng(seed).integers(-5, 6, (64, 64)).astype(np.float32) for seed in (1, 2))
            self.buffers = [self.ctx.buffer(x.tobytes()) for x in (self.a, self.b, self.a)]
            self.arrays = [self.engine.wrap(buffer, (64, 64)) for buffer in self.buffers]

    def multiply(self):
        if self.engine is None:
            return
        before = read_state()
        glgemm.matmul(self.arrays[0], self.arrays[1], out=self.arrays[2])
        after = read_state()
        faults.extend(f"{x} became {y}" for x, y in zip(before.splitlines(), after.splitlines()) if x != y)
        self.products += 1

    def render(self, time, frame_time):
        self.ctx.clear(0.1, 0.1, 0.4)
        self.program["x"] = -0.8
        self.triangle.render(moderngl.TRIANGLES, vertices=3)
        self.multiply()
        self.program["x"] = 0.1
        self.triangle.render(moderngl.TRIANGLES, vertices=3)
        if self.wnd.frames == LAST_FRAME:  # the frame before is on the screen
            subprocess.run(["xwd", "-silent", "-root", "-out", os.environ["GLGEMM_PICTURE"]], check=True)
            self.end()
            self.wnd.close()

    def end(self):
        if self.engine is None:
            return
        if not np.array_equal(self.arrays[2].numpy(), self.a @ self.b):
            faults.append("a product is wrong")
        self.engine.close()  # before its context
        print(f"  {self.products} products, {'all right, state as before' if not faults else faults}")


moderngl_window.run_window_config(Frames)
sys.exit(1 if faults else 0)
