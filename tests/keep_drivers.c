/* Keeps libraries loaded, in programs under LeakSanitizer: what an unloaded OpenGL driver pointed to would be taken for lost. */
__attribute__((visibility("default"))) int dlclose(void* handle) {
  (void)handle;
  return 0;
}
