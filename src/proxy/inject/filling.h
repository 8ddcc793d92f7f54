/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filling: holds the body of a request (holding.h) whose credential may be replaced in it, and
 * replaces it there (fill.h). The request is sent over HTTP/1, whose connections keep what they
 * send in locked memory.
 */
#ifndef VETHGUARD_SRC_PROXY_INJECT_FILLING_H
#define VETHGUARD_SRC_PROXY_INJECT_FILLING_H

#include "proxy/inject/fill.h"

struct exchange;

/* True for an allowed request that has a body in which placeholders are replaced. */
bool filling_is_wanted(const struct exchange *ex);
/* Begins to hold the body of such a request. Returns true if the exchange stops here: it goes on
 * once the whole body is held, or it was refused. */
bool filling_begin(struct exchange *ex);
/* Goes on with a request whose body was held to be filled. */
void filling_go_on(struct exchange *ex);
/* Finds the placeholders, and sets the length of the body. Returns 0; -E2BIG, -EBADMSG (fill.h); or
 * -errno. */
int filling_fill(struct exchange *ex, const struct substitute *s);
/* True if the body that is sent holds a credential's value. */
bool filling_is_secret(const struct exchange *ex);

#endif
