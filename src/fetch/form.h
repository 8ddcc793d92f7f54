/* SPDX-License-Identifier: Apache-2.0 */
/* form: bodies of application/x-www-form-urlencoded, which token endpoints take (RFC 6749 appendix
 * B). */
#ifndef VETHGUARD_SRC_FETCH_FORM_H
#define VETHGUARD_SRC_FETCH_FORM_H

#include "fetch/services/services.h"

#define FORM_MAX (4 * FETCH_SECRET_MAX)

/* Appends s encoded. Returns 0 or -errno. */
int form_encode(struct buf *out, struct slice s);
/* Appends a member if its value is not empty. Returns 0 or -errno. */
int form_add(struct buf *form, const char *name, struct slice value);
/* Appends "Authorization: Basic ..." for "user:password", with a NUL (RFC 7617). Returns 0 or
 * -errno.
 */
int form_basic(struct buf *out, struct slice login);
/* Posts the form to a URL. Returns as https_json(). */
json_t *form_post_to(struct https *https, struct slice url, struct slice form, const char *login,
        char fault[HTTPS_TEXT_MAX]);
/* Posts the form to the request's URL, with the field login unless it is NULL. Returns as
 * https_json(). */
json_t *form_post(const struct fetch_request *request, struct https *https, struct slice form,
        const char *login, char fault[HTTPS_TEXT_MAX]);
/* Posts the form and takes access_token and expires_in of the answer (RFC 6749 section 5.1). */
bool form_fetch_token(const struct fetch_request *request, struct https *https, struct slice form,
        const char *login, struct fetched *out, char fault[HTTPS_TEXT_MAX]);

#endif
