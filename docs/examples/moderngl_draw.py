"""Draws a product: C = A B is computed in moderngl's context, in buffers of moderngl, and drawn from there.

    python3 docs/examples/moderngl_draw.py [IMAGE.ppm]
"""

import sys

import moderngl
import numpy as np

import glgemm

SIZE = 256

context = moderngl.create_standalone_context(require=430, backend="egl")
engine = glgemm.Engine.current()

# Two waves of rank 2: element (i, j) of C is sin(x_i) cos(y_j) + cos(x_i) sin(y_j) = sin(x_i + y_j), bent.
x = np.linspace(0, 12, SIZE)
y = np.linspace(0, 1, SIZE) ** 2 * 16
a = np.stack([np.sin(x), np.cos(x)], axis=1).astype(np.float32)
b = np.stack([np.cos(y), np.sin(y)]).astype(np.float32)

buffer_a = context.buffer(a.tobytes())
buffer_b = context.buffer(b.tobytes())
buffer_c = context.buffer(reserve=SIZE * SIZE * 4)
c = engine.wrap(buffer_c, (SIZE, SIZE))
glgemm.matmul(engine.wrap(buffer_a, a.shape), engine.wrap(buffer_b, b.shape), out=c)  # nothing is copied
engine.barrier("storage")  # the fragment shader reads C next

# The fragment shader reads C where the product has put it.
program = context.program(
    vertex_shader="""
        #version 430
        void main() { gl_Position = vec4(gl_VertexID % 2 * 4 - 1, gl_VertexID / 2 * 4 - 1, 0, 1); }
    """,
    fragment_shader="""
        #version 430
        layout(std430, binding = 0) readonly buffer Matrix { float c[]; };
        uniform int size;
        out vec4 colour;
        void main() {
          ivec2 at = ivec2(gl_FragCoord.xy);
          float t = c[(size - 1 - at.y) * size + at.x];
          colour = vec4(mix(vec3(1), t < 0 ? vec3(0.13, 0.40, 0.67) : vec3(0.70, 0.09, 0.17), abs(t)), 1);
        }
    """,
)
program["size"] = SIZE
buffer_c.bind_to_storage_buffer(0)
target = context.simple_framebuffer((SIZE, SIZE), components=3)
target.use()
context.vertex_array(program, []).render(moderngl.TRIANGLES, vertices=3)

with open(sys.argv[1] if len(sys.argv) > 1 else "product.ppm", "wb") as image:
    image.write(b"P6\n%d %d\n255\n" % (SIZE, SIZE))
    rows = np.frombuffer(target.read(components=3, alignment=1), np.uint8).reshape(SIZE, SIZE, 3)
    image.write(rows[::-1].tobytes())

engine.close()  # before its context
context.release()
