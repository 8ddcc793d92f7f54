/* SPDX-License-Identifier: Apache-2.0 */
/* https: requests to the one service of this process, by libcurl, which looks up no name: it dials
 * the addresses that it is given. No redirect is followed. */
#ifndef VETHGUARD_SRC_FETCH_HTTPS_H
#define VETHGUARD_SRC_FETCH_HTTPS_H

#include <jansson.h>

#include "fetch/request.h"
#include "vethguard/base/buf.h"

#define HTTPS_ANSWER_MAX (1u << 20) /* bytes of an answer's body */
#define HTTPS_URL_MAX 8192
#define HTTPS_TEXT_MAX 512 /* of a sentence that says what went wrong */

struct https; /* one connection, used for every request */

/* Starts libcurl so far that it opens no file later. Returns NULL if there is no memory. */
struct https *https_open(void);
/* Sets the only addresses that will be dialed: the request's. Returns false if there is no memory.
 */
bool https_resolve(struct https *https, const struct fetch_request *request);
void https_free(struct https *https);
/* The CAs that the service is verified by, in PEM; borrowed until https_free(). */
void https_trust(struct https *https, struct slice pem);

/* A secret that a service may repeat in its answer, as it is and as forms encode it (both
 * borrowed): no fault shows it. */
void https_hide(struct https *https, struct slice secret, struct slice encoded);

/* Returns for how many seconds the service wants no request, by its last answer (429 or 503;
 * Retry-After, otherwise HTTPS_RETRY_S); 0: it did not say so. */
#define HTTPS_RETRY_S 10
uint32_t https_retry_s(const struct https *https);
/* Returns the status of the last answer; 0: there was none. */
long https_status(const struct https *https);
/* Copies a header field of the last answer. Returns false if there is none, or it is too long. */
bool https_header(const struct https *https, const char *name, char *out, size_t out_size);

struct https_call {
	const char *method; /* "GET", "POST" or "PUT" */
	const char *url;
	const char *const *fields; /* "Name: value" each; ends with NULL */
	struct slice body;         /* of POST and PUT */
};

/* Returns the answer's JSON (owned) if its status is of 2xx; else NULL with a sentence in fault,
 * which holds of the answer only what a service says of an error in its documented members, and
 * what it repeats there of the request or the secret is left out. */
json_t *https_json(struct https *https, const struct https_call *call, char fault[HTTPS_TEXT_MAX]);
/* Does the same for an answer of another form: *text is its body, valid until the next call. */
bool https_text(struct https *https, const struct https_call *call, struct slice *text,
        char fault[HTTPS_TEXT_MAX]);
/* Finds <NAME>TEXT</NAME> in an answer in XML; AWS STS has each name once. Returns false if it is
 * not there exactly once, or if TEXT has markup or an escape in it. */
bool https_xml_element(struct slice xml, const char *name, struct slice *text);

#endif
