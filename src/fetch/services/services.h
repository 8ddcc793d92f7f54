/* SPDX-License-Identifier: Apache-2.0 */
/* services: what each kind of service is asked, and where in its answer the value is. */
#ifndef VETHGUARD_SRC_FETCH_SERVICES_SERVICES_H
#define VETHGUARD_SRC_FETCH_SERVICES_SERVICES_H

#include "fetch/fetched.h"

/* Each returns true with out filled in, or false with a sentence in fault without a byte of a
 * secret. */
bool oauth2_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool token_exchange_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
bool gcp_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool onepassword_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
bool vault_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool gcp_secret_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool azure_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool aws_secret_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool aws_parameter_fetch(const struct fetch_request *request, struct https *https,
        struct fetched *out, char fault[HTTPS_TEXT_MAX]);
bool aws_role_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
/* Makes what signatures need; call it before the jail closes. Returns 0 or -errno. */
int aws_prepare(void);
bool github_app_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);

/* hook.c: tells an endpoint of the operator what waits for a person; the value is a hook_answer as
 * text. Call hook_prepare() when aws_prepare() is called. */
int hook_prepare(void);
bool webhook_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool decider_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
/* Fetch what is public: a key set, and a signed bundle of any bytes. The request may bring the ETag
 * of the last answer (RFC 9110 section 8.8.3); then the server may say that nothing has changed. */
bool key_set_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);
bool bundle_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX]);

#endif
