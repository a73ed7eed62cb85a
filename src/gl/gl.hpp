// The only room that calls OpenGL: what an engine needs of it, not a wrapper of all of it.
//
// Every function here works on the current context, which must be the one of the Api that is passed. Buffers, programs, queries
// and syncs are deleted by functions and not by destructors, since an engine may end after its context.
#pragma once

#include "gl/buffers.hpp"
#include "gl/compiler_messages.hpp"
#include "gl/context.hpp"
#include "gl/programs.hpp"
#include "gl/queries.hpp"
#include "gl/state.hpp"
