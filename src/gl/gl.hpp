// The only room that calls OpenGL: what an engine needs of it, not a wrapper of all of it.
//
// Every function and object here works on the context that is current, which must be the one of the Api that is passed. Objects
// are destroyed by destroy(), never by a destructor: an engine may end when its context is gone.
#pragma once

#include "gl/buffers.hpp"
#include "gl/context.hpp"
#include "gl/programs.hpp"
#include "gl/queries.hpp"
#include "gl/state.hpp"
