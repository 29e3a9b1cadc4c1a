/* The helper's side of the compiler: what runs in `rung helper` and its forked children. */
#ifndef NVRTC_SERVE_H
#define NVRTC_SERVE_H

#include <rung/host.h>

extern const struct rung_helper_ops nv_helper_ops;

#endif
