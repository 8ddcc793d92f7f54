/* SPDX-License-Identifier: Apache-2.0 */
/* sign: gets the signature for a connection that shows a certificate whose key is in a token. */
#ifndef VETHGUARD_SRC_PROXY_UPSTREAM_SIGN_H
#define VETHGUARD_SRC_PROXY_UPSTREAM_SIGN_H

#include "proxy/upstream/upstream.h"

struct upstream_sign;

/* Makes c->sign, for the credential of the exchange. Returns false if there is no memory. */
bool upstream_sign_new(struct upstream_conn *c, const struct exchange *ex);
/* If the handshake waits for a signature, asks for it, once. The handshake goes on, or the
 * connection fails, later. */
void upstream_sign_ask(struct upstream_conn *c);
void upstream_sign_cancel(struct upstream_sign *sign); /* NULL is allowed */
void upstream_sign_free(struct upstream_sign *sign);

#endif
