/* SPDX-License-Identifier: Apache-2.0 */
/* bearer: requests with a token that a login has given, or that is the service's secret. */
#ifndef VETHGUARD_SRC_FETCH_SERVICES_BEARER_H
#define VETHGUARD_SRC_FETCH_SERVICES_BEARER_H

#include "fetch/https.h"

/* Asks the service for the JSON at path, with "Authorization: Bearer TOKEN" (RFC 6750 section 2.1).
 * Returns as https_json() does. */
json_t *bearer_get(const struct fetch_request *request, struct https *https, struct slice token,
        const char *path, char fault[HTTPS_TEXT_MAX]);

#endif
