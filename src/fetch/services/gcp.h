/* SPDX-License-Identifier: Apache-2.0 */
/* gcp: access tokens of Google's service accounts. */
#ifndef VETHGUARD_SRC_FETCH_SERVICES_GCP_H
#define VETHGUARD_SRC_FETCH_SERVICES_GCP_H

#include "fetch/services/services.h"

#define GCP_SCOPE_ALL "https://www.googleapis.com/auth/cloud-platform"

/* Gets an access token for the scope: by the account's key, or, without one, as the account of this
 * machine (metadata_url); then, if the argument "impersonate" names another account, a token of
 * that one. token_url: where the key's assertion goes. */
bool gcp_get_token(const struct fetch_request *request, struct https *https, struct slice token_url,
        struct slice scope, struct fetched *out, char fault[HTTPS_TEXT_MAX]);

#endif
