// GTK 4: a GtkGLArea beside a label, drawn by OpenGL's own calls.
#include <epoxy/egl.h>
#include <epoxy/gl.h>
#include <gtk/gtk.h>

#include "toolkits/products.hpp"

namespace {

std::optional<toolkits::Products> products;
int frames = 0;

// GTK has no function of its own; EGL's serves its contexts of GLX as well.
void realize(GtkGLArea* area) {
  gtk_gl_area_make_current(area);
  if (!gtk_gl_area_get_error(area)) products.emplace(eglGetProcAddress);
}

void unrealize(GtkGLArea* area) {
  gtk_gl_area_make_current(area);
  products.reset();
}

gboolean render(GtkGLArea* area, GdkGLContext*) {
  glClearColor(.1f, .2f, .5f, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  glEnable(GL_SCISSOR_TEST);
  glScissor(20, 20, 60, 60);
  glClearColor(1, 1, 0, 1);
  products->multiply();
  glClear(GL_COLOR_BUFFER_BIT);
  glDisable(GL_SCISSOR_TEST);
  ++frames;
  return gtk_gl_area_get_error(area) == nullptr;
}

gboolean tick(gpointer area) {
  if (frames >= toolkits::last_frame) {
    toolkits::take_picture();
    gtk_window_destroy(GTK_WINDOW(gtk_widget_get_root(GTK_WIDGET(area))));
    return G_SOURCE_REMOVE;
  }
  gtk_gl_area_queue_render(GTK_GL_AREA(area));
  return G_SOURCE_CONTINUE;
}

void activate(GtkApplication* application) {
  GtkWidget* const window = gtk_application_window_new(application);
  GtkWidget* const box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 8);
  GtkWidget* const area = gtk_gl_area_new();
  gtk_gl_area_set_required_version(GTK_GL_AREA(area), 4, 3);
  gtk_widget_set_size_request(area, 200, 120);
  g_signal_connect(area, "realize", G_CALLBACK(realize), nullptr);
  g_signal_connect(area, "unrealize", G_CALLBACK(unrealize), nullptr);
  g_signal_connect(area, "render", G_CALLBACK(render), nullptr);
  gtk_box_append(GTK_BOX(box), gtk_label_new("GTK"));
  gtk_box_append(GTK_BOX(box), area);
  gtk_window_set_child(GTK_WINDOW(window), box);
  gtk_window_present(GTK_WINDOW(window));
  g_timeout_add(200, tick, area);
}

}  // namespace

int main(int argc, char** argv) {
  GtkApplication* const application = gtk_application_new(nullptr, G_APPLICATION_DEFAULT_FLAGS);
  g_signal_connect(application, "activate", G_CALLBACK(activate), nullptr);
  g_application_run(G_APPLICATION(application), argc, argv);
  g_object_unref(application);
  return toolkits::end();
}
