/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry: requests to a container registry and to its token service (inject: docker-registry).
 * The token service gets the login and its answers are sealed; the registry gets the token for
 * which the sandbox shows its text.
 */
#ifndef VETHGUARD_SRC_PROXY_INJECT_REGISTRY_H
#define VETHGUARD_SRC_PROXY_INJECT_REGISTRY_H

#include "proxy/http/http.h"

struct exchange;

/* True if the request gets a credential with inject: docker-registry. */
bool registry_is_on(const struct exchange *ex);
/* Puts the login or the token into the head of such a request; text: locked memory for it. The
 * sandbox's own Authorization is never sent. Returns 0 or -errno. */
int registry_fill_head(struct exchange *ex, struct outgoing *head, struct buf *text);
/* Examines the challenge of a 401: clients go where it sends them. Returns NULL, or why the
 * response is refused. */
const char *registry_check_challenge(const struct exchange *ex, const struct http_response *r);

#endif
