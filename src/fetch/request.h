/* SPDX-License-Identifier: Apache-2.0 */
/* request: what vethguard-fetch is to fetch, as the supervisor's one message says it. */
#ifndef VETHGUARD_SRC_FETCH_REQUEST_H
#define VETHGUARD_SRC_FETCH_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "vethguard/wire/message.h"

#define FETCH_SECRET_MAX \
	65536 /* bytes of the service's secret: a token, a password, a private key */
#define FETCH_HOST_MAX 255

struct fetch_site {
	char host[FETCH_HOST_MAX + 1];
	uint16_t port;
};

struct fetch_request {
	struct message_fetch message;                     /* borrows the received bytes */
	struct fetch_site sites[MESSAGE_FETCH_SITES_MAX]; /* one for each of the message's */
	/* secret is the first of secrets. One line end is removed from the end of each. Empty:
	 * none. */
	struct slice secret, secrets[MESSAGE_FETCH_SECRETS_MAX];
};

/* Takes host and port from a URL. Returns false if it is none of https://, nor of http:// at an
 * address that never leaves the link, where a machine asks for its own identity. */
bool fetch_site_read(struct slice url, struct fetch_site *out);
/* Does it for each URL of the message. */
bool fetch_request_read_urls(struct fetch_request *request);
/* The value of KEY in the arguments, or empty. */
struct slice fetch_argument(const struct fetch_request *request, const char *key);
/* Returns the secret whose file the argument KEY names, or empty. */
struct slice fetch_secret(const struct fetch_request *request, const char *key);
/* A URL followed by path, which begins with '/': "https://host:8200" and "/v1/x"; fetch_url(): the
 * service's. Returns false if it has no room. */
bool fetch_url_at(struct slice base, const char *path, char *out, size_t out_size);
bool fetch_url(const struct fetch_request *request, const char *path, char *out, size_t out_size);

#endif
