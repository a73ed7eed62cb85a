// Panels: what pack.comp made of A and B, vector after vector in the type of the sums.
//
// PANELS    0 if A and B are read as they lie, 1 if panels are read from a storage buffer, 2 if from an image

#if PANELS == 1
layout(std430, binding = BINDING_B) readonly buffer BufferPanels { uvec4 Panels[]; };
VECTOR panel(int index) { return vector_of_bits(Panels[index]); }
#elif PANELS == 2
layout(rgba32ui, binding = 0) readonly uniform highp uimageBuffer Panels;
VECTOR panel(int index) { return vector_of_bits(imageLoad(Panels, index)); }
#endif
layout(location = 15) uniform ivec4 panels_at;  // the first vector of A's and of B's panels; the vectors from item to item of each
