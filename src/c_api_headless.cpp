// The C interface of contexts without a window.
#include <glgemm/glgemm_headless.h>

#include <glgemm/headless.hpp>

#include "c_api.hpp"

using glgemm::HeadlessContext;
using glgemm::HeadlessOptions;
using glgemm::c_api::Arguments;
using glgemm::c_api::call;

struct glgemm_headless_context {
  HeadlessContext context;
};

glgemm_status glgemm_headless_options_init(glgemm_headless_options* options, size_t size) {
  return call(__func__, [&](const Arguments& in) { in.initialise(options, size, glgemm_headless_options{}, "options"); });
}

glgemm_status glgemm_headless_context_create(const glgemm_headless_options* options, glgemm_headless_context** context) {
  return call(__func__, [&](const Arguments& in) {
    glgemm_headless_context*& result = in.result(context, "context");
    HeadlessOptions converted;
    if (options) {
      const glgemm_headless_options given = in.read(options, "options");
      if (given.device) converted.device = given.device;
      converted.debug = given.debug != 0;
      converted.robust = given.robust != 0;
      converted.no_error = given.no_error != 0;
      converted.compatibility = given.compatibility != 0;
      if (given.share) converted.share = &given.share->context;
    }
    result = new glgemm_headless_context{HeadlessContext(converted)};
  });
}
void glgemm_headless_context_destroy(glgemm_headless_context* context) {
  delete context;
}

glgemm_status glgemm_headless_make_current(glgemm_headless_context* context) {
  return call(__func__, [&](const Arguments& in) { in.need(context, "context").context.make_current(); });
}
glgemm_status glgemm_headless_release_current(glgemm_headless_context* context) {
  return call(__func__, [&](const Arguments& in) { in.need(context, "context").context.release_current(); });
}
glgemm_proc glgemm_headless_get_proc_address(const char* name) {
  return name ? HeadlessContext::get_proc_address(name) : nullptr;
}
