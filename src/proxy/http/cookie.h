/* SPDX-License-Identifier: Apache-2.0 */
/* cookie: the pairs of a Cookie field. */
#ifndef VETHGUARD_SRC_PROXY_HTTP_COOKIE_H
#define VETHGUARD_SRC_PROXY_HTTP_COOKIE_H

#include <stdbool.h>

#include "vethguard/base/slice.h"

/* Takes the next pair ("name=value", without white space around it; never empty) off rest. Returns
 * false at the end. */
bool cookie_next(struct slice *rest, struct slice *pair);
/* True if some server may read the pair as a cookie of that name: names are compared without regard
 * to case and with escapes decoded, and may begin after white space or a comma, which frameworks
 * do although RFC 6265 does not. */
bool cookie_is(struct slice pair, struct slice name);

#endif
